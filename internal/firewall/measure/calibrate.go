package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/firewall/cost"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// calibration is how long datagrams are sent, and fewest how often for each case at least. With the
// loading and reading of rules a calibration takes about ten seconds.
const (
	calibration = 5 * time.Second
	fewest      = 20
)

// Calibration is the prices of one host, and how they were found.
type Calibration struct {
	Prices    cost.Prices `json:"prices"`
	Kernel    string      `json:"kernel"`    // its release
	Processor string      `json:"processor"` // its name
	At        time.Time   `json:"at"`        // set by the caller
	Cases     int         `json:"cases"`
	// Missing are the cases that need a program or a module that is not there.
	Missing []string `json:"missing,omitempty"`
	// Error is the median of the cases' errors, as a share of their times.
	Error float64 `json:"error_ratio"`
}

// errNothing reports a host on which no case can be measured.
var errNothing = errors.New("neither nft nor iptables can load rules here without loading modules of the kernel")

// Calibrate measures what rules cost on this host, in network namespaces of its own. It takes about
// ten seconds and needs root.
func Calibrate(ctx context.Context) (Calibration, error) {
	return calibrate(ctx, Options{Span: calibration, Least: fewest, Read: true})
}

func calibrate(ctx context.Context, o Options) (c Calibration, err error) {
	var cases []Case
	for _, p := range probes() {
		if able(p) {
			cases = append(cases, p)
			c.Cases += min(len(p.Rules), 1)
		} else {
			c.Missing = append(c.Missing, p.Name)
		}
	}
	if c.Cases == 0 {
		return c, fmt.Errorf("calibrate prices: %w", errNothing)
	}
	results, err := Run(ctx, cases, o)
	if err != nil {
		return c, fmt.Errorf("calibrate prices: %w", err)
	}
	c.Prices, c.Error = pricesOf(results)
	c.Kernel, c.Processor = Here()
	return c, nil
}

// Nothing returns the time without rules: the median of the cases that have none.
func Nothing(results []Result) float64 {
	var all []float64
	for _, r := range results {
		if r.Name == nothing {
			all = append(all, r.Nanoseconds)
		}
	}
	if slices.Sort(all); len(all) == 0 {
		return 0
	}
	return all[len(all)/2]
}

// Predicted returns what the prices say that the rules of a result cost.
func (r Result) Predicted(p cost.Prices) float64 { return timeOf(r.Rules, p) }

func timeOf(all []*ruleset.Ruleset, p cost.Prices) (sum float64) {
	for _, one := range all {
		sum += cost.Time(one, p)
	}
	return sum
}

// pricesOf returns the prices that fit results, and the median of the errors that remain.
func pricesOf(results []Result) (p cost.Prices, median float64) {
	built := cost.Measured()
	base := Nothing(results)
	rest := slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Name == nothing })
	counts, times := make([][]float64, len(rest)), make([]float64, len(rest))
	pace := make([]float64, len(rest))
	for i, r := range rest {
		times[i] = r.Nanoseconds - base
		counts[i] = make([]float64, len(built.All()))
		for k := range counts[i] {
			var one cost.Prices
			*one.All()[k] = 1
			counts[i][k] = r.Predicted(one)
		}
		pace[i] = times[i] / max(r.Predicted(built), 1)
	}
	// A faster host is faster in what was not measured.
	slices.Sort(pace)
	before := make([]float64, len(built.All()))
	for k, price := range built.All() {
		before[k] = *price * max(pace[len(pace)/2], 0.01)
	}
	found := fit(counts, times, before)
	for k, price := range p.All() {
		*price = math.Round(found[k]*100) / 100
	}
	errs := make([]float64, len(rest))
	for i, r := range rest {
		errs[i] = math.Abs(r.Predicted(p)-times[i]) / max(times[i], smallest)
	}
	slices.Sort(errs)
	return p, errs[len(errs)/2]
}
