package traffic

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// Thresholds of the warnings about the hosts themselves. Two per cent of steal already moves a
// throughput by more than the effects that a user looks for, and a CPU that idled for less than two
// per cent of the window had no capacity left.
const (
	maxStealShare = 0.02 // of the time of all CPUs
	minIdleShare  = 0.02 // of one CPU: below it the CPU may be what was measured
)

// end sums up what this end saw and spent inside the window.
func (s *sampler) end(name string) End {
	e := End{Host: name, Drops: []drops.Drop{}}
	if d := e.Spend(s.window.before, s.window.after, (s.window.shut.at - s.window.open.at).Seconds()); d != nil {
		e.Drops = drops.Find(e.Counters, d.Drivers)
	}
	for id, used := range s.window.shutThreads {
		e.TestCPUSeconds += (used - s.window.openThreads[id]).Seconds()
	}
	for i, w := range s.workers {
		if w.Conn != nil && s.flows[i].Known() {
			e.TCP = append(e.TCP, s.flows[i].Report(w.Role == engine.Sender))
		}
		if w.CPU >= 0 {
			e.Placement = append(e.Placement, Placement{Stream: i, CPU: w.CPU})
		}
	}
	return e
}

// HostCounters reads counters by sample, which may be nil. If it fails, the result has the reason
// as a warning.
func (r *Result) HostCounters(sample func() (*host.Counters, error)) *host.Counters {
	if sample == nil {
		return nil
	}
	c, err := sample()
	if err != nil {
		r.Warnings = append(r.Warnings, fmt.Sprintf("no counters of this host: %v", err))
		return nil
	}
	return c
}

// Spend fills in what the host spent and counted between two readings around a window of inside
// seconds, and returns the difference of the readings. It does nothing, and returns nil, without
// both.
//
// The counters are read before and after the window, on a busy host well before and after. The
// share of the time outside is subtracted from the CPU time.
func (e *End) Spend(before, after *host.Counters, inside float64) *host.Counters {
	if before == nil || after == nil {
		return nil
	}
	d := host.Sub(before, after)
	e.CPUs = d.CPUs
	share := 1.0
	if inside > 0 && d.Seconds > inside {
		share = inside / d.Seconds
	}
	e.spend(d.CPUs, share)
	e.Counters = make(map[string]uint64)
	for name, v := range d.Values {
		if v != 0 {
			e.Counters[name] = v
		}
	}
	return d
}

// spend fills in the time that all CPUs together spent not idling, by class. Steal is time that
// this host did not get. Only share of the time counts.
func (e *End) spend(cpus []host.CPUTimes, share float64) {
	var all host.CPUTimes
	for _, c := range cpus {
		if c.CPU == -1 { // the kernel's own sum of all CPUs, the line "cpu" of /proc/stat
			all = c
			break
		}
		all.User, all.System, all.SoftIRQ, all.IRQ = all.User+c.User, all.System+c.System, all.SoftIRQ+c.SoftIRQ,
			all.IRQ+c.IRQ
	}
	e.UserSeconds, e.SystemSeconds = all.User*share, all.System*share
	e.SoftIRQSeconds, e.IRQSeconds = all.SoftIRQ*share, all.IRQ*share
	e.CPUSeconds = all.Busy() * share
}

// perUnit divides the CPU time by what was carried; the payload was carried in scale times the
// window of the CPU time.
func (e *End) perUnit(bytes int64, packets uint64, scale float64) {
	if bytes > 0 {
		e.CPUSecondsPerGigabyte = scale * e.CPUSeconds / (float64(bytes) / 1e9)
		e.TestCPUSecondsPerGigabyte = scale * e.TestCPUSeconds / (float64(bytes) / 1e9)
	}
	if packets > 0 {
		e.CPUSecondsPerMillion = scale * e.CPUSeconds / (float64(packets) / 1e6)
	}
}

// doubts returns the reasons to doubt this end's numbers, one sentence each.
func (s *sampler) doubts(e End, name string) []string {
	out := slices.Clone(s.warnings)
	if name == "" {
		name = "this host"
	}
	for _, cpu := range e.CPUs {
		total := cpu.User + cpu.System + cpu.IRQ + cpu.SoftIRQ + cpu.Steal + cpu.Idle
		if total <= 0 {
			continue
		}
		if share := cpu.Steal / total; cpu.CPU == -1 && share > maxStealShare {
			out = append(out, fmt.Sprintf("the hypervisor took %.1f %% of the CPU time of %s for other guests",
				100*share, name))
		}
		// Niced programs give way to the test.
		if free := (cpu.Idle + cpu.Nice) / total; cpu.CPU >= 0 && free < minIdleShare && total > 0.5 {
			out = append(out, fmt.Sprintf("CPU %d of %s was %.0f %% busy and may be what was measured", cpu.CPU, name,
				100*(1-free)))
		}
	}
	return append(out, s.unsteady(name)...)
}

// unsteady checks the series of the measured window in steps of half a second or more, in which the
// jitter of single bins averages out.
func (s *sampler) unsteady(name string) []string {
	const step, fewest = 10, 5
	if s.scheduled || len(s.series) < step*fewest || stats.Mean(s.series) == 0 {
		return nil // too short to judge, or this end only sends
	}
	var coarse []float64
	for i := 0; i+step <= len(s.series); i += step {
		coarse = append(coarse, stats.Mean(s.series[i:i+step]))
	}
	var out []string
	for _, w := range stats.CheckSeries(coarse, 0) {
		out = append(out, fmt.Sprintf("series measured at %s: %s", name, w.Text))
	}
	return out
}
