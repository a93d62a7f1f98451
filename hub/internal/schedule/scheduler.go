package schedule

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/peer/reach"
	"github.com/linerate/linerate/internal/traffic/lease"
)

// longestBackoff is the longest pause for a target that does not answer, unless its interval is
// longer still.
const longestBackoff = time.Hour

// Options of a scheduler.
type Options struct {
	Schedules []Config
	Host      string // of this host, for series and documents
	Version   string // of this program
	// state directories of linerate on this host: no run starts or continues while a tune holds the
	// journal in one of them
	States []string
	Dir    string // where state survives a restart; empty: it does not
	FS     durable.FS
	Seed   uint64 // of the random delays; 0: the host's name, so that hosts differ and a restart does not
	Log    *slog.Logger

	Append func(*sample.Reading) error                   // of a [record.Store]; nil: the results are not recorded
	Put    func(e timeline.Event, document []byte) error // of a [timeline.Store]; nil: no events
	// Busy returns the rate of an interface in its busier direction; false: unknown. Schedules with
	// UnlessBusyAbove need it.
	Busy func(ctx context.Context, iface string) (bitsPerSecond float64, known bool)
	// Lease is the right to load this host, which runs with a load test take; nil: they need none
	Lease *lease.Lease

	// tests put their own here
	open func(ctx context.Context, target string, o peer.ConnectOptions) (*reach.Way, error)
	// why nothing may be measured now, or ""
	tuning func() string
}

// plan is one measurement and its state. Times are since the scheduler's start.
type plan struct {
	Config
	amounts amounts
	limit   time.Duration
	worst   int64

	slot     int64         // the next slot, from 0
	due      time.Duration // when the slot begins, its delay included
	last     time.Duration // start of the last run
	ran      bool          // last is valid
	failures int           // failures in a row
	spent    budget
	skip     *timeline.Event // the event for runs skipped for one reason
	skips    int
	reason   string
}

// Scheduler runs measurements at intervals. Its methods may be called from several goroutines.
type Scheduler struct {
	o       Options
	started time.Time // with a monotonic reading, for all times since
	seed    uint64
	plans   []*plan
	series  map[string]*sample.Series

	mu       sync.Mutex
	cells    map[Cell]Cell // by their identities
	problems map[string]string
}

// New makes a scheduler, with its state from before a restart.
func New(o Options) (*Scheduler, error) {
	if err := Validate(o.Schedules); err != nil {
		return nil, err
	}
	if o.FS == nil {
		o.FS = durable.OS()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.open == nil {
		o.open = reach.Open
	}
	if o.tuning == nil {
		o.tuning = func() string { return tuning(o.FS, o.States) }
	}
	s := &Scheduler{o: o, started: time.Now(), seed: o.Seed, series: make(map[string]*sample.Series),
		cells: make(map[Cell]Cell), problems: make(map[string]string)}
	if s.seed == 0 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(o.Host)) // cannot fail
		s.seed = h.Sum64()
	}
	for _, c := range o.Schedules {
		a, err := c.check()
		if err != nil {
			return nil, err
		}
		if a.busy > 0 && o.Busy == nil {
			return nil, fmt.Errorf("schedule %s: unless_busy_above: the load of interfaces is unknown", c.Name)
		}
		s.plans = append(s.plans, &plan{Config: c, amounts: a, limit: c.limit(a), worst: c.worst(a)})
	}
	s.load()
	for _, p := range s.plans {
		s.plan(p, 0)
	}
	return s, nil
}

// Run makes measurements until the context ends, one after the other: its loop is the only one that
// runs them. It gives up a run under way when the context ends.
func (s *Scheduler) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if len(s.plans) == 0 {
			<-ctx.Done()
			return
		}
		p := slices.MinFunc(s.plans, func(a, b *plan) int { return cmp.Compare(a.due, b.due) })
		timer := time.NewTimer(p.due - s.clock())
		select {
		case <-timer.C:
			s.turn(ctx, p)
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// clock returns the time since the start. Runs follow this clock alone: setting the host's clock
// does not affect it.
func (s *Scheduler) clock() time.Duration { return time.Since(s.started) }

// turn handles a slot that is due.
func (s *Scheduler) turn(ctx context.Context, p *plan) {
	now := s.clock()
	if current := int64(now / p.Every.Duration()); current > p.slot {
		// Its whole slot passed while other runs went on. The scheduler does not make up for it;
		// the current slot has its own delay.
		s.o.Log.Info("measurement missed", "name", p.Name, "slots", current-p.slot)
		s.plan(p, current)
		if p.due > now {
			return
		}
	}
	if reason := s.hindered(ctx, p, now); reason != "" {
		if ctx.Err() == nil {
			s.skipped(p, reason)
			s.plan(p, p.slot+1)
		}
		return
	}
	s.unskipped(p)
	p.last, p.ran = now, true
	p.spent.add(now, p.worst)
	s.save()
	ok := s.measure(ctx, p)
	if ctx.Err() != nil {
		return
	}
	next := int64(1)
	if ok {
		p.failures = 0
	} else {
		p.failures++
		next = min(1<<min(p.failures-1, 30), max(1, int64(longestBackoff/p.Every.Duration())))
	}
	s.plan(p, p.slot+next)
	s.save()
}

// plan sets the next slot and when the run in it starts. After a late run, the next one is never so
// early that two fall within one interval less the delay.
func (s *Scheduler) plan(p *plan, slot int64) {
	every := p.Every.Duration()
	p.slot = slot
	p.due = time.Duration(slot)*every + s.delay(p, slot)
	if p.ran {
		p.due = max(p.due, p.last+every-p.jitter())
	}
	// A slot without time left counts as passed.
	for p.due >= time.Duration(p.slot+1)*every {
		p.slot++
	}
}

// delay returns the random delay of a slot's start: uniform, and the same for the same host, name
// and slot.
func (s *Scheduler) delay(p *plan, slot int64) time.Duration {
	j := p.jitter()
	if j <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.Name)) // cannot fail
	r := rand.New(rand.NewPCG(s.seed^h.Sum64(), uint64(slot)))
	return time.Duration(r.Int64N(int64(j)))
}

// hindered returns why a run must not start now, or "".
func (s *Scheduler) hindered(ctx context.Context, p *plan, now time.Duration) string {
	if most := p.amounts.bytesPerDay; most > 0 && p.spent.last(now)+p.worst > most {
		return "bytes_per_day is used up"
	}
	if reason := s.o.tuning(); reason != "" {
		return reason
	}
	if p.amounts.busy > 0 {
		return s.tooBusy(ctx, p)
	}
	return ""
}

// Warnings returns what does not work, one sentence each, by the names of the measurements.
func (s *Scheduler) Warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []string{}
	for _, p := range s.plans {
		if problem := s.problems[p.Name]; problem != "" {
			all = append(all, "measurement "+p.Name+": "+problem)
		}
	}
	return all
}

// problem remembers what does not work, or "".
func (s *Scheduler) problem(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems[name] = text
}
