package text

import (
	"fmt"
	"math"
	"strings"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/traffic"
)

// maxCurve is how many columns a curve takes, besideCurve what the terminal needs for its name.
// Each column of a longer curve is the maximum of several values.
const maxCurve, besideCurve = 60, 14

// detail prints what only this kind of test has, below the table of all tests. A test that ran
// alone gets everything.
func (p *printer) detail(r traffic.Result, alone bool) {
	var lines [][2]string
	add := func(name, format string, args ...any) {
		lines = append(lines, [2]string{name, fmt.Sprintf(format, args...)})
	}
	if r.UDP != nil {
		describeDatagrams(add, *r.UDP, r.UpBitsPerSec, r.DownBitsPerSec)
	}
	if r.OneWay != nil {
		describeOneWay(add, *r.OneWay, r.Hops)
	}
	if r.MTU != nil {
		describeMTU(add, *r.MTU)
	}
	if r.Load != nil {
		describeLoad(add, *r.Load, min(maxCurve, p.s.lineWidth()-besideCurve))
	}
	if r.Burst != nil {
		describeBurst(add, *r.Burst)
	}
	if r.Pacing != nil {
		describePacing(add, *r.Pacing)
	}
	if c := r.Confidence; c != nil {
		describeConfidence(add, r, *c)
	}
	if alone {
		describeRun(add, r)
	}
	if len(lines) == 0 {
		return
	}
	p.line("")
	p.head(strings.ToUpper(string(r.Test)))
	t := newTable()
	t.wrap = true
	for _, l := range lines {
		t.row(cell{l[0], p.s.dim}, l[1])
	}
	t.print(p, "  ")
}

type describer func(name, format string, args ...any)

// describeDatagrams describes what happened to the datagrams. Up and down are the rates, bits per
// second, where both directions were sent.
func describeDatagrams(add describer, d traffic.Datagrams, up, down float64) {
	one := func(name string, rate float64, c traffic.DatagramCounts) {
		text := ""
		if rate > 0 {
			text = unit.BitRate(rate).String() + ": "
		}
		// Counts in full: a comparison with the counters of a switch needs every digit.
		text += fmt.Sprintf("%d sent, %d received, %d lost (%s)", c.Sent, c.Received, c.Lost,
			unit.FormatPercent(ratio(c.Lost, c.Sent)))
		if c.Duplicates != nil {
			text += ", " + unit.Counted(*c.Duplicates, "duplicate")
		}
		if c.Reordered != nil {
			text += fmt.Sprintf(", %d out of order", *c.Reordered)
		}
		add(name, "%s", text)
		text = "jitter " + unit.FormatSeconds(c.JitterSeconds)
		if v := c.DelayVariation; v != nil {
			text += fmt.Sprintf(", delay over the smallest p50 %s, p99 %s, max %s",
				unit.FormatSeconds(v.P50), unit.FormatSeconds(v.P99), unit.FormatSeconds(v.Max))
		}
		add("", "%s", text)
	}
	if d.Up != nil && d.Down != nil {
		one("up", up, *d.Up)
		one("down", down, *d.Down)
	} else {
		one("datagrams", 0, d.DatagramCounts)
	}
	if d.Batch != "" {
		add("batch", "%s", d.Batch)
	}
}

