package loop

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/kernel/procfs"
	"github.com/linerate/linerate/internal/traffic"
)

// The phases of a load test, in their order: traffic.LoadPoint.Phase.
const (
	phaseIdle = "idle"
	phaseUp   = "up"
	phaseDown = "down"
	phaseBoth = "both"
)

const (
	// loadWarmUp is cut from the front of every loaded phase: slow start fills the queues in some
	// round trips, and the test measures full ones. A short phase uses half of its time.
	loadWarmUp = 500 * time.Millisecond
	// loadSteps is the least number of points of the curve per phase, if intervals may be that
	// short.
	loadSteps = 10
	// shortestPhase has 25 pings at the default gap, and their 90th percentile two above it.
	shortestPhase = 250 * time.Millisecond
	// shortestStep is the shortest interval of tests.
	shortestStep = 100 * time.Millisecond
)

// loadPhase is one test of a load test.
type loadPhase struct {
	name string
	spec traffic.Spec
}

// loadPhases returns the tests of a load test: pings alone, then beside streams up, down, and in
// both directions. They share its duration equally, with at least a quarter of a second each. The
// caller runs them one after the other, each with its own connections, and passes the results to
// assembleLoad: a far side need not know load tests. Errors are traffic.ErrBadSpec.
func loadPhases(s traffic.Spec) ([]loadPhase, error) {
	s, err := s.Normalize()
	if err != nil {
		return nil, err
	}
	each := max(s.Duration/4, shortestPhase)
	// Interim results are the points of the curve, so they are more frequent than on a screen.
	gap := min(s.Gap, each)
	interval := min(s.Interval, max(each/loadSteps, shortestStep))
	// Clear what does not apply to a stream.
	stream := s
	stream.Test, stream.Gap, stream.ProbeGap = traffic.Stream, 0, gap
	stream.Duration, stream.WarmUp, stream.Interval = each, min(loadWarmUp, each/2), interval
	phases := []loadPhase{{phaseIdle, traffic.Spec{
		Test: traffic.Ping, Direction: traffic.Up, Streams: 1, Duration: each, Interval: interval,
		RequestBytes: s.RequestBytes, Gap: gap, TOS: s.TOS,
	}}}
	for _, p := range []struct {
		name      string
		direction traffic.Direction
	}{{phaseUp, traffic.Up}, {phaseDown, traffic.Down}, {phaseBoth, traffic.Bidir}} {
		stream.Direction = p.direction
		phases = append(phases, loadPhase{p.name, stream})
	}
	return phases, nil
}

// assembleLoad combines the results of the phases of a load test, in the order of loadPhases. A
// phase without a result is nil, and missing. Without the idle phase, or without any loaded one, it
// returns traffic.ErrNoAnswer.
func assembleLoad(spec traffic.Spec, phases []*traffic.Result) (*traffic.Result, error) {
	names := []string{phaseIdle, phaseUp, phaseDown, phaseBoth}
	if len(phases) != len(names) || phases[0] == nil || phases[0].RTT == nil {
		return nil, fmt.Errorf("%s test: %w while the path is idle", spec.Test, traffic.ErrNoAnswer)
	}
	idle := phases[0]
	l := &traffic.LoadResult{Idle: idle.RTT}
	// The whole has no throughput, because a sum over phases would be meaningless, and no
	// connections, because each phase had its own.
	r := &traffic.Result{
		Test: traffic.Load, Direction: traffic.Up, Method: idle.Method, StartTime: idle.StartTime,
		Streams: spec.Streams, Load: l, Intervals: []traffic.Interval{},
		Ends: traffic.Ends{Local: traffic.End{Host: idle.Ends.Local.Host, Drops: []drops.Drop{}},
			Remote: traffic.End{Host: idle.Ends.Remote.Host, Drops: []drops.Drop{}}},
	}
	var worse *traffic.Result
	for i, p := range phases {
		if p == nil {
			r.Warnings = append(r.Warnings, fmt.Sprintf("load %s: not measured", names[i]))
			continue
		}
		addPhase(r, names[i], p)
		if i == 0 {
			continue
		}
		into, rate := loadSlot(l, names[i])
		*into, *rate = p.RTT, p.ThroughputBitsPerSec
		if p.RTT == nil {
			r.Warnings = append(r.Warnings, fmt.Sprintf("load %s: no ping was answered", names[i]))
			continue
		}
		if worse == nil || p.RTT.P90 > worse.RTT.P90 {
			worse = p
		}
	}
	if worse == nil {
		return nil, fmt.Errorf("%s test: %w under load", spec.Test, traffic.ErrNoAnswer)
	}
	r.RTT = worse.RTT
	// The 90th percentile, because users notice a queue that is full for a tenth of the time; of
	// the idle phase the median, because what is above it is noise. A path can be faster under load
	// than idle if its ends sleep deeply: then the load adds nothing.
	l.AddedSeconds = max(0, worse.RTT.P90-idle.RTT.P50)
	if worse.RTT.Mean > 0 {
		l.RoundTripsPerMinute = 60 / worse.RTT.Mean
	}
	return r, nil
}

