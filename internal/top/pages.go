package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// detail returns everything about one interface.
func (s *State) detail(width int) []Line {
	g := s.glyphs
	name := g.inert(s.name)
	if s.shown == nil {
		return []Line{{{name + ": reading this host; rates come with the second reading", 0}}}
	}
	at := slices.IndexFunc(s.shown.Interfaces, func(i Interface) bool { return i.Name == s.name })
	if at < 0 {
		return []Line{{{name, Bold}, {"  does not exist; esc shows the interfaces", 0}}}
	}
	i := &s.shown.Interfaces[at]
	head := Line{{name, Bold}}
	if i.Up {
		head = head.add(0, "  up")
	} else {
		head = head.add(Bold|Yellow, "  down")
	}
	for _, part := range []string{i.Kind, i.Driver} {
		if part != "" {
			head = head.add(0, "  "+g.inert(part))
		}
	}
	if i.Parent != "" {
		head = head.add(0, "  on "+g.inert(i.Parent))
	}
	if i.Speed != nil {
		head = head.add(0, "  "+g.inert(unit.BitRate(*i.Speed).String()))
	}
	if i.MTU > 0 {
		head = head.add(0, fmt.Sprintf("  MTU %d B", i.MTU))
	}
	if i.CarrierChanges > 0 {
		head = head.add(Bold|Yellow, fmt.Sprintf("  !carrier changed %.0f times", i.CarrierChanges))
	}
	lines := []Line{head, nil}
	lines = append(lines, s.curves(i, width)...)
	lines = append(lines, nil)
	lines = append(lines, s.losses(i)...)
	lines = append(lines, nil)
	lines = append(lines, s.queues(i, width)...)
	lines = append(lines, nil)
	lines = append(lines, s.interrupts(width)...)
	return append(lines, s.counters(width)...)
}

// curves returns what was received, sent and lost over the last readings.
func (s *State) curves(i *Interface, width int) []Line {
	t := s.trails[i.Name]
	if t == nil {
		t = &trail{}
	}
	var lines []Line
	room := min(max(width-34, 0), remembered)
	for _, c := range []struct {
		name    string
		values  []float64
		now     Span
		packets float64
		look    Look
	}{
		{"in", t.in, figure(i.Receive), i.ReceivePackets, Green},
		{"out", t.out, figure(i.Transmit), i.TransmitPackets, Green},
		{"drops", t.drops, alarm(s.glyphs, dropRate(i)), -1, worst},
	} {
		l := Line{{fmt.Sprintf("%-6s", c.name), Bold}}
		rate := "b/s"
		if c.packets < 0 {
			rate = "p/s"
		}
		l = l.add(c.now.Look, right(c.now.Text, 7)).add(Dim, " "+rate)
		if c.packets >= 0 {
			l = l.add(0, right(short(c.packets), 7)).add(Dim, " p/s")
		}
		l = l.pad(30, 0)
		// One scale for both directions would hide the acknowledgements; each has its own, and its
		// top is shown.
		l = l.add(c.look, s.glyphs.spark(c.values, room))
		lines = append(lines, l)
	}
	if n := len(t.in); n > 1 {
		top := func(v []float64) string {
			if len(v) == 0 {
				return "0"
			}
			return short(slices.Max(v))
		}
		lines = append(lines,
			Line{{fmt.Sprintf("      the last %s; most in %s b/s, out %s b/s, drops %s p/s",
				unit.FormatSeconds(float64(n)*s.interval.Seconds()), top(t.in), top(t.out), top(t.drops)), Dim}})
	}
	return lines
}

// losses returns the places where packets were lost, the broken packets, and the counters of the
// queueing discipline.
func (s *State) losses(i *Interface) []Line {
	g := s.glyphs
	lines := []Line{{{"LOST", Bold}, {"  packets per second, and since the start of this view", Dim}}}
	quiet := true
	for _, d := range i.Drops {
		if d.Rate > 0 || d.Total > 0 {
			quiet = false
			cell := alarm(g, d.Rate)
			if d.Place == unwanted {
				cell = figure(d.Rate)
			}
			lines = append(lines,
				Line{{fmt.Sprintf("  %-9s%-12s", g.inert(d.Direction), g.inert(d.Place)), 0}}.add(cell.Look,
					right(cell.Text, 7)).add(0, right(short(d.Total), 9)))
		}
	}
	for _, d := range i.Errors {
		if d.Rate > 0 || d.Total > 0 {
			quiet = false
			cell := alarm(g, d.Rate)
			lines = append(lines,
				Line{{fmt.Sprintf("  %-9s%-12s", g.inert(d.Direction), g.inert(d.Place)+" err"), 0}}.add(cell.Look,
					right(cell.Text, 7)).add(0, right(short(d.Total), 9)))
		}
	}
	if quiet {
		lines[0] = Line{{"LOST", Bold}, {"  nothing since the start of this view", Dim}}
	}
	if q := i.Qdisc; q != nil {
		backlog := Span{unit.Bytes(max(q.Backlog, 0)).String(), 0}
		if q.Backlog <= 0 {
			backlog.Look = Dim
		}
		lines = append(lines, s.items("QDISC", maxExtent, piece("drops/s", alarm(g, q.Drops)),
			piece("requeues/s", figure(q.Requeues)),
			piece("overlimits/s", figure(q.Overlimit)), piece("backlog", backlog)))
	}
	return lines
}

