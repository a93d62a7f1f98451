package processors

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

const (
	// slowedClock is the part of its highest clock that a processor is allowed at most, from which
	// on a limit is felt: the turbo range of processors makes up to a quarter.
	slowedClock = 0.70
	// deepSleep is an exit latency, in seconds, that a round trip inside a building notices:
	// switches and cards take some tens of microseconds.
	deepSleep = 50e-6
	// quicker is the part of the idle round trip that one under load is, where load keeps
	// processors from sleeping. Load adds delay to every other path.
	quicker = 0.70
)

// cpuPowerState: processors are kept slow, or sleep so deeply between packets that waking up is
// most of a round trip.
//
// Two facts tell. A clock limit below the highest clock while the processor has nothing left: then
// time is clock. And a round trip that is shorter under load than idle, on a path where the exit
// latency of an allowed sleep explains the difference: load keeps processors awake, and nothing
// else makes a loaded path quicker than an empty one.
func cpuPowerState(c *evidence.Case) *evidence.Finding {
	for _, s := range evidence.SpansOf(c) {
		if x := slowed(s); x != nil {
			return x
		}
	}
	return sleepy(c)
}

// slowed: the clock of a busy processor is limited.
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
		Title: fmt.Sprintf("CPU %d of the %s host is %s busy and may run at %d MHz at most, of the %d that it could.",
			p.ID, s.Side, evidence.Percent(busiest.Busy()), p.LimitMHz, p.MaxMHz),
		Evidence: append([]evidence.Evidence{
			{Name: "highest clock allowed", Value: float64(p.LimitMHz), Unit: "megahertz",
				Source: s.Source("scaling_max_freq")},
			{Name: "highest clock possible", Value: float64(p.MaxMHz), Unit: "megahertz",
				Source: s.Source("cpuinfo_max_freq")},
			{Name: "governor", Value: p.Governor, Source: s.Source("scaling_governor")},
		}, classes(s, busiest)...),
		Rejected: []string{fmt.Sprintf("Not too little to do: the processor had %s idle.",
			evidence.Percent(busiest.Idle))},
	}
	if realCard(s) {
		x.Severity = evidence.Warning
	}
	x.Remedy.Text = "Lift the limit (scaling_max_freq, power profile, BIOS) or look for heat and power capping."
	x.Remedy.Proof = "Throughput per busy processor follows the clock when the limit is moved; on an idle host nothing changes."
	x.Remedy.Add(evidence.Candidate{Knob: knob.ID(fmt.Sprintf("cpu:%d/scaling_governor", p.ID)), Side: s.Side,
		Levels: []knob.Value{"performance"},
		Why:    "asks for the highest clock that is allowed"})
	return x
}

// sleepy: an empty path is slower than a loaded one.
func sleepy(c *evidence.Case) *evidence.Finding {
	var idle, loaded *traffic.Distribution
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
			Title: fmt.Sprintf("The round trip is %s on the empty path and %s under load: processors sleep so deeply that waking up takes up to %s.",
				evidence.Seconds(idle.P50), evidence.Seconds(loaded.P50), evidence.Seconds(state.LatencySeconds)),
			Evidence: []evidence.Evidence{
				{Name: "idle round trip, median", Value: idle.P50, Unit: "seconds", Source: "ping before the load"},
				{Name: "round trip beside the load, median", Value: loaded.P50, Unit: "seconds",
					Source: "ping beside the load"},
				{Name: "deepest sleep allowed, " + state.Name, Value: state.LatencySeconds, Unit: "seconds",
					Source: "cpuidle exit latency (" + e.Name + ")"},
			},
			Rejected: []string{fmt.Sprintf("Not a queue: load made the path quicker by %s.",
				evidence.Seconds(idle.P50-loaded.P50))},
		}
		// Half of the round trip is what somebody who cares for latency came to find.
		if loaded.P50 <= 0.5*idle.P50 {
			x.Severity = evidence.Warning
		}
		x.Remedy.Text = "Where latency matters more than power, forbid the deep states to the processors that serve the card (PM QoS, resume latency)."
		x.Remedy.Proof = "Hold cpu_dma_latency low during every second segment: the idle round trip falls by the exit latency; the loaded one stays."
		for _, p := range e.Host.CPUs[:min(len(e.Host.CPUs), 4)] {
			x.Remedy.Add(evidence.Candidate{Knob: knob.ID(fmt.Sprintf("cpu:%d/resume_latency", p.ID)), Side: e.Name,
				Levels: []knob.Value{"20"},
				Why:    "the longest wake-up, in microseconds, that this processor may take"})
		}
		return x
	}
	return nil
}

// deepest is the deepest sleep that any processor may use.
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
