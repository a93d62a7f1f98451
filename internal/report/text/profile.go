package text

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/report"
)

// Rows of a profile that the text shows; the document has all of them.
const (
	profileFunctions = 20
	profileStages    = 14
	profileProcesses = 5
)

// Profile prints where the CPUs were: stages with bars, functions, the hottest path, and what the
// figures cannot see.
func Profile(w io.Writer, d *report.ProfileDocument, s Style) error {
	p := &printer{w: w, s: s}
	profileHead(p, d)
	profileTables(p, &d.Profile)
	if d.With != nil && d.With.Far != nil {
		far := d.With.Far
		p.line("")
		p.line("The other end, %s: %s", d.With.Target, profileWindow(far))
		profileLoad(p, far)
		profileTables(p, far)
	} else if d.With != nil && d.With.FarRefused != "" {
		p.line("")
		p.wrapped("", "No profile of the other end: "+d.With.FarRefused)
	}
	return p.err
}

// profileTables prints all tables of one host.
func profileTables(p *printer, d *profile.Profile) {
	if d.Busy == 0 {
		p.line("")
		p.line("The CPUs were idle: no sample found one at work.")
		profileNotes(p, d)
		return
	}
	p.line("")
	profileRows(p, "STAGES (nearest place of the network path)", d.Stages, profileStages, true)
	p.line("")
	profileRows(p, "WORK (what the CPU did there)", d.Work, profileStages, true)
	p.line("")
	profileRows(p, "CONTEXT", d.Contexts, profileStages, false)
	p.line("")
	profileFunctionTable(p, d)
	profilePath(p, d)
	profileExact(p, d.Exact)
	if len(d.Processes) > 0 {
		p.line("")
		p.head("PROCESSES (own time, and time that interrupts borrowed)")
		t := newTable("name", ">own", ">borrowed")
		for _, one := range d.Processes[:min(profileProcesses, len(d.Processes))] {
			t.row(one.Name, share(one.Own, d.Busy), share(one.Borrowed, d.Busy))
		}
		t.print(p, "  ")
	}
	profileNotes(p, d)
}

func share(part, all uint64) string {
	if all == 0 {
		return "-"
	}
	return unit.FormatPercent(float64(part) / float64(all))
}

// profileHead says what was sampled, for how long, and what a packet cost.
func profileHead(p *printer, d *report.ProfileDocument) {
	if d.Source != "" {
		p.line("Profile of %s (%s): %s", d.Source, d.Format, profileEvent(&d.Profile))
	} else {
		p.line("Profile of %s: %s", d.Host.Name, profileWindow(&d.Profile))
	}
	profileLoad(p, &d.Profile)
	if d.With != nil {
		p.line("beside %s to %s: %s", d.With.Test, d.With.Target, unit.BitRate(d.With.ThroughputBitsPerS))
	}
}

// profileEvent says what was sampled and how often.
func profileEvent(d *profile.Profile) string {
	switch {
	case d.RatePerSecond > 0:
		return fmt.Sprintf("%s, %.0f samples per second and CPU", d.Event, d.RatePerSecond)
	case d.Period > 0:
		return fmt.Sprintf("%s, a sample every %d", d.Event, d.Period)
	}
	return d.Event
}

// profileWindow says how long which event sampled how many CPUs.
func profileWindow(d *profile.Profile) string {
	cpus := fmt.Sprintf("%d CPUs", len(d.CPUs))
	if len(d.CPUs) == 1 {
		cpus = fmt.Sprintf("CPU %d", d.CPUs[0])
	}
	return fmt.Sprintf("%s on %s, %s", unit.FormatSeconds(d.Duration), cpus, profileEvent(d))
}

// profileLoad says how busy the CPUs were, and with how many packets.
func profileLoad(p *printer, d *profile.Profile) {
	busy := fmt.Sprintf("busy %d of %d samples", d.Busy, d.Samples)
	if d.BusySeconds > 0 {
		busy += fmt.Sprintf(" · %s of CPU time", unit.FormatSeconds(d.BusySeconds))
	}
	p.line("%s", busy)
	if n := d.Packets; n != nil && d.PacketsTotal != nil {
		line := fmt.Sprintf("%s packets on %s: %s received, %s sent, %s of them forwarded",
			unit.FormatCount(float64(*d.PacketsTotal)), strings.Join(n.Interfaces, ", "), unit.FormatCount(float64(n.Received)),
			unit.FormatCount(float64(n.Sent)), unit.FormatCount(float64(n.Forwarded)))
		if d.BusySeconds > 0 && *d.PacketsTotal > 0 {
			line += fmt.Sprintf(" · %s of busy time per packet", nanos(d.BusySeconds*1e9/float64(*d.PacketsTotal)))
		}
		p.line("%s", line)
	}
}

// nanos prints a time per packet.
func nanos(v float64) string { return unit.FormatSeconds(v * 1e-9) }

