package sockperf

import (
	"context"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// meter conducts one test: it runs the workers through their phases and cuts the intervals. The far
// end takes no part in it.
type meter struct {
	spec         traffic.Spec
	sample       func() (*host.Counters, error)
	phase        *engine.Phase
	progress     func(traffic.Interval)
	workers      []*engine.Worker
	greetWait    time.Duration
	opened, shut func() // called at the start and the end of the measured window; may be nil

	transactions int64         // inside the measured window
	began        time.Duration // on the monotonic clock, like all times here
	cut          edge          // where the last interval ended
}

// edge is what the workers had counted at one moment.
type edge struct {
	at           time.Duration
	transactions int64
	rttNanos     int64
}

func newHistogram() *stats.Histogram { return stats.NewHistogram() }

// adopt prepares worker i.
func (m *meter) adopt(i int) { m.workers[i].RTT = newHistogram() }

// run measures and fills in the result. It returns the error of the first worker that failed, or
// the context's cause.
func (m *meter) run(ctx context.Context, r *traffic.Result) error {
	defer engine.LendProcessors(len(m.workers))()
	cpus := m.spec.NearCPUs
	if len(cpus) == 0 {
		cpus, _ = sys.AllowedCPUs() // unpinned is slower, but not wrong
	}
	// Room for all, so that no worker waits to report its end.
	failed := make(chan error, len(m.workers))
	var wg sync.WaitGroup
	defer func() {
		m.phase.Set(engine.Stopped)
		for _, w := range m.workers {
			w.Wake()
		}
		wg.Wait()
	}()
	r.StartTime = time.Now()
	m.began = sys.Monotonic()
	m.cut = m.count()
	for i, w := range m.workers {
		cpu := engine.CPUOf(cpus, w.Role, i)
		if len(m.spec.NearCPUs) > 0 {
			cpu = m.spec.NearCPUs[i%len(m.spec.NearCPUs)]
		}
		wg.Go(func() {
			if err := w.Run(cpu); err != nil {
				failed <- err
			}
		})
	}
	if err := m.span(ctx, m.spec.WarmUp, failed, r, true); err != nil {
		return err
	}
	// Read before the window opens and after it shuts, because a reading takes milliseconds that
	// must not be inside.
	before := r.HostCounters(m.sample)
	if m.opened != nil {
		m.opened()
	}
	m.phase.Set(engine.Measured)
	open := m.count()
	m.cut = open
	err := m.span(ctx, m.spec.Duration, failed, r, false)
	// From here on nothing new is counted, only answers to messages sent inside the window.
	m.phase.Set(engine.Tail)
	shut := m.count()
	if err != nil {
		return err
	}
	if m.shut != nil {
		m.shut()
	}
	after := r.HostCounters(m.sample)
	// A pinger ends once its late answers are in; other workers are stopped.
	if m.spec.Test != traffic.Ping {
		m.phase.Set(engine.Stopped)
	}
	wg.Wait()
	r.DurationSeconds = (shut.at - open.at).Seconds()
	m.transactions = shut.transactions - open.transactions
	r.RTT = distribution(m.workers)
	r.Ends.Local.Spend(before, after, r.DurationSeconds)
	for i, w := range m.workers {
		if w.CPU >= 0 {
			r.Ends.Local.Placement = append(r.Ends.Local.Placement, traffic.Placement{Stream: i, CPU: w.CPU})
		}
	}
	return nil
}

// span waits for d and cuts intervals.
func (m *meter) span(ctx context.Context, d time.Duration, failed <-chan error, r *traffic.Result, omitted bool) error {
	end := sys.Monotonic() + d
	for {
		now := sys.Monotonic()
		if now >= end {
			return nil
		}
		next := m.cut.at + m.spec.Interval
		// A remainder of less than a tenth of an interval is added to the previous one; its own
		// mean would be noise.
		if end-next < m.spec.Interval/10 {
			next = end
		}
		t := time.NewTimer(next - now)
		select {
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		case err := <-failed:
			t.Stop()
			return err
		case <-t.C:
		}
		m.interval(r, omitted)
	}
}

// interval reports the counts since the last one.
func (m *meter) interval(r *traffic.Result, omitted bool) {
	now := m.count()
	seconds := (now.at - m.cut.at).Seconds()
	n := now.transactions - m.cut.transactions
	i := traffic.Interval{StartSeconds: (m.cut.at - m.began).Seconds(), EndSeconds: (now.at - m.began).Seconds(),
		Omitted: omitted}
	i.TransactionsPerSec = perSecond(n, seconds)
	if n > 0 {
		i.RTTSeconds = float64(now.rttNanos-m.cut.rttNanos) / float64(n) / 1e9
	}
	m.cut = now
	r.Intervals = append(r.Intervals, i)
	m.progress(i)
}

// count sums the workers' counts.
func (m *meter) count() edge {
	e := edge{at: sys.Monotonic()}
	for _, w := range m.workers {
		e.transactions += w.Transactions.Load()
		e.rttNanos += w.RTTNanos.Load()
	}
	return e
}
