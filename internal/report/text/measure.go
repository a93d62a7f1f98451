package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/traffic"
)

// Measure writes a measure document as one screen of text.
func Measure(w io.Writer, d *report.MeasureDocument, s Style) error {
	p := &printer{w: w, s: s}
	p.line("%s", s.bold(clean(fmt.Sprintf("%s → %s", nameOr(d.Host.Name, "near"), d.Target))))
	p.line("")
	p.tests(d.Tests)
	for _, r := range d.Tests {
		p.detail(r, len(d.Tests) == 1)
	}
	p.gate(d.Gate)
	p.notes("WARNINGS", d.Warnings)
	return p.err
}

// nameOr returns a name, or another text for an unknown one.
func nameOr(name, other string) string {
	if name == "" {
		return other
	}
	return name
}

// tests prints a table of runs, then where packets were lost and the warnings of the runs.
//
// A column that no test fills (resent without TCP_INFO, cost without /proc/stat) is left out.
func (p *printer) tests(tests []traffic.Result) {
	t := newTable("test", "direction", ">streams", ">time", ">result", ">rtt p50", ">p99", ">resent",
		">"+costName+" near", ">far")
	for _, r := range tests {
		streams := ""
		if r.Test == traffic.Stream || r.Streams > 1 {
			streams = fmt.Sprint(r.Streams)
		}
		p50, p99 := "", ""
		if r.RTT != nil {
			p50, p99 = unit.FormatSeconds(r.RTT.P50), unit.FormatSeconds(r.RTT.P99)
		}
		resent := ""
		if r.RetransmitsTotal != nil {
			resent = unit.FormatCount(float64(*r.RetransmitsTotal))
		}
		t.row(r.Test, report.Direction(r), streams, unit.FormatSeconds(r.DurationSeconds), cell{resultText(r), p.s.bold},
			p50, p99, resent,
			costText(r, r.Ends.Local), costText(r, r.Ends.Remote))
	}
	t.print(p, "  ")

	p.losses(tests)
	var warnings []string
	for _, r := range tests {
		for _, warning := range r.Warnings {
			text := fmt.Sprintf("%s %s: %s", r.Test, report.Direction(r), warning)
			if strings.HasPrefix(warning, string(r.Test)+" ") {
				text = warning // of one phase of a load, which it names
			}
			if !slices.Contains(warnings, text) {
				warnings = append(warnings, text)
			}
		}
	}
	p.notes("TAKE WITH CARE", warnings)
}

// losses prints where packets were lost: for tests that count each packet the place of every lost
// one, for other tests the counters that moved.
func (p *printer) losses(tests []traffic.Result) {
	t := newTable("test", "direction", "end", "place", ">packets", "counter")
	for _, r := range tests {
		for _, l := range r.Losses {
			place := l.Place
			if l.Place == drops.OnPath && r.Ends.Remote.Host == "" {
				place = "path or far end" // the server of another program has neither name nor counters
			}
			t.row(r.Test, report.Direction(r), "", place, unit.FormatCount(float64(l.Packets)), l.Source)
		}
		// The search for the path MTU sends packets that do not fit on purpose; the counters on
		// their way would list them again.
		if len(r.Losses) > 0 || r.Test == traffic.MTU {
			continue
		}
		for _, e := range []struct {
			name string
			end  traffic.End
		}{{"near", r.Ends.Local}, {"far", r.Ends.Remote}} {
			for _, drop := range e.end.Drops {
				t.row(r.Test, report.Direction(r), e.name, drop.Place, unit.FormatCount(float64(drop.Total)), "")
			}
		}
	}
	if len(t.rows) == 0 {
		return
	}
	p.line("")
	p.head("WHERE PACKETS WERE LOST")
	t.print(p, "  ")
}

// resultText returns the main result of a test.
func resultText(r traffic.Result) string {
	switch r.Test {
	case traffic.Stream:
		if r.Direction == traffic.Bidir {
			return fmt.Sprintf("%s up, %s down", unit.BitRate(r.UpBitsPerSec), unit.BitRate(r.DownBitsPerSec))
		}
		return unit.BitRate(r.ThroughputBitsPerSec).String()
	case traffic.RR:
		return unit.FormatCount(r.TransactionsPerSec) + " trans/s"
	case traffic.CRR:
		return unit.FormatCount(r.TransactionsPerSec) + " conn/s"
	case traffic.UDP:
		rate := unit.BitRate(r.ThroughputBitsPerSec).String()
		if r.Direction == traffic.Bidir {
			rate += " in all" // the rate of each direction is below, because the line would be too wide
		}
		text := fmt.Sprintf("%s, %s packets/s", rate, unit.FormatCount(r.PacketsPerSec))
		if r.LossRatio != nil {
			text += ", " + unit.FormatPercent(*r.LossRatio) + " lost"
		}
		return text
	case traffic.MTU:
		if r.MTU != nil {
			return fmt.Sprintf("%d up, %d down", r.MTU.UpBytes, r.MTU.DownBytes)
		}
	case traffic.Load:
		if r.Load != nil {
			return unit.FormatSeconds(r.Load.AddedSeconds) + " added"
		}
	case traffic.Burst:
		if r.Burst != nil {
			return burstText(*r.Burst)
		}
	case traffic.Ping:
	}
	switch {
	case r.LossRatio != nil:
		return unit.FormatPercent(*r.LossRatio) + " lost"
	case r.RTT != nil:
		return unit.FormatSeconds(r.RTT.Mean)
	}
	return ""
}

// leastCosted is the least payload, in bytes, for which the cost per gigabyte is shown. CPU time is
// that of the whole host, in ticks of 10 ms; divided by a few kilobytes it is meaningless.
const leastCosted = 1e6

// costName says what costText returns.
const costName = "CPU s/GB test/host"

// costText returns the CPU seconds per gigabyte of one end, those of the test's own threads and
// those of the whole host with all its programs. The unit is in the heading. It is empty when
// neither was measured.
func costText(r traffic.Result, e traffic.End) string {
	if e.CPUSecondsPerGigabyte <= 0 && e.TestCPUSecondsPerGigabyte <= 0 || r.Bytes > 0 && r.Bytes < leastCosted {
		return ""
	}
	text := func(seconds float64) string {
		if seconds <= 0 {
			return "–" // an old peer, or a system without that figure
		}
		return perUnitText(seconds)
	}
	return text(e.TestCPUSecondsPerGigabyte) + "/" + text(e.CPUSecondsPerGigabyte)
}

// perUnitText returns a number of seconds with two decimals below 100, and none above.
func perUnitText(seconds float64) string {
	if seconds < 100 {
		return fmt.Sprintf("%.2f", seconds)
	}
	return fmt.Sprintf("%.0f", seconds)
}