// loadSlot returns the fields of one loaded phase.
func loadSlot(l *traffic.LoadResult, name string) (**stats.Latencies, *float64) {
	switch name {
	case phaseUp:
		return &l.Up, &l.UpBitsPerSec
	case phaseDown:
		return &l.Down, &l.DownBitsPerSec
	}
	return &l.Both, &l.BothBitsPerSec
}

// addPhase adds one phase to the whole.
func addPhase(r *traffic.Result, name string, p *traffic.Result) {
	// A pause to open connections separates the phases; the curve shows their own times in
	// sequence.
	at := r.DurationSeconds + r.WarmUpSeconds
	for _, i := range p.Intervals {
		point := traffic.LoadPoint{AtSeconds: at + i.StartSeconds, Phase: name,
			RTTSeconds:           cmp.Or(i.ProbeRTTSeconds, i.RTTSeconds),
			ThroughputBitsPerSec: i.ThroughputBitsPerSec}
		if name != phaseIdle {
			point.RTTSeconds = i.ProbeRTTSeconds // not the connection's own, which excludes the wait in this host
		}
		r.Load.Curve = append(r.Load.Curve, point)
		i.StartSeconds, i.EndSeconds = i.StartSeconds+at, i.EndSeconds+at
		r.Intervals = append(r.Intervals, i)
	}
	// Sums over all phases, so that cost per gigabyte and losses cover the whole load.
	r.DurationSeconds += p.DurationSeconds
	r.WarmUpSeconds += p.WarmUpSeconds
	r.Bytes += p.Bytes
	r.VerifiedBytes += p.VerifiedBytes
	if p.RetransmitsTotal != nil {
		sum := *p.RetransmitsTotal
		if r.RetransmitsTotal != nil {
			sum += *r.RetransmitsTotal
		}
		r.RetransmitsTotal = &sum
	}
	if name == phaseIdle {
		r.LossRatio = p.LossRatio
	}
	// What is constant over the phases comes from the first one that knows it.
	r.MTUBytes, r.MSSBytes = cmp.Or(r.MTUBytes, p.MTUBytes), cmp.Or(r.MSSBytes, p.MSSBytes)
	r.CongestionControl = cmp.Or(r.CongestionControl, p.CongestionControl)
	r.LocalAddress, r.RemoteAddress = cmp.Or(r.LocalAddress, p.LocalAddress), cmp.Or(r.RemoteAddress, p.RemoteAddress)
	r.SendMethod, r.ReceiveMethod = cmp.Or(r.SendMethod, p.SendMethod), cmp.Or(r.ReceiveMethod, p.ReceiveMethod)
	addEnd(&r.Ends.Local, p.Ends.Local)
	addEnd(&r.Ends.Remote, p.Ends.Remote)
	for _, w := range p.Warnings {
		if w = "load " + name + ": " + w; !slices.Contains(r.Warnings, w) {
			r.Warnings = append(r.Warnings, w)
		}
	}
}

// addEnd adds the counters and costs of one host in a further phase. Connections and placements
// belong to one phase only and stay out.
func addEnd(e *traffic.End, o traffic.End) {
	e.CPUSeconds += o.CPUSeconds
	e.UserSeconds += o.UserSeconds
	e.SystemSeconds += o.SystemSeconds
	e.SoftIRQSeconds += o.SoftIRQSeconds
	e.IRQSeconds += o.IRQSeconds
	for name, n := range o.Counters {
		if e.Counters == nil {
			e.Counters = make(map[string]uint64)
		}
		// Levels and limits do not add up; the later phase replaces them.
		if procfs.Gauge(name) {
			e.Counters[name] = n
		} else {
			e.Counters[name] += n
		}
	}
	for _, d := range o.Drops {
		if i := slices.IndexFunc(e.Drops, func(x drops.Drop) bool { return x.Place == d.Place }); i >= 0 {
			e.Drops[i].Total += d.Total
		} else {
			e.Drops = append(e.Drops, d)
		}
	}
	sorting.Func(e.Drops, func(a, b drops.Drop) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Place, b.Place))
	})
	for _, c := range o.CPUs {
		if i := slices.IndexFunc(e.CPUs, func(x host.CPUTimes) bool { return x.CPU == c.CPU }); i >= 0 {
			x := &e.CPUs[i]
			x.User, x.Nice, x.System, x.IRQ, x.SoftIRQ, x.Steal, x.Idle = x.User+c.User, x.Nice+c.Nice,
				x.System+c.System, x.IRQ+c.IRQ, x.SoftIRQ+c.SoftIRQ, x.Steal+c.Steal,
				x.Idle+c.Idle
		} else {
			e.CPUs = append(e.CPUs, c)
		}
	}
}
