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
	test  string
	unit  string
	scale float64 // the figure is divided by this
	goal  float64 // of the ratio; 0: none
	cost  bool    // the figure is CPU seconds per gigabyte and not the program's; less is better
	own   bool    // of cost: only the CPU time of the two programs, and not that of the whole machine
	// steady is the most that either end of the interval may be away from the ratio, as a share of
	// it; 0: any
	steady float64
	// ways says which of linerate's ways another program could use too, and which row compares like
	// with like
	ways string
	// congestion lists the congestion controls of the two hosts to play the row under; the worst
	// ratio is the row's. nil: what the kernel has.
	congestion []string
	programs   []program
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
	Steady   float64            `json:"steady_ratio,omitempty"` // see row.steady
	Ways     string             `json:"ways,omitempty"`
	// Others is the share of all CPUs that other programs of this machine used, in the median run.
	Others float64 `json:"others_ratio"`
	// Congestion is the congestion control of both hosts, the one with the worst ratio; Ratios has
	// the ratios of all that the row was played under.
	Congestion string             `json:"congestion_control,omitempty"`
	Ratios     map[string]float64 `json:"ratio_by_congestion_control,omitempty"`
	Skipped    []string           `json:"skipped,omitempty"` // peers that are not installed or failed, with the reason
}

// mostOthers is the share of all CPUs above which other programs disturb a row: a figure is then
// theirs as much as the program's, and the row is not judged.
const mostOthers = 0.05

// disturbed reports whether other programs used too much of the machine for a verdict.
func (o outcome) disturbed() bool { return o.Others > mostOthers }

// met reports whether the median ratio reaches the goal, and is as steady as the row asks for.
func (o outcome) met() bool {
	return o.Ratio >= o.Goal && (o.Steady == 0 || o.High > 0 && o.spread() <= o.Steady)
}

// spread returns how far the interval reaches from the ratio, as a share of it; 0 without an
// interval.
func (o outcome) spread() float64 {
	if o.High == 0 || o.Ratio == 0 {
		return 0
	}
	return max(o.High/o.Ratio-1, 1-o.Low/o.Ratio)
}

// verdict returns the word for the table.
func (o outcome) verdict() string {
	switch {
	case o.Rounds == 0:
		return "FAILED"
	case o.BestPeer == "":
		return "no peer"
	case o.disturbed():
		return fmt.Sprintf("not judged: others used %.0f %% of the CPUs", 100*o.Others)
	case o.Ratio < o.Goal:
		return "NOT MET"
	case !o.met():
		return fmt.Sprintf("NOT STEADY: ±%.0f %%", 100*o.spread())
	}
	return "met"
}

// play plays a row under each of its congestion controls and returns the outcome with the worst
// ratio. A host's default decides much here: the timer of bbr's pacing costs a program that sends
// in small pieces far more than one that sends in large ones.
func (r row) play(ctx context.Context, w *world, rounds int, seconds float64,
	missing map[string]string) (outcome, error) {
	if len(r.congestion) == 0 {
		return r.playOnce(ctx, w, rounds, seconds, missing)
	}
	var worst outcome
	ratios := map[string]float64{}
	for i, name := range r.congestion {
		if err := w.congestion(ctx, name); err != nil {
			return worst, err
		}
		o, err := r.playOnce(ctx, w, rounds, seconds, missing)
		if err != nil {
			return o, err
		}
		o.Congestion, ratios[name] = name, o.Ratio
		if i == 0 || o.worse(worst) {
			worst = o
		}
	}
	worst.Ratios = ratios
	return worst, nil
}

// worse reports whether o is the outcome to show of two: one without a figure, or the lower ratio.
func (o outcome) worse(other outcome) bool {
	return o.Rounds == 0 || other.Rounds > 0 && o.Ratio < other.Ratio
}

// playOnce runs the rounds of a row.
func (r row) playOnce(ctx context.Context, w *world, rounds int, seconds float64,
	missing map[string]string) (outcome, error) {
	o := outcome{Test: r.test, Unit: r.unit, Goal: r.goal, Steady: r.steady, Ways: r.ways, Peers: map[string]float64{}}
	programs := slices.Clone(r.programs)
	for i := len(programs) - 1; i > 0; i-- {
		if why, gone := missing[programs[i].needs]; gone {
			o.Skipped = append(o.Skipped, programs[i].name+": "+why)
			programs = slices.Delete(programs, i, i+1)
		}
	}
	figures := make([][]float64, len(programs))
	var others []float64
	for round := range rounds {
		if err := w.settle(ctx); err != nil {
			return o, err
		}
		for i := range programs {
			k := (i + round) % len(programs)
			v, share, err := r.once(ctx, w, programs[k], seconds)
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
			others = append(others, share)
		}
	}
	o.Rounds, o.Others = rounds, stats.Median(others)
	o.judge(r, programs, figures)
	return o, nil
}

// once runs one program in one round. others is the share of all CPUs that other programs used
// meanwhile.
func (r row) once(ctx context.Context, w *world, p program, seconds float64) (value, others float64, _ error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration((seconds+30)*float64(time.Second)))
	defer cancel()
	before, err := w.usage()
	if err != nil {
		return 0, 0, err
	}
	value, bytes, err := p.run(ctx, w, seconds)
	if err != nil {
		return 0, 0, err
	}
	after, err := w.usage()
	if err != nil {
		return 0, 0, err
	}
	spent := after.less(before)
	if !r.cost {
		return value / r.scale, spent.others(), nil
	}
	if bytes <= 0 {
		return 0, 0, fmt.Errorf("%s: carried nothing", p.name)
	}
	if r.own {
		return spent.own / (bytes / 1e9), spent.others(), nil
	}
	return spent.busy / (bytes / 1e9), spent.others(), nil
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