// queues returns a table of the queues of the NIC.
func (s *State) queues(i *Interface, width int) []Line {
	if len(i.Queues) == 0 {
		return []Line{{{"QUEUES", Bold}, {"  the driver does not count them separately", Dim}}}
	}
	lines := []Line{queueHead("QUEUE")}
	for _, q := range i.Queues {
		lines = append(lines, s.queue(q.Queue, q))
	}
	return lines
}

func queueHead(name string) Line {
	return Line{{fmt.Sprintf("%-24s%9s%9s%9s%9s", name, "b/s", "p/s", "DROP/s", "IRQ/s"), Bold}}
}

func (s *State) queue(name string, q Queue) Line {
	l := Line{{s.glyphs.inert(name), 0}}.cut(23, s.glyphs.more).pad(24, 0)
	for k, x := range []*float64{q.Bits, q.Packets, q.Drops, q.Interrupts} {
		cell := Span{s.glyphs.absent, Dim}
		switch {
		case x != nil && k == 2:
			cell = alarm(s.glyphs, *x)
		case x != nil:
			cell = figure(*x)
		}
		l = l.add(cell.Look, right(cell.Text, 9))
	}
	return l
}

// interrupts returns the interrupts of the interface, and the processors that served them.
func (s *State) interrupts(width int) []Line {
	if s.moved.Interface != s.name || len(s.moved.Interrupts) == 0 {
		return nil
	}
	lines := []Line{{{fmt.Sprintf("%-24s%9s  %s", "INTERRUPT", "IRQ/s", "SERVED BY"), Bold}}}
	for _, i := range s.moved.Interrupts {
		name := Line{{fmt.Sprintf("%d %s", i.Number, s.glyphs.inert(i.Name)), 0}}.cut(23, s.glyphs.more).pad(24, 0)
		var by []Line
		for _, c := range i.CPUs {
			by = append(by, piece(fmt.Sprintf("cpu %d", c.CPU), figure(c.Rate)))
		}
		l := append(name, Span{right(short(i.Rate), 9), 0})
		lines = append(lines, append(l, s.items("", width-l.width(), by...)...))
	}
	return append(lines, nil)
}

