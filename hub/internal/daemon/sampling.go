package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/hub/internal/record/peak"
	"github.com/linerate/linerate/hub/internal/record/remote"
	"github.com/linerate/linerate/hub/internal/rules"
	"github.com/linerate/linerate/hub/internal/schedule"
	"github.com/linerate/linerate/hub/internal/switches"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// The sources of readings, as the board names them.
const (
	sourceHost = "host"
	sourceHub  = "hub"
	sourceRuns = "measurements"

	sourceRules = "rules"
)

// interval is the time between two readings of this host.
const interval = time.Second

// sampleHost reads this host each second until the context ends. It is the only part of the hub
// with a deadline, so it does nothing that can block: it appends to memory and to a log that the
// kernel writes, and a disk that refuses costs no time (package record).
func (d *daemon) sampleHost(ctx context.Context, s *sample.Sampler) {
	// Full seconds of the wall clock, also after missed ticks and after the clock was set: samples
	// of all hosts have the same times.
	var peaks peak.Keeper
	for tick := range ticks(ctx, interval) {
		r, err := s.Read(tick)
		if d.board.problem("sampling", err) {
			d.report("sampling", err)
		}
		if err != nil {
			continue
		}
		d.append(r)
		if over := peaks.Take(r); over != nil {
			d.append(over)
		}
		d.board.put(sourceHost, r)
		d.follower.Happened(r)
	}
}

// append adds a reading to the history and to the remote write queues. Neither waits.
func (d *daemon) append(r *sample.Reading) {
	err := d.store.Append(r)
	if d.board.problem("history", err) {
		d.report("history", err)
	}
	for _, w := range d.writers {
		w.Append(r)
	}
}

// busy returns the rate of an interface of this host in its busier direction, in bits per second,
// over the last ten seconds of the history; false if the history does not have it.
func (d *daemon) busy(ctx context.Context, name string) (bitsPerSecond float64, known bool) {
	return d.busyAt(ctx, name, time.Now())
}

// busyAt is busy at a given time.
func (d *daemon) busyAt(ctx context.Context, name string, at time.Time) (bitsPerSecond float64, known bool) {
	for _, direction := range []string{"receive", "transmit"} {
		found, err := d.store.Vector(ctx,
			fmt.Sprintf("8 * rate(linerate_interface_%s_bytes_total{host=%q,interface=%q}[10s])", direction,
				d.config.Host, name), at)
		if err != nil || len(found) != 1 {
			return 0, false
		}
		bitsPerSecond = max(bitsPerSecond, found[0].Value)
	}
	return bitsPerSecond, true
}

// sampleRules keeps the counters of the packet filter's rules, if this user or the agent may read
// them. A host without rules, or without an agent, has no such series, which is no problem.
func (d *daemon) sampleRules(ctx context.Context) {
	source := newHostSource(d.config)
	var keeper rules.Keeper
	for tick := range ticks(ctx, rules.Interval) {
		counts, left, err := source.Rules(ctx)
		if errors.Is(err, read.ErrChanging) {
			continue // the next answer has them
		}
		closed, unreadable := errors.AsType[*closedError](err)
		if unreadable && noAgent(closed.agent) || errors.Is(err, errors.ErrUnsupported) ||
			errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
			err = nil
		}
		if d.board.problem("rules", err) {
			d.report("rules", err)
		}
		if err != nil {
			continue
		}
		r := keeper.Take(tick, counts, left)
		if len(r.Points)+len(r.Ended) > 0 {
			d.append(r)
			d.board.put(sourceRules, r)
		}
	}
}

// measured takes the results of a schedule.
func (d *daemon) measured(r *sample.Reading) error {
	d.append(r)
	d.board.put(sourceRuns, r)
	return nil
}

// report logs a problem when it appears and when it disappears.
func (d *daemon) report(part string, err error) {
	if err != nil {
		d.log.Warn(part+" has a problem", "cause", err)
		return
	}
	d.log.Info(part + " works again")
}

// The hub's own state, each ten seconds.
var (
	ownMemory = &sample.Metric{Name: "linerate_hub_resident_memory_bytes", Kind: sample.Gauge,
		Help: "Memory of the hub in RAM (/proc/self/statm)."}
	ownHeap = &sample.Metric{Name: "linerate_hub_heap_bytes", Kind: sample.Gauge,
		Help: "Memory of the hub's heap objects (runtime/metrics)."}
	ownStart = &sample.Metric{Name: "linerate_hub_start_time_seconds", Kind: sample.Gauge,
		Help: "When the hub started, in Unix time."}
	ownCPU = &sample.Metric{Name: "linerate_hub_cpu_seconds_total", Kind: sample.Counter,
		Help: "CPU time of the hub (getrusage)."}
	ownEvents = &sample.Metric{Name: "linerate_hub_events", Kind: sample.Gauge, Help: "Events that the hub keeps."}
)

// Metrics returns the metrics of the hub itself.
func Metrics() []*sample.Metric {
	return []*sample.Metric{ownMemory, ownHeap, ownStart, ownCPU, ownEvents}
}

// AllMetrics returns the metrics of everything that a hub keeps, sorted by name.
func AllMetrics() []*sample.Metric {
	all := slices.Concat(sample.Metrics(), peak.Metrics(), rules.Metrics(), schedule.Metrics(), switches.Metrics(),
		record.Metrics(),
		remote.Metrics(), Metrics())
	slices.SortFunc(all, func(a, b *sample.Metric) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// ownInterval is the time between two readings of the hub itself, which change slowly.
const ownInterval = 10 * time.Second

func (d *daemon) sampleSelf(ctx context.Context) {
	series := make(map[*sample.Metric]*sample.Series)
	for _, m := range Metrics() {
		series[m] = &sample.Series{Metric: m}
	}
	for tick := range ticks(ctx, ownInterval) {
		r := &sample.Reading{Time: tick}
		put := func(m *sample.Metric, v float64) {
			r.Points = append(r.Points, sample.Point{Series: series[m], Value: v})
		}
		var heap runtime.MemStats
		runtime.ReadMemStats(&heap)
		put(ownHeap, float64(heap.HeapAlloc))
		put(ownStart, float64(d.started.Unix()))
		put(ownEvents, float64(d.events.Status().Events))
		if n, err := resident(); err == nil {
			put(ownMemory, float64(n))
		}
		user, system := sys.ProcessTimes()
		put(ownCPU, (user + system).Seconds())
		for _, w := range d.writers {
			r.Points = append(r.Points, w.Own()...)
		}
		d.append(r)
		r.Points = append(r.Points, d.store.Own()...) // the history appends these itself
		d.board.put(sourceHub, r)
	}
}

// resident returns the resident memory of this process in bytes, from the second field of
// /proc/self/statm, which counts pages.
func resident() (int64, error) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		return 0, fmt.Errorf("read /proc/self/statm: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// ticks yields the full intervals of the wall clock until the context ends. It skips those that
// pass while the caller is busy.
func ticks(ctx context.Context, every time.Duration) func(yield func(time.Time) bool) {
	return func(yield func(time.Time) bool) {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			tick := time.Now().Truncate(every).Add(every)
			timer.Reset(time.Until(tick))
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			if !yield(tick) {
				return
			}
		}
	}
}