func ratio(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// describeOneWay describes each direction, without what is not known.
func describeOneWay(add describer, o traffic.OneWayResult, hops *traffic.HopCounts) {
	if hops == nil {
		hops = &traffic.HopCounts{}
	}
	one := func(name string, w traffic.OneWay, hops int) {
		var parts []string
		if d := w.Delay; d != nil {
			parts = append(parts, fmt.Sprintf("delay p50 %s, p99 %s, max %s (±%s by the clocks)",
				unit.FormatSeconds(d.P50), unit.FormatSeconds(d.P99), unit.FormatSeconds(d.Max),
				unit.FormatSeconds(w.DelayErrorSeconds)))
		}
		if v := w.DelayVariation; v != nil {
			parts = append(parts, fmt.Sprintf("over the smallest p50 %s, p99 %s, max %s",
				unit.FormatSeconds(v.P50), unit.FormatSeconds(v.P99), unit.FormatSeconds(v.Max)))
		}
		if w.Lost != nil {
			parts = append(parts, fmt.Sprintf("%d lost", *w.Lost))
		}
		if hops > 0 {
			parts = append(parts, unit.Counted(hops, "hop"))
		}
		if len(parts) > 0 {
			add(name, "%s", strings.Join(parts, "; "))
		}
	}
	one("one way up", o.Up, hops.Up)
	one("one way down", o.Down, hops.Down)
}

func describeMTU(add describer, m traffic.PathMTU) {
	one := func(name string, bytes, local int, hole bool) {
		if bytes == 0 {
			add(name, "not found: no packet of any size got an answer")
			return
		}
		text := fmt.Sprintf("%d bytes", bytes)
		if local > 0 {
			text += fmt.Sprintf(" of the interface's %d", local)
		}
		if hole {
			text += "; BLACK HOLE: larger packets vanish without an ICMP message, so connections that use them hang"
		}
		add(name, "%s", text)
	}
	one("up", m.UpBytes, m.LocalMTUBytes, m.BlackHoleUp)
	one("down", m.DownBytes, m.RemoteMTUBytes, m.BlackHoleDown)
	if m.ReportedMTUBytes > 0 {
		add("router says", "%d bytes", m.ReportedMTUBytes)
	}
	if m.MSSBytes > 0 {
		text := fmt.Sprintf("%d bytes of payload", m.MSSBytes)
		if m.LocalMSSBytes > 0 && m.RemoteMSSBytes > 0 {
			text += fmt.Sprintf("; this end offered %d, the far one %d", m.LocalMSSBytes, m.RemoteMSSBytes)
		}
		for _, clamped := range []struct {
			is   bool
			name string
		}{{m.MSSClampedUp, "near"}, {m.MSSClampedDown, "far"}} {
			if clamped.is {
				text += fmt.Sprintf("; a device on the path lowered the %s offer", clamped.name)
			}
		}
		add("tcp segment", "%s", text)
	}
}

func describeLoad(add describer, l traffic.LoadResult, width int) {
	add("under load", "%s more than idle at the 90th percentile, %s round trips a minute",
		unit.FormatSeconds(l.AddedSeconds), unit.FormatCount(math.Round(l.RoundTripsPerMinute)))
	one := func(name string, d *stats.Latencies, load float64) {
		if d == nil {
			return
		}
		text := fmt.Sprintf("p50 %s, p90 %s, p99 %s", unit.FormatSeconds(d.P50), unit.FormatSeconds(d.P90),
			unit.FormatSeconds(d.P99))
		if load > 0 {
			text += " at " + unit.BitRate(load).String()
		}
		add(name, "%s", text)
	}
	one("idle", l.Idle, 0)
	one("up", l.Up, l.UpBitsPerSec)
	one("down", l.Down, l.DownBitsPerSec)
	one("both", l.Both, l.BothBitsPerSec)
	// All phases have curves on one scale, so that they can be compared.
	highest := 0.0
	for _, c := range l.Curve {
		highest = max(highest, c.RTTSeconds)
	}
	for start := 0; start < len(l.Curve); {
		end := start
		var values []float64
		for ; end < len(l.Curve) && l.Curve[end].Phase == l.Curve[start].Phase; end++ {
			values = append(values, l.Curve[end].RTTSeconds)
		}
		add("rtt "+l.Curve[start].Phase, "%s", curve(values, highest, width))
		start = end
	}
	if len(l.Curve) > 0 {
		add("", "a full block is %s", unit.FormatSeconds(highest))
	}
}

// curve draws values as a line of at most width blocks; a full block stands for highest.
func curve(values []float64, highest float64, width int) string {
	const blocks = "▁▂▃▄▅▆▇█"
	if step := (len(values) + width - 1) / width; step > 1 {
		var thin []float64
		for i := 0; i < len(values); i += step {
			most := 0.0
			for _, v := range values[i:min(i+step, len(values))] {
				most = max(most, v)
			}
			thin = append(thin, most)
		}
		values = thin
	}
	runes := []rune(blocks)
	var b strings.Builder
	for _, v := range values {
		i := 0
		if highest > 0 {
			i = int(v / highest * float64(len(runes)-1))
		}
		b.WriteRune(runes[min(max(i, 0), len(runes)-1)])
	}
	return b.String()
}

func describePacing(add describer, c traffic.Pacing) {
	text := fmt.Sprintf("%s asked for, %s sent", unit.BitRate(c.TargetBitsPerSec), unit.BitRate(c.AchievedBitsPerSec))
	if c.TargetBitsPerSec > 0 {
		text += " (" + unit.FormatDifference(c.AchievedBitsPerSec/c.TargetBitsPerSec-1, 2) + ")"
	}
	if c.Method != "" {
		text += ", paced by " + pacerText(c.Method)
	}
	add("pacing", "%s", text)
	if g := c.Gaps; g != nil {
		add("", "between sends p50 %s, p99 %s, max %s", unit.FormatSeconds(g.P50), unit.FormatSeconds(g.P99),
			unit.FormatSeconds(g.Max))
	}
}

// pacerText names what kept the rate; the document has short words for programs.
func pacerText(method string) string {
	pacer, beside, both := strings.Cut(method, "+")
	if pacer == "own" || pacer == "user" {
		pacer = "linerate's own clock"
	}
	if both {
		pacer += " and " + beside
	}
	return pacer
}

func describeConfidence(add describer, r traffic.Result, c traffic.Confidence) {
	show := func(v float64) string { return unit.BitRate(v).String() }
	switch r.Test {
	case traffic.RR, traffic.CRR:
		show = func(v float64) string { return unit.FormatCount(v) + " trans/s" }
	case traffic.Ping, traffic.Load:
		show = unit.FormatSeconds
	case traffic.Burst:
		show = func(v float64) string { return unit.FormatCount(math.Round(v)) + " packets" }
	case traffic.Stream, traffic.UDP, traffic.MTU:
	}
	end := ""
	if !c.Reached {
		end = "; the interval did not become narrow enough within the allowed rounds"
	}
	add("confidence", "%s on average, 95 %% interval %s to %s (±%s) over %s%s",
		show(c.Mean), show(c.Low), show(c.High), unit.FormatPercent(c.HalfWidthRatio),
		unit.Counted(c.Rounds, "round"), end)
}

// describeRun describes how the test ran and what it cost.
func describeRun(add describer, r traffic.Result) {
	if r.Method != "" {
		text := r.Method
		// With the server of another program one of the two is not known.
		var ways []string
		if r.SendMethod != "" {
			ways = append(ways, "sent by "+r.SendMethod)
		}
		if r.ReceiveMethod != "" {
			ways = append(ways, "received by "+r.ReceiveMethod)
		}
		if len(ways) > 0 {
			text += "; " + strings.Join(ways, ", ")
		}
		if r.VerifiedBytes > 0 {
			text += fmt.Sprintf("; %s of payload compared", unit.Bytes(r.VerifiedBytes))
		}
		add("method", "%s", text)
	}
	var path []string
	if r.CongestionControl != "" {
		path = append(path, r.CongestionControl)
	}
	if r.MSSBytes > 0 {
		path = append(path, fmt.Sprintf("segments of %d bytes", r.MSSBytes))
	}
	if r.MTUBytes > 0 {
		path = append(path, fmt.Sprintf("path MTU %d", r.MTUBytes))
	}
	if len(path) > 0 {
		add("path", "%s", strings.Join(path, ", "))
	}
	for _, e := range []struct {
		name string
		end  traffic.End
	}{{"near", r.Ends.Local}, {"far", r.Ends.Remote}} {
		if e.end.CPUSeconds <= 0 {
			continue
		}
		text := fmt.Sprintf("whole host %.2f CPU s (user %.2f, system %.2f, softirq %.2f, irq %.2f)",
			e.end.CPUSeconds, e.end.UserSeconds, e.end.SystemSeconds, e.end.SoftIRQSeconds, e.end.IRQSeconds)
		if e.end.TestCPUSeconds > 0 {
			text = fmt.Sprintf("the test's threads %.2f CPU s, ", e.end.TestCPUSeconds) + text
		}
		// A few pings do not account for the CPU time of the host.
		if e.end.CPUSecondsPerMillion > 0 && r.Test != traffic.Ping && !(r.Bytes > 0 && r.Bytes < leastCosted) {
			text += ", " + perUnitText(e.end.CPUSecondsPerMillion) + " s of the host per million packets"
		}
		if cpus := placementText(e.end.Placement); cpus != "" {
			text += ", on " + cpus
		}
		add(e.name, "%s", text)
	}
}

// placementText names the CPUs of a test's threads, each once.
func placementText(placement []traffic.Placement) string {
	seen := map[int]bool{}
	var names []string
	for _, p := range placement {
		if !seen[p.CPU] {
			seen[p.CPU] = true
			names = append(names, fmt.Sprint(p.CPU))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "cpu " + strings.Join(names, ",")
}