// counters returns the counters that changed, in as many columns as fit.
func (s *State) counters(width int) []Line {
	m := s.moved
	head := Line{{"COUNTERS THAT MOVED", Bold}, {"  of driver and kernel, per second", Dim}}
	switch {
	case m.Interface != s.name:
		return []Line{head, {{"  reading", Dim}}}
	case m.Err != nil:
		return []Line{head, {{"  " + s.glyphs.inert(m.Err.Error()), Yellow}}}
	case len(m.Counters) == 0:
		return []Line{head, {{"  none", Dim}}}
	}
	const column = 40
	across := max(width/column, 1)
	down := (len(m.Counters) + across - 1) / across
	lines := []Line{head}
	for r := range down {
		var l Line
		for c := range across {
			if k := c*down + r; k < len(m.Counters) {
				counter := m.Counters[k]
				name := Line{{"  " + s.glyphs.inert(counter.Name), 0}}.cut(column-10, s.glyphs.more).pad(column-10, 0)
				l = append(l.pad(c*column, 0), name...).add(figure(counter.Rate).Look, right(short(counter.Rate), 8))
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// processors returns the page of all processors, and of the queues of all NICs.
func (s *State) processors(width int) []Line {
	if s.shown == nil {
		return []Line{{{"reading this host; rates come with the second reading", 0}}}
	}
	lines := s.cpuRows(s.shown.CPUs, width)
	type named struct {
		name string
		Queue
	}
	var all []named
	for _, i := range s.shown.Interfaces {
		if !matches(&i, s.filter) {
			continue
		}
		for _, q := range i.Queues {
			all = append(all, named{i.Name + " " + q.Queue, q})
		}
	}
	sorting.StableFunc(all, func(a, b named) int {
		return cmp.Or(cmp.Compare(valueOr(b.Interrupts, 0), valueOr(a.Interrupts, 0)),
			cmp.Compare(valueOr(b.Packets, 0), valueOr(a.Packets, 0)))
	})
	lines = append(lines, nil)
	if len(all) == 0 {
		return append(lines, Line{{"QUEUES", Bold}, {"  no driver counts any apart", Dim}})
	}
	lines = append(lines, queueHead("QUEUE, busiest first"))
	for _, q := range all {
		lines = append(lines, s.queue(q.name, q.Queue))
	}
	return lines
}

// verdicts returns the page of all findings with their remedies, of all changes, and of what could
// not be read.
func (s *State) verdicts(width int) []Line {
	g := s.glyphs
	lines := s.findingLines(width, s.age())
	if len(s.verdict.Findings) > 0 {
		lines = []Line{{{"FINDINGS", Bold}, {"  " + s.age() + ", of this host alone", Dim}}}
		for _, f := range s.verdict.Findings {
			lines = append(lines, s.wrapped(s.finding(f), width, 3)...)
			if f.Remedy.Text != "" && f.Severity != evidence.Info {
				lines = append(lines, s.wrapped(Line{{"   remedy: " + g.inert(f.Remedy.Text), Dim}}, width, 5)...)
			}
		}
	}
	lines = append(lines, nil)
	for _, l := range s.latestLines(width, 100) {
		lines = append(lines, s.wrapped(l, width, 5)...)
	}
	if s.shown != nil && len(s.shown.Warnings) > 0 {
		lines = append(lines, nil, Line{{"NOT READ", Bold}})
		for _, w := range s.shown.Warnings {
			lines = append(lines, s.wrapped(Line{{"   " + g.inert(w), 0}}, width, 5)...)
		}
	}
	return lines
}

// wrapped breaks the last span of a line at blanks, and indents the following lines.
func (s *State) wrapped(l Line, width, indent int) []Line {
	if len(l) == 0 || l.width() <= width {
		return []Line{l}
	}
	last := l[len(l)-1]
	current := slices.Clone(l[:len(l)-1])
	lead := last.Text[:len(last.Text)-len(strings.TrimLeft(last.Text, " "))]
	current = current.add(last.Look, lead)
	var lines []Line
	fresh := true
	for _, word := range strings.Fields(last.Text) {
		need := utf8.RuneCountInString(word)
		if !fresh {
			need++
		}
		if !fresh && current.width()+need > width {
			lines = append(lines, current)
			current, fresh = Line{{strings.Repeat(" ", min(indent, max(width-1, 0))), 0}}, true
		}
		if !fresh {
			word = " " + word
		}
		current, fresh = current.add(last.Look, word), false
	}
	return append(lines, current)
}

// help returns the page of keys and columns.
func (s *State) help(width int) []Line {
	lines := []Line{{{"KEYS", Bold}}}
	for _, k := range [][2]string{
		{"up down k j", "choose an interface; pgup, pgdown, home and end go further"},
		{"enter", "everything about the chosen interface: curves, losses, queues, interrupts, changing counters"},
		{"esc", "back; on the first page: show all interfaces again"},
		{"/", "show only interfaces with this text in name, driver, kind or parent"},
		{"< >", "sort by the next column; left and right do the same"},
		{"r", "reverse the order"},
		{"i", "hide idle interfaces"},
		{"space", "pause the screen; recording continues"},
		{"n", "the processes and connections that send and receive over TCP"},
		{"c", "all processors, and the queues of all cards"},
		{"f", "all findings with their remedies, changes, and what could not be read"},
		{"tab", "the next page"},
		{"q ctrl+c", "quit"},
	} {
		lines = append(lines, s.wrapped(Line{{fmt.Sprintf("  %-13s", k[0]), Bold}, {k[1], 0}}, width, 15)...)
	}
	lines = append(lines, nil, Line{{"COLUMNS", Bold}})
	for _, c := range Columns() {
		lines = append(lines, s.wrapped(Line{{fmt.Sprintf("  %-13s", cmp.Or(c.Title, c.Name)), Bold}, {c.Help, 0}},
			width, 15)...)
	}
	return append(lines, nil, Line{{"MARKS", Bold}},
		Line{{"  !             ", worst},
			{"packets are lost or retransmitted, a link is full, a processor is saturated", 0}},
		Line{{"  dim           ", Dim}, {"nothing happens", 0}},
		Line{{"  !! ! *        ", Bold}, {"findings: critical, warning, notice", 0}})
}