// priceOf prints a time per packet with its interval; empty without one.
func priceOf(r profile.Row) (price, interval string) {
	switch {
	case r.PerPacket != nil:
		return nanos(*r.PerPacket), nanos(*r.PerPacketLow) + " to " + nanos(*r.PerPacketHigh)
	case r.EventsPerPacket != nil:
		return fmt.Sprintf("%.3g", *r.EventsPerPacket), ""
	}
	return "", ""
}

// priceHead names the column of [priceOf].
func priceHead(rows []profile.Row) string {
	if len(rows) > 0 && rows[0].EventsPerPacket != nil {
		return ">events/packet"
	}
	return ">per packet"
}

func profileRows(p *printer, title string, rows []profile.Row, most int, bars bool) {
	p.head(title)
	t := newTable("", ">share", "95 %", priceHead(rows), "95 %", "")
	for _, r := range rows[:min(most, len(rows))] {
		bar := ""
		if bars {
			bar = strings.Repeat("█", int(math.Round(r.Share*30)))
		}
		price, interval := priceOf(r)
		t.row(r.Name, unit.FormatPercent(r.Share), percents(r), price, interval, bar)
	}
	t.print(p, "  ")
	if len(rows) > most {
		rest := uint64(0)
		sum := 0.0
		for _, r := range rows[most:] {
			rest++
			sum += r.Share
		}
		p.line("  and %d more with %s", rest, unit.FormatPercent(sum))
	}
}

func percents(r profile.Row) string {
	return unit.FormatPercent(r.ShareLow) + " to " + unit.FormatPercent(r.ShareHigh)
}

func profileFunctionTable(p *printer, d *profile.Profile) {
	p.head("FUNCTIONS (own time)")
	t := newTable("function", "stage", ">share", "95 %", priceHead(d.Functions), "95 %", ">moved")
	shown := 0
	for _, r := range d.Functions {
		if r.Samples == 0 || shown == profileFunctions {
			break
		}
		shown++
		moved := ""
		if r.Moved > 0 {
			moved = share(r.Moved, r.Samples)
		}
		name := r.Name
		if r.Module != "" {
			name += " [" + r.Module + "]"
		}
		price, interval := priceOf(r)
		t.row(name, r.Stage, unit.FormatPercent(r.Share), percents(r), price, interval, moved)
	}
	t.print(p, "  ")
}

// profilePath prints the calls with most samples below them.
func profilePath(p *printer, d *profile.Profile) {
	path := d.HottestPath()
	if len(path) < 2 {
		return
	}
	p.line("")
	p.head("HOTTEST PATH")
	t := newTable(">samples", ">share", "function")
	for _, s := range path {
		t.row(s.Samples, share(s.Samples, d.Busy), d.Functions[s.Function].Name)
	}
	t.print(p, "  ")
}

// profileNotes says what the figures cannot see.
func profileNotes(p *printer, d *profile.Profile) {
	begun := false
	note := func(format string, args ...any) {
		if !begun {
			begun = true
			p.line("")
			p.head("NOTES")
		}
		for i, line := range broken(fmt.Sprintf(format, args...), textWidth-4) {
			lead := "- "
			if i > 0 {
				lead = "  "
			}
			p.line("  %s%s", lead, line)
		}
	}
	if d.Timer && d.Kernel > 0 {
		note("%s is a timer: it cannot see code that runs with interrupts off. %s of the busy kernel samples "+
			"stood where interrupts are allowed again, and are shown under the callers (moved). Time inside "+
			"interrupt handlers is not in this profile.", d.Event, share(d.Moved, d.Kernel))
	}
	if d.Kernel > 0 && (d.Unclassed > 0 || d.Unresolved > 0) {
		note("%s of the busy kernel samples are in no known stage, %s have no name.", share(d.Unclassed, d.Kernel),
			share(d.Unresolved, d.Kernel))
	}
	if d.Lost > 0 || d.Throttled > 0 || d.StacksCut > 0 {
		note("The kernel lost %s and stopped the event %s; the stacks of %s were cut.", unit.Counted(d.Lost, "sample"),
			unit.Counted(d.Throttled, "time"), unit.Counted(d.StacksCut, "sample"))
	}
	if d.RunningRatio > 0 && d.RunningRatio < 0.999 {
		note("The event counted for %s of the time: others shared the counters.", unit.FormatPercent(d.RunningRatio))
	}
	if c := d.Cost; c != nil {
		note("Profiling took %s of one CPU: %s for each sample, and %s in this program.", unit.FormatPercent(c.CPURatio),
			unit.FormatSeconds(c.SampleSeconds), unit.FormatSeconds(c.OwnSeconds))
	}
	var reasons []string
	events := make(map[string][]string)
	for _, a := range d.Events {
		if a.Answer == "works" {
			continue
		}
		if events[a.Reason] == nil {
			reasons = append(reasons, a.Reason)
		}
		events[a.Reason] = append(events[a.Reason], a.Event)
	}
	for _, r := range reasons {
		note("%s: %s", strings.Join(events[r], ", "), r)
	}
	for _, warning := range d.Warnings {
		note("%s", warning)
	}
}

