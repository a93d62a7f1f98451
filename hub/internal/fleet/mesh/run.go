package mesh

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/linerate/linerate/internal/base/stats"
)

// ErrBusy reports a host that is in another load test.
var ErrBusy = errors.New("busy, ask in the next round")

// Value is what one test has measured. A nil field was not measured.
type Value struct {
	RTT, Loss, Rate *float64 // seconds, ratio, bits per second
	// Most is the rate that the sender allows itself, in bits per second; 0: as much as goes.
	Most float64
	// Failed is why the path gave no result, Refused why a host did not test: that says nothing of
	// the path.
	Failed, Refused string
	// Late is the longest that the host which measured was late for a time of its own, in seconds.
	Late float64
}

// Tester makes one test. While one of the hosts is in another test, the error is ErrBusy.
type Tester func(ctx context.Context, from, to int, load bool) (Value, error)

// Campaign is what is measured.
type Campaign struct {
	Hosts []Host
	Seed  uint64
	// Pings and Loads are the partners of each host in the first stage; 0: no such tests.
	Pings, Loads int
	Caps         Caps // of load tests; pings have none
	Suspects     int  // of the second stage; 0: none
	Retests      int  // against each suspect
}

// Outcome is one test that was made.
type Outcome struct {
	Test
	Load  bool
	Stage int
	Value
	Bad    bool
	Reason string
	// Disturbed: the result is bad and says nothing, because the host that measured was starved.
	Disturbed bool
}

// Report is the end of a campaign.
type Report struct {
	Outcomes []Outcome
	Culprits []Suspect
	Refused  int // attempts that met a busy host
	Left     int // planned tests that stayed without a free pair of hosts
}

// Bounds of a campaign.
const (
	pingsAtOnce = 256 // over all hosts: a ping is some dozens of packets
	mostTries   = 4   // rounds in which a busy pair is tried again
	mostNamed   = 8   // culprits
)

// Judgement: a test is bad beyond these.
const (
	badLoss  = 0.05 // ratio of pings
	badRTT   = 3    // times the median of like tests, and badDelay more
	badDelay = 0.001
	// badSpread is how many median absolute deviations of like tests a delay is off, besides: on
	// hosts with other work all round trips vary, and none of them is the path's.
	badSpread = 10
	badRate   = 0.5 // of the median of like tests
	// tooLate is from when a host measures itself and not the path, in seconds. TCP sends a lost
	// segment again after 0.2 s at least.
	tooLate = 0.25
)

// Run makes the tests of a campaign, judges them, tests the suspects again, and names the culprits.
// An error is the context's, or that of a plan.
func Run(ctx context.Context, c Campaign, test Tester) (*Report, error) {
	r := &Report{}
	first := func(k int, caps Caps, load bool, seed uint64) error {
		if k == 0 {
			return nil
		}
		n := len(c.Hosts)
		p, err := Schedule(c.Hosts, min(k, n-1+n%2), caps, seed)
		if err != nil {
			return err
		}
		return r.make(ctx, c, p.Slots, load, 1, test)
	}
	if err := first(c.Pings, Caps{}, false, c.Seed); err != nil {
		return nil, err
	}
	if err := first(c.Loads, c.Caps, true, c.Seed+1); err != nil {
		return nil, err
	}
	r.judge(c.Hosts)
	for _, load := range []bool{false, true} {
		results := r.results(load)
		if c.Suspects == 0 || !slices.ContainsFunc(results, func(x Result) bool { return x.Bad }) {
			continue
		}
		again, caps := Second(c.Hosts, results, c.Suspects, c.Retests, c.Seed+2), Caps{}
		if load {
			caps = c.Caps
		}
		if err := r.make(ctx, c, Again(c.Hosts, again, caps), load, 2, test); err != nil {
			return nil, err
		}
	}
	r.judge(c.Hosts)
	r.Culprits = Culprits(c.Hosts, append(r.results(false), r.results(true)...), mostNamed)
	return r, nil
}

