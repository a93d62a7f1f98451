package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/lab/scenario"
)

// Removal is the loss from taking back one kept change: the figure with the change over the figure
// without it, in pairs.
type Removal struct {
	Kept
	Ratio, Low, High float64 // estimate and 95 % interval; 0: not known
}

// Needed reports whether removing the change costs more than the noise.
func (r Removal) Needed() bool { return r.Low > 1 }

// removalSegment is how long each half of a pair is measured. The number of pairs makes up for the
// short segments.
const removalSegment = time.Second

// removals measures the kept set without each of its changes. The lab takes changes back directly
// and not by undo, so that the journals stay as tuning left them, for the proof that follows.
func (p *play) removals(ctx context.Context) error {
	for _, k := range p.res.Kept {
		h := p.Host(k.Side)
		if h == nil {
			return fmt.Errorf("%s was kept at %q, but this world has no such host", k.Knob, k.Side)
		}
		var with, without []float64
		for pair := range p.o.Removals {
			// ABBA: drift affects both halves.
			for half := range 2 {
				value, into := k.From, &without
				if (pair+half)%2 == 1 {
					value, into = k.To, &with
				}
				if err := h.Set(ctx, scenario.Setting{Knob: k.Knob, Value: value}); err != nil {
					return err
				}
				f, err := p.once(ctx, removalSegment)
				if err != nil {
					return err
				}
				*into = append(*into, f)
			}
		}
		if err := h.Set(ctx, scenario.Setting{Knob: k.Knob, Value: k.To}); err != nil {
			return err
		}
		interval := stats.SignedRank(stats.PairedLogRatio(without, with), removalConfidence).Ratio()
		r := Removal{Kept: k, Ratio: interval.Estimate, Low: interval.Low, High: interval.High}
		p.res.Removals = append(p.res.Removals, r)
		p.o.Progress(Event{Kind: EventRemoved, Text: fmt.Sprintf("%s %s: ×%.3g with it", k.Side, k.Knob, r.Ratio)})
	}
	return nil
}

// removalConfidence is the confidence of the intervals of removals.
const removalConfidence = 0.95
