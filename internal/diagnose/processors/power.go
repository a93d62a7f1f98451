package processors

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

const (
	// slowedClock is the share of the maximum clock below which a limit matters: turbo makes up as
	// much as a quarter of it.
	slowedClock = 0.70
	// deepSleep is an exit latency, in seconds, that is noticeable in a round trip inside a
	// building: switches and NICs take some tens of microseconds.
	deepSleep = 50e-6
	// quicker is the share of the idle round trip that the loaded one reaches where load keeps CPUs
	// from sleeping. On any other path load adds delay.
	quicker = 0.70
)

// cpuPowerState finds CPUs that are kept slow, or that sleep so deeply between packets that waking
// up takes most of a round trip.
//
// Two facts show it. One is a clock limit below the maximum while the CPU has no time left. The
// other is a round trip that is shorter under load than idle, on a path where the exit latency of
// an allowed idle state explains the difference: load keeps CPUs awake, and nothing else makes a
// loaded path faster than an empty one.
func cpuPowerState(c *evidence.Case) *evidence.Finding {
	for _, s := range evidence.SpansOf(c) {
		if x := slowed(s); x != nil {
			return x
		}
	}
	return sleepy(c)
}

// slowed finds a busy CPU with a limited clock.
func slowed(s *evidence.Span) *evidence.Finding {
	if s.Host == nil || !s.Loaded() {
		return nil
	}
	busiest, ok := most(judged(s), busy)
	if !ok || busiest.Busy() < 0.9 {
		return nil
	}
	i := slices.IndexFunc(s.Host.CPUs, func(p host.CPU) bool { return p.ID == busiest.CPU })
	if i < 0 {
		return nil
	}
	p := s.Host.CPUs[i]
	if p.LimitMHz <= 0 || p.MaxMHz <= 0 || float64(p.LimitMHz) > slowedClock*float64(p.MaxMHz) {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.CPUPowerState, Severity: evidence.Notice, Where: s.Side, Confidence: 0.75,
		Title: fmt.Sprintf("CPU %d of the %s host is %s busy, but its clock is limited to %d MHz of %d MHz.",
			p.ID, s.Side, evidence.Percent(busiest.Busy()), p.LimitMHz, p.MaxMHz),
		Evidence: append([]evidence.Evidence{
			{Name: "highest clock allowed", Value: float64(p.LimitMHz), Unit: "megahertz",
				Source: s.Source("scaling_max_freq")},
			{Name: "highest clock possible", Value: float64(p.MaxMHz), Unit: "megahertz",
				Source: s.Source("cpuinfo_max_freq")},
			{Name: "governor", Value: p.Governor, Source: s.Source("scaling_governor")},
		}, classes(s, busiest)...),
		Rejected: []string{fmt.Sprintf("Not a lack of work: the CPU was idle for %s of the time.",
			evidence.Percent(busiest.Idle))},
	}
	if realCard(s) {
		x.Severity = evidence.Warning
	}
	x.Remedy.Text = "Lift the limit (scaling_max_freq, power profile, BIOS), or look for heat and power capping."
	x.Remedy.Proof = "Throughput per busy CPU follows the clock when the limit changes; " +
		"on an idle host nothing changes."
	x.Remedy.Add(evidence.Candidate{Knob: knob.ID(fmt.Sprintf("cpu:%d/scaling_governor", p.ID)), Side: s.Side,
		Levels: []knob.Value{"performance"},
		Why:    "requests the highest clock that is allowed"})
	return x
}

// sleepy finds an empty path that is slower than a loaded one.
func sleepy(c *evidence.Case) *evidence.Finding {
	var idle, loaded *stats.Latencies
	for i := range c.Runs {
		r := &c.Runs[i]
		switch {
		case r.RTT == nil:
		case r.Test == traffic.Ping:
			idle = r.RTT
		case r.Test == traffic.Stream:
			loaded = r.RTT
		}
	}
	if idle == nil || loaded == nil || idle.P50 <= 0 || loaded.P50 <= 0 || loaded.P50 > quicker*idle.P50 {
		return nil
	}
	for _, e := range []evidence.End{{Name: "near", Host: c.Near}, {Name: "far", Host: c.Far}} {
		state, ok := deepest(e.Host)
		if !ok || state.LatencySeconds < deepSleep || state.LatencySeconds > idle.P50 ||
			idle.P50-loaded.P50 > 4*state.LatencySeconds {
			continue
		}
		x := &evidence.Finding{
			Code: evidence.CPUPowerState, Severity: evidence.Notice, Where: e.Name, Confidence: 0.6,
			Title: fmt.Sprintf("The round trip is %s on the empty path and %s under load: "+
				"CPUs sleep so deeply that waking up takes up to %s.",
				evidence.Seconds(idle.P50), evidence.Seconds(loaded.P50), evidence.Seconds(state.LatencySeconds)),
			Evidence: []evidence.Evidence{
				{Name: "idle round trip, median", Value: idle.P50, Unit: "seconds", Source: "ping before the load"},
				{Name: "round trip beside the load, median", Value: loaded.P50, Unit: "seconds",
					Source: "ping beside the load"},
				{Name: "deepest sleep allowed, " + state.Name, Value: state.LatencySeconds, Unit: "seconds",
					Source: "cpuidle exit latency (" + e.Name + ")"},
			},
			Rejected: []string{fmt.Sprintf("Not a queue: load made the path faster by %s.",
				evidence.Seconds(idle.P50-loaded.P50))},
		}
		// Half of the round trip matters to any user who cares about latency.
		if loaded.P50 <= 0.5*idle.P50 {
			x.Severity = evidence.Warning
		}
		x.Remedy.Text = "If latency matters more than power, forbid deep idle states on the CPUs that serve the " +
			"NIC (PM QoS, resume latency)."
		x.Remedy.Proof = "Hold cpu_dma_latency low during every second segment: " +
			"the idle round trip falls by the exit latency; the loaded one stays the same."
		for _, p := range e.Host.CPUs[:min(len(e.Host.CPUs), 4)] {
			x.Remedy.Add(evidence.Candidate{Knob: knob.ID(fmt.Sprintf("cpu:%d/resume_latency", p.ID)), Side: e.Name,
				Levels: []knob.Value{"20"},
				Why:    "the longest exit latency, in microseconds, that this CPU may have"})
		}
		return x
	}
	return nil
}

// deepest returns the deepest idle state that any CPU may use.
func deepest(s *host.Snapshot) (state host.IdleState, ok bool) {
	if s == nil || s.Idle == nil {
		return state, false
	}
	for _, x := range s.Idle.States {
		if x.Disabled == "" && x.LatencySeconds >= state.LatencySeconds {
			state, ok = x, true
		}
	}
	return state, ok
}
