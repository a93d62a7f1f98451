package loop

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/traffic"
)

// slowPair is two hosts and the path between them. Runs take their time, and every changed setting
// makes the path faster.
type slowPair struct {
	changed map[tune.Side]int
	longest time.Duration // of one run
	verdict int           // loaded runs of verdicts
}

type slowHost struct {
	fakeHost
	pair *slowPair
	side tune.Side
	undo map[string]knob.Setting // by the id of the change
}

func (h *slowHost) Apply(_ context.Context, _ string, settings ...knob.Setting) ([]string, error) {
	h.pair.changed[h.side] += len(settings)
	ids := make([]string, len(settings))
	for i, s := range settings {
		ids[i] = fmt.Sprint(len(h.undo))
		h.undo[ids[i]], h.values[s.Knob] = knob.Setting{Knob: s.Knob, Value: h.values[s.Knob]}, s.Value
	}
	return ids, nil
}

func (h *slowHost) Undo(_ context.Context, ids ...string) error {
	for _, id := range ids {
		h.values[h.undo[id].Knob] = h.undo[id].Value
	}
	h.pair.changed[h.side] -= len(ids)
	return nil
}

func (h *slowHost) Run(ctx context.Context, s traffic.Spec, progress func(traffic.Interval)) (*traffic.Result, error) {
	r, err := h.fakeFar.Run(ctx, s, progress)
	if err != nil {
		return nil, err
	}
	if s.Test == traffic.Stream && s.Interval == 500*time.Millisecond && s.Streams == 1 {
		h.pair.verdict++
	}
	takes := max(s.WarmUp, 0) + s.Duration + setUp
	h.pair.longest = max(h.pair.longest, takes)
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for range h.pair.changed[tune.Near] + h.pair.changed[tune.Far] {
		r.ThroughputBitsPerSec *= 1.5
	}
	return r, nil
}

// TestTuneEndsWithinItsBudget checks that a verdict after a keep leaves time for the rest, and that
// a tune ends within its budget and one segment.
func TestTuneEndsWithinItsBudget(t *testing.T) {
	const rmem, wmem = knob.ID("sysctl:net.ipv4.tcp_rmem"), knob.ID("sysctl:net.ipv4.tcp_wmem")
	again, kept := 0, 0
	step := time.Duration(testenv.Sample(7, 23)) * time.Second
	for budget := 25 * time.Second; budget <= 4*time.Minute; budget += step {
		synctest.Test(t, func(t *testing.T) {
			pair := &slowPair{changed: map[tune.Side]int{}}
			host := func(side tune.Side) *slowHost {
				return &slowHost{pair: pair, side: side, undo: map[string]knob.Setting{}, fakeHost: fakeHost{
					fakeFar: fakeFar{rtt: 0.020},
					values:  map[knob.ID]knob.Value{rmem: "4096 131072 6291456", wmem: "4096 16384 4194304"},
				}}
			}
			near, far := host(tune.Near), host(tune.Far)
			began := time.Now()
			got, err := Tune(t.Context(), near, far, TuneOptions{
				Root: elsewhere, Budget: budget, Allow: knob.DisturbsNewSockets, Seed: 1, Thorough: true,
				Wide: definitions(t, rmem, wmem), Knobs: func(knob.ID) bool { return true },
			})
			if err != nil {
				t.Fatalf("%v: %v", budget, err)
			}
			if took := time.Since(began); took > budget+pair.longest {
				t.Errorf("a budget of %v: %v, with runs of %v at the longest", budget, took, pair.longest)
			}
			if pair.verdict > 1 {
				again++
			}
			if got.Outcome.State == tune.StateCommitted {
				kept++
			}
			if len(got.Outcome.Trials) > 0 && got.Outcome.RolledBack {
				t.Errorf("a budget of %v: what was kept could not be confirmed any more: %s", budget,
					got.Outcome.Reason)
			}
		})
	}
	if again == 0 || kept == 0 {
		t.Errorf("judged again in %d, kept in %d: the test shows nothing", again, kept)
	}
	t.Logf("judged again in %d, kept in %d", again, kept)
}
