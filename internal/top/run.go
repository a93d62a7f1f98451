package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// How often the host is judged while the view is open, for how long it is watched for that, and the
// share of a processor that this may cost: a host with many interfaces is costly to read, so it is
// judged less often.
const (
	judgeEvery = 10 * time.Second
	judgeFor   = 3 * time.Second
	judgeShare = 0.0025
)

// latest is how many changes are shown.
const latest = 10

// queued is how many readings wait for a slow screen before the oldest is dropped.
const queued = 64

// Source is where a live view reads.
type Source struct {
	Interval time.Duration
	StateDir string // where the journal is
	NoState  error  // why that is not known; nil: it is
	// Elsewhere returns why that journal does not show what is in force on this host; empty: it does.
	Elsewhere func() string
}

// readings takes a reading each interval and calls give with the rates between two, until ctx ends
// or give returns false. A late reading does not delay the next ones.
func (o Source) readings(ctx context.Context, sampler *sample.Sampler, give func(Reading) bool) error {
	meter := NewMeter()
	tick := time.NewTicker(o.Interval)
	defer tick.Stop()
	for {
		r, err := sampler.Read(time.Time{})
		if err != nil {
			return err
		}
		if t, ok := meter.Take(r); ok && !give(t) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// judge returns a verdict on this host without loading it.
func judge(ctx context.Context, d time.Duration) Verdict {
	v, err := loop.Watch(ctx, loop.WatchOptions{Duration: d})
	if ctx.Err() != nil {
		return Verdict{Err: errors.New("interrupted before the host was judged")}
	}
	if err != nil {
		return Verdict{Err: err}
	}
	return Verdict{Time: time.Now(), Findings: v.Findings}
}

// changes reads the journal without its lock.
func (o Source) changes() Journal {
	if o.NoState != nil {
		return Journal{Err: o.NoState}
	}
	all, err := journal.History(durable.OS(), o.StateDir)
	var unsafe *durable.TrustError
	switch {
	case errors.As(err, &unsafe): // an fs.ErrPermission too
		return Journal{Err: err}
	case errors.Is(err, fs.ErrPermission):
		return Journal{Err: fmt.Errorf("the journal in %s may not be read by this user", o.StateDir)}
	case err != nil:
		return Journal{Err: err}
	}
	all = slices.Clone(all[max(len(all)-latest, 0):])
	slices.Reverse(all)
	j := Journal{Changes: all}
	if o.Elsewhere != nil {
		if why := o.Elsewhere(); why != "" {
			j.Err = errors.New(why)
		}
	}
	return j
}

// glance is what is read of a host for the open interface.
type glance struct {
	counters   *host.Counters
	interrupts []host.CardInterrupts
}

func look() (*glance, error) {
	c, err := (host.Root{}).Counters()
	if err != nil {
		return nil, err
	}
	// A host without interrupt counts, or whose kernel hides them, still has counters.
	cards, _ := (host.Root{}).CardInterrupts()
	return &glance{c, cards}, nil
}

// served returns the interrupts of an interface between two glances.
func served(name string, before, after *glance, seconds float64) []Served {
	type place struct{ number, cpu int }
	was := make(map[place]uint64)
	for _, card := range before.interrupts {
		for _, i := range card.Interrupts {
			for _, c := range i.Counts {
				was[place{i.Number, c.CPU}] = c.Total
			}
		}
	}
	var all []Served
	for _, card := range after.interrupts {
		if card.Interface != name {
			continue
		}
		for _, i := range card.Interrupts {
			s := Served{Number: i.Number, Name: i.Name}
			for _, c := range i.Counts {
				if n := was[place{i.Number, c.CPU}]; c.Total > n {
					rate := float64(c.Total-n) / seconds
					s.Rate, s.CPUs = s.Rate+rate, append(s.CPUs, OnCPU{c.CPU, rate})
				}
			}
			sorting.StableFunc(s.CPUs, func(a, b OnCPU) int { return cmp.Compare(b.Rate, a.Rate) })
			if s.Rate > 0 {
				all = append(all, s)
			}
		}
	}
	sorting.StableFunc(all, func(a, b Served) int { return cmp.Compare(b.Rate, a.Rate) })
	return all
}

// moved returns the counters and interrupts of an interface that changed between two glances.
func moved(name string, before, after *glance) Moved {
	m := Moved{Interface: name}
	d := host.Sub(before.counters, after.counters)
	if d.Seconds <= 0 {
		return m
	}
	m.Interrupts = served(name, before, after, d.Seconds)
	for key, n := range d.Values {
		family, rest, _ := strings.Cut(key, ".")
		counter, ours := strings.CutPrefix(rest, name+".")
		if n > 0 && ours && (family == "ethtool" || family == "nic" || family == "qdisc") {
			m.Counters = append(m.Counters, Counter{Name: family + " " + counter, Rate: float64(n) / d.Seconds})
		}
	}
	sorting.Func(m.Counters,
		func(a, b Counter) int { return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Name, b.Name)) })
	return m
}

// Run shows the live view of this host until the user leaves or ctx ends.
func Run(ctx context.Context, t Terminal, begin Begin, source Source) error {
	sampler, err := openSampler()
	if err != nil {
		return err
	}
	defer sampler.Close()
	begin.Interval = source.Interval
	queue := make(chan Reading, queued)
	return Show(ctx, t, NewState(begin),
		func(ctx context.Context, _ *Handle) error {
			return source.readings(ctx, sampler, func(r Reading) bool { return put(queue, r) })
		},
		func(ctx context.Context, h *Handle) error {
			for {
				select {
				case <-ctx.Done():
					return nil
				case r := <-queue:
					h.Change(func(s *State) { s.Reading(r) })
				}
			}
		},
		source.judgements, source.counted, source.talked)
}

func openSampler() (*sample.Sampler, error) { return sample.New(sample.Options{Tolerance: -1}) }

// put adds a reading to a queue. It never waits: a full queue drops its oldest reading.
func put(queue chan Reading, r Reading) bool {
	for {
		select {
		case queue <- r:
			return true
		default:
		}
		select {
		case <-queue:
		default:
		}
	}
}

// judgements keeps the verdict and the changes up to date.
func (o Source) judgements(ctx context.Context, h *Handle) error {
	for {
		begin, before := time.Now(), processorTime()
		j := o.changes()
		h.Change(func(s *State) { s.Changed(j) })
		v := judge(ctx, judgeFor)
		h.Change(func(s *State) { s.Judged(v) })
		// The cost includes the readings meanwhile, so it is a little too high.
		pause := max(judgeEvery, time.Duration(float64(processorTime()-before)/judgeShare)) - time.Since(begin)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func processorTime() time.Duration {
	user, system := sys.ProcessTimes()
	return user + system
}

// counted reads the counters of the open interface. They are costly, so without one it reads
// nothing.
func (o Source) counted(ctx context.Context, h *Handle) error {
	tick := time.NewTicker(max(o.Interval, time.Second))
	defer tick.Stop()
	var before *glance
	for {
		if name := h.Watched(); name == "" {
			before = nil
		} else if after, err := look(); err != nil {
			h.Change(func(s *State) { s.Counted(Moved{Interface: name, Err: err}) })
		} else {
			if before != nil {
				m := moved(name, before, after)
				h.Change(func(s *State) { s.Counted(m) })
			}
			before = after
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