// make makes the tests of slots, one slot after the other. The pairs of which a host was busy get
// slots of their own at the end.
func (r *Report) make(ctx context.Context, c Campaign, slots [][]Test, load bool, stage int, test Tester) error {
	var mu sync.Mutex
	for try := 1; len(slots) > 0; try++ {
		var busy []Test
		for _, s := range slots {
			gate := make(chan struct{}, pingsAtOnce)
			var all sync.WaitGroup
			for _, t := range s {
				if ctx.Err() != nil {
					break
				}
				gate <- struct{}{}
				all.Go(func() {
					defer func() { <-gate }()
					v, err := test(ctx, t.A, t.B, load)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case errors.Is(err, ErrBusy):
						r.Refused++
						busy = append(busy, t)
					case err != nil:
						r.Outcomes = append(r.Outcomes, Outcome{Test: t, Load: load, Stage: stage, Value: Value{Refused: err.Error()}})
					default:
						r.Outcomes = append(r.Outcomes, Outcome{Test: t, Load: load, Stage: stage, Value: v})
					}
				})
			}
			all.Wait()
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if try == mostTries {
			r.Left += len(busy)
			return nil
		}
		caps := Caps{}
		if load {
			caps = c.Caps
		}
		slots = Again(c.Hosts, busy, caps)
	}
	return nil
}

// likes are the tests whose values can be compared: of one kind and one distance.
type likes struct {
	load           bool
	sameSite, rack bool
}

func like(hosts []Host, o *Outcome) likes {
	a, b := hosts[o.A], hosts[o.B]
	return likes{o.Load, a.Site == b.Site, a.Rack == b.Rack && a.Site == b.Site}
}

// expected returns what a load test should make: the median of like ones, but no more than its
// sender may send. Hosts of one fleet have links and policies of many rates.
func expected(median, most float64) float64 {
	if most > 0 {
		return min(median, most)
	}
	return median
}

// judge says which tests are bad, by themselves and by the median of like tests.
func (r *Report) judge(hosts []Host) {
	rtts, rates := make(map[likes][]float64), make(map[likes][]float64)
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		if o.RTT != nil {
			rtts[like(hosts, o)] = append(rtts[like(hosts, o)], *o.RTT)
		}
		if o.Rate != nil {
			rates[like(hosts, o)] = append(rates[like(hosts, o)], *o.Rate)
		}
	}
	median := func(of map[likes][]float64) map[likes]float64 {
		out := make(map[likes]float64)
		for k, v := range of {
			out[k] = stats.Median(v)
		}
		return out
	}
	rtt, rate := median(rtts), median(rates)
	spread := make(map[likes]float64)
	for k, v := range rtts {
		away := make([]float64, len(v))
		for i := range v {
			away[i] = math.Abs(v[i] - rtt[k])
		}
		spread[k] = stats.Median(away)
	}
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		k := like(hosts, o)
		o.Bad, o.Reason, o.Disturbed = true, "", false
		switch {
		case o.Refused != "":
			o.Bad = false
		case o.Failed != "":
			o.Reason = o.Failed
		case !o.Load && o.Loss != nil && *o.Loss > badLoss:
			o.Reason = "loss"
		case !o.Load && o.RTT != nil && *o.RTT > max(badRTT*rtt[k]+badDelay, rtt[k]+badSpread*spread[k]):
			o.Reason = "delay"
		case o.Load && o.Rate != nil && *o.Rate < badRate*expected(rate[k], o.Most):
			o.Reason = "rate"
		default:
			o.Bad = false
		}
		if o.Bad && o.Late > tooLate {
			o.Bad, o.Disturbed = false, true
			o.Reason = fmt.Sprintf("not judged: the host that measured was %.1f s late; without that: %s", o.Late, o.Reason)
		}
	}
}

// results returns the verdicts of the tests of one kind, without those that were not made.
func (r *Report) results(load bool) []Result {
	var out []Result
	for _, o := range r.Outcomes {
		if o.Load == load && o.Refused == "" && !o.Disturbed {
			out = append(out, Result{Test: o.Test, Bad: o.Bad})
		}
	}
	return out
}
