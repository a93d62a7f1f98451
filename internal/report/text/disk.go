package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/storage"
)

// Disk writes a disk document as one screen of text.
func Disk(w io.Writer, d *report.DiskDocument, s Style) error {
	p := &printer{w: w, s: s}
	p.line("%s", s.bold(clean(nameOr(d.Host.Name, "near")+": "+d.Subject.Path+subjectText(d.Subject))))
	p.diskLayers(d.Subject)
	if len(d.Tests) > 0 {
		p.line("")
		p.diskTests(d.Tests)
	}
	said := make(map[string]bool)
	for _, r := range d.Tests {
		name := string(r.Test)
		if slices.ContainsFunc(d.Tests, func(x storage.Result) bool { return x.Test == r.Test && x.Way != r.Way }) {
			name += ", " + string(r.Way)
		}
		p.diskDetail(name, r, len(d.Tests) == 1, said)
	}
	for _, f := range d.Findings {
		p.line("")
		p.brief(f)
		if len(f.Remedy.Settings) > 0 {
			p.line("  %s", p.s.dim("worth trying"))
			t := newTable()
			for _, c := range f.Remedy.Settings {
				t.row(c.Knob, levels(c.Levels))
			}
			t.print(p, "    ")
		}
	}
	p.notes("WARNINGS", d.Warnings)
	return p.err
}

func subjectText(s storage.Subject) string {
	switch s.Kind {
	case "own-file":
		return fmt.Sprintf(" (own file of %s)", unit.Bytes(s.SizeBytes))
	case "device":
		return fmt.Sprintf(" (device, %s used)", unit.Bytes(s.SizeBytes))
	}
	return fmt.Sprintf(" (file, %s used)", unit.Bytes(s.SizeBytes))
}

// diskLayers prints what lies between the file and the medium.
func (p *printer) diskLayers(s storage.Subject) {
	t := newTable()
	t.wrap = true
	for _, l := range s.Stack.Layers {
		about := []string{}
		if l.About != "" {
			about = append(about, l.About)
		}
		switch l.Medium {
		case "":
		case "virtual":
			about = append(about, "virtual disk, host's cache unknown")
		default:
			about = append(about, string(l.Medium))
		}
		if l.Link != nil {
			about = append(about, fmt.Sprintf("%s link %s", l.Link.Kind, unit.BitRate(l.Link.BitsPerSecond)))
		}
		if q := l.Queue; q != nil {
			if q.Scheduler != "" {
				about = append(about, fmt.Sprintf("scheduler %s", q.Scheduler))
			}
			if q.Requests > 0 {
				about = append(about, unit.Counted(q.Requests, "request"))
			}
			about = append(about, "read-ahead "+unit.Bytes(q.ReadAheadBytes).String())
			if q.WriteCache != "" {
				about = append(about, q.WriteCache)
			}
		}
		if l.Errors > 0 {
			about = append(about, unit.Counted(l.Errors, "error"))
		}
		t.row(l.Kind, l.Name, strings.Join(about, " · "))
	}
	t.print(p, "  ")
	for _, u := range s.Stack.Unknown {
		p.wrapped("  not visible: ", u)
	}
}

// diskTests prints one line for each test. A figure that is not the device's has its owner beside
// it, and is never bold.
func (p *printer) diskTests(tests []storage.Result) {
	t := newTable("test", ">block", ">in flight", "sync", "way", ">throughput", ">operations/s", ">p50", ">p99",
		">p99.9", ">CPU/op", "whose")
	for _, r := range tests {
		paint, whose := p.s.bold, "the device's"
		if r.Whose != storage.Device {
			paint, whose = p.s.yellow, "NOT THE DISK'S: "+string(r.Whose)
		}
		p50, p99, p999 := "", "", ""
		if r.Latency != nil {
			p50, p99, p999 = unit.FormatSeconds(r.Latency.P50), unit.FormatSeconds(r.Latency.P99),
				unit.FormatSeconds(r.Latency.P999)
		}
		sync := string(r.Sync)
		if !r.Test.Writes() {
			sync = ""
		}
		t.row(r.Test, unit.Bytes(r.BlockBytes), r.Depth, sync, fmt.Sprintf("%s, %s", r.Way, r.Engine),
			cell{unit.Bytes(r.ThroughputBytesPerSec).String() + "/s", paint}, cell{unit.FormatCount(r.OperationsPerSec), paint},
			p50, p99, p999, unit.FormatSeconds(r.CPUSecondsPerOp), cell{whose, paint})
	}
	t.print(p, "  ")
}

// histogramWidth is the longest bar, in columns.
const histogramWidth = 40

// diskDetail prints why a figure is whose it is, the ladder, and for a single test the histogram.
// Said holds the sentences that an earlier test had too.
func (p *printer) diskDetail(name string, r storage.Result, alone bool, said map[string]bool) {
	because := slices.DeleteFunc(slices.Clone(r.Because), func(why string) bool { return said[why] })
	if r.LatencyWhose != r.Whose {
		because = append(because, fmt.Sprintf("The latency is that of %s, not of the %s.", r.LatencyWhose, r.Whose))
	}
	if r.PinnedBytes > 0 {
		because = append(because, fmt.Sprintf("%s of memory were locked meanwhile.", unit.Bytes(r.PinnedBytes)))
	}
	if r.GroupBytes > 0 {
		because = append(because, fmt.Sprintf("A control group limited the memory of the test to %s.",
			unit.Bytes(r.GroupBytes)))
	}
	because = append(because, r.Warnings...)
	if len(because)+len(r.Ladder) > 0 {
		p.line("")
		p.line("  %s", p.s.dim(name))
	}
	for _, why := range because {
		p.wrapped("    ", why)
		said[why] = true
	}
	if len(r.Ladder) > 0 {
		t := newTable(">in flight", ">operations/s", ">throughput", ">p50", ">p99", "")
		for _, x := range r.Ladder {
			knee := ""
			if x.Depth == r.Knee {
				knee = "← knee"
			}
			t.row(x.Depth, unit.FormatCount(x.OperationsPerSec), unit.Bytes(x.ThroughputBytesPerSec).String()+"/s",
				unit.FormatSeconds(x.P50), unit.FormatSeconds(x.P99), knee)
		}
		t.print(p, "    ")
	}
	if !alone || r.Latency == nil || len(r.Latency.Histogram) == 0 {
		return
	}
	p.line("")
	p.head("LATENCY")
	most := uint64(1)
	for _, b := range r.Latency.Histogram {
		most = max(most, b.Count)
	}
	t := newTable(">up to", ">operations", "")
	const beside = 24 // of the two columns before the bar
	widest := uint64(min(histogramWidth, p.s.lineWidth()-beside))
	for _, b := range r.Latency.Histogram {
		t.row(unit.FormatSeconds(b.UpToSeconds), unit.FormatCount(float64(b.Count)),
			strings.Repeat("#", int(b.Count*widest/most)))
	}
	t.print(p, "  ")
}