// ProfileCompare prints what differs between two profiles.
func ProfileCompare(w io.Writer, d *report.ProfileCompareDocument, s Style) error {
	p := &printer{w: w, s: s}
	if d.Differs {
		p.line("The profiles differ, in %s:", d.Unit)
	} else {
		p.line("Nothing differs beyond chance, in %s.", d.Unit)
	}
	if d.Total != nil {
		p.line("total %s → %s, difference %s (%s to %s)", compared(d.Unit, d.Total.Before), compared(d.Unit, d.Total.After),
			compared(d.Unit, d.Total.Difference), compared(d.Unit, d.Total.Low), compared(d.Unit, d.Total.High))
	}
	for _, part := range []struct {
		title string
		rows  []profile.Change
		most  int
	}{{"STAGES", d.Stages, profileStages}, {"WORK", d.Work, profileStages}, {"FUNCTIONS", d.Functions, profileFunctions}} {
		if len(part.rows) == 0 {
			continue
		}
		p.line("")
		p.head(part.title)
		t := newTable("", ">before", ">after", ">difference", "95 %", "")
		for _, r := range part.rows[:min(part.most, len(part.rows))] {
			verdict := cell{text: ""}
			if r.Differs {
				verdict = cell{"differs", p.s.bold}
			}
			t.row(r.Name, compared(d.Unit, r.Before), compared(d.Unit, r.After), compared(d.Unit, r.Difference),
				compared(d.Unit, r.Low)+" to "+compared(d.Unit, r.High), verdict)
		}
		t.print(p, "  ")
	}
	for _, warning := range d.Warnings {
		p.line("")
		p.wrapped("", warning)
	}
	return p.err
}

// compared prints a value in the unit of a comparison.
func compared(of string, v float64) string {
	if of != profile.UnitShare {
		if v < 0 {
			return "-" + nanos(-v)
		}
		return nanos(v)
	}
	return strings.TrimPrefix(unit.FormatDifference(v, 2), "+")
}

// Rows of exact counts that the text shows.
const (
	exactSoftIRQs = 6
	exactWaits    = 8
)

// profileExact prints what the kernel counted without sampling.
func profileExact(p *printer, e *profile.Exact) {
	if e == nil {
		return
	}
	p.line("")
	p.head(fmt.Sprintf("SOFTIRQS (counted for %s)", unit.FormatSeconds(e.Duration)))
	t := newTable("softirq", ">CPU", ">of its time", ">runs/s", ">each", ">waits before")
	for _, s := range e.SoftIRQs[:min(exactSoftIRQs, len(e.SoftIRQs))] {
		each := "-"
		if s.Runs > 0 {
			each = unit.FormatSeconds(s.Seconds / float64(s.Runs))
		}
		delay := "-"
		if s.Delay > 0 {
			delay = unit.FormatSeconds(s.Delay)
		}
		t.row(s.Name, s.CPU, unit.FormatPercent(s.Ratio), unit.FormatCount(float64(s.Runs)/e.Duration), each, delay)
	}
	t.print(p, "  ")
	if len(e.RunQueue) > 0 {
		p.line("")
		p.head("THREADS THAT WAITED FOR A CPU")
		t := newTable("name", ">of the time", ">runs/s", ">each wait")
		for _, w := range e.RunQueue {
			each := "-"
			if w.Runs > 0 {
				each = unit.FormatSeconds(w.Seconds / float64(w.Runs))
			}
			t.row(w.Name, unit.FormatPercent(w.Ratio), unit.FormatCount(float64(w.Runs)/e.Duration), each)
		}
		t.print(p, "  ")
	}
	p.line("")
	switch {
	case !e.Locks:
		p.head("LOCK WAITS")
		p.line("  not measurable before Linux 5.19")
		return
	case len(e.Waits) == 0:
		p.head("LOCK WAITS")
		p.line("  none")
		return
	}
	p.head(fmt.Sprintf("LOCK WAITS (counted for %s)", unit.FormatSeconds(e.Duration)))
	waits := newTable("lock", "waits in", "stage", ">waits/s", ">each", ">of the time", "callers")
	for _, w := range e.Waits[:min(exactWaits, len(e.Waits))] {
		each := "-"
		if w.Waits > 0 {
			each = unit.FormatSeconds(w.Seconds / float64(w.Waits))
		}
		waits.row(w.Kind, w.Function, w.Stage, unit.FormatCount(w.PerSecond), each, unit.FormatPercent(w.Ratio), w.Callers)
	}
	waits.print(p, "  ")
	if e.CostSeconds > 0 {
		p.line("  counting took %s of one CPU", unit.FormatPercent(e.CostSeconds/e.Duration))
	}
}
