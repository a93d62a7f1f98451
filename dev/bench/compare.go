package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
)

// row is one figure, measured by all programs. The first program is linerate.
type row struct {
	test     string
	unit     string
	scale    float64 // the figure is divided by this
	goal     float64 // of the ratio; 0: none
	cost     bool    // the figure is CPU seconds per gigabyte and not the program's; less is better
	programs []program
}

// outcome is one entry of rows[] in results.json. Figures are medians over the rounds. The ratio is
// linerate over the best peer, oriented so that more is better.
type outcome struct {
	Test     string             `json:"test"`
	Ours     float64            `json:"ours"`
	Unit     string             `json:"unit"`
	Peers    map[string]float64 `json:"peers"`
	BestPeer string             `json:"best_peer"`
	Ratio    float64            `json:"ratio"`
	Low      float64            `json:"low"`
	High     float64            `json:"high"`
	Goal     float64            `json:"goal_ratio"`
	Rounds   int                `json:"rounds"`
	Skipped  []string           `json:"skipped,omitempty"` // peers that are not installed or failed, with the reason
}

// met reports whether the median ratio reaches the goal.
func (o outcome) met() bool { return o.Ratio >= o.Goal }

// play runs the rounds of a row.
func (r row) play(ctx context.Context, w *world, rounds int, seconds float64,
	missing map[string]string) (outcome, error) {
	o := outcome{Test: r.test, Unit: r.unit, Goal: r.goal, Peers: map[string]float64{}}
	programs := slices.Clone(r.programs)
	for i := len(programs) - 1; i > 0; i-- {
		if why, gone := missing[programs[i].needs]; gone {
			o.Skipped = append(o.Skipped, programs[i].name+": "+why)
			programs = slices.Delete(programs, i, i+1)
		}
	}
	figures := make([][]float64, len(programs))
	for round := range rounds {
		for i := range programs {
			k := (i + round) % len(programs)
			v, err := r.once(ctx, w, programs[k], seconds)
			if ctx.Err() != nil {
				return o, ctx.Err()
			}
			// A program that fails is left out of this row by name: a round without its figure
			// cannot be paired. If linerate fails, the row has no result.
			if err != nil {
				v = math.NaN()
				o.Skipped = append(o.Skipped, fmt.Sprintf("%s, round %d: %v", programs[k].name, round+1, err))
				if k == 0 {
					return o, nil
				}
			}
			figures[k] = append(figures[k], v)
		}
	}
	o.Rounds = rounds
	o.judge(r, programs, figures)
	return o, nil
}

// once runs one program in one round.
func (r row) once(ctx context.Context, w *world, p program, seconds float64) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration((seconds+30)*float64(time.Second)))
	defer cancel()
	before, err := busySeconds()
	if err != nil {
		return 0, err
	}
	value, bytes, err := p.run(ctx, w, seconds)
	if err != nil {
		return 0, err
	}
	if !r.cost {
		return value / r.scale, nil
	}
	after, err := busySeconds()
	if err != nil {
		return 0, err
	}
	if bytes <= 0 {
		return 0, fmt.Errorf("%s: carried nothing", p.name)
	}
	return (after - before) / (bytes / 1e9), nil
}

// judge computes the medians, the best peer and the ratio.
func (o *outcome) judge(r row, programs []program, figures [][]float64) {
	better := func(a, b float64) bool { return a > b }
	if r.cost {
		better = func(a, b float64) bool { return a < b }
	}
	o.Ours = stats.Median(figures[0])
	best := -1
	for i := 1; i < len(programs); i++ {
		if slices.ContainsFunc(figures[i], math.IsNaN) {
			continue
		}
		m := stats.Median(figures[i])
		o.Peers[programs[i].name] = m
		if best < 0 || better(m, o.Peers[programs[best].name]) {
			best = i
		}
	}
	if best < 0 {
		return
	}
	o.BestPeer = programs[best].name
	from, to := figures[best], figures[0]
	if r.cost {
		from, to = to, from
	}
	logs := stats.PairedLogRatio(from, to)
	o.Ratio = math.Exp(stats.Median(logs))
	// With fewer than six rounds no 95 % interval exists: its ends are infinite. JSON cannot
	// express that, so they stay zero.
	i := stats.SignedRank(logs, 0.95)
	if i.Finite() {
		o.Low, o.High = math.Exp(i.Low), math.Exp(i.High)
	}
}
