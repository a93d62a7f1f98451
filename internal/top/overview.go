package top

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// maxExtent bounds the screen, in columns and lines, even when a terminal claims to be larger.
const maxExtent = 4096

// Lines returns the screen: at most height lines of at most width columns.
func (s *State) Lines(width, height int) []Line {
	width, height = min(max(width, 0), maxExtent), min(max(height, 0), maxExtent)
	if width == 0 || height == 0 {
		return nil
	}
	var lines []Line
	switch {
	case s.view == Overview:
		lines = s.overview(width, height)
	case s.view == Detail:
		lines = s.paged(s.detail(width), width, height)
	case s.view == Connections:
		lines = s.paged(s.connections(width), width, height)
	case s.view == Processors:
		lines = s.paged(s.processors(width), width, height)
	case s.view == Verdicts:
		lines = s.paged(s.verdicts(width), width, height)
	default:
		lines = s.paged(s.help(width), width, height)
	}
	lines = lines[:min(len(lines), height)]
	for i := range lines {
		lines[i] = lines[i].cut(width, s.glyphs.more)
	}
	return lines
}

// paged frames text that may be longer than the screen: a title above, keys below, the rest
// scrolls.
func (s *State) paged(content []Line, width, height int) []Line {
	room := max(height-2, 1)
	s.page = room
	s.scroll = min(s.scroll, max(len(content)-room, 0))
	lines := []Line{s.title()}
	lines = append(lines, content[s.scroll:min(s.scroll+room, len(content))]...)
	for len(lines) < height-1 {
		lines = append(lines, nil)
	}
	var foot Line
	if rest := len(content) - s.scroll - room; rest > 0 {
		foot = Line{{fmt.Sprintf("%d more below  ", rest), Bold}}
	}
	return append(lines, append(foot, s.foot(width-foot.width())...))
}

// overview returns the first page. When room is short, it cuts in this order: processors, changes,
// findings, rows of the table.
func (s *State) overview(width, height int) []Line {
	lines := []Line{s.title()}
	if s.shown == nil {
		lines = append(lines, nil, Line{{"reading this host; rates come with the second reading", 0}})
		for len(lines) < height-1 {
			lines = append(lines, nil)
		}
		return append(lines[:max(min(len(lines), height-1), 1)], s.foot(width))
	}
	if height >= 9 {
		lines = append(lines, s.cpuLine(width), s.protocolLine(width))
		if behind := s.behindLine(width); behind != nil {
			lines = append(lines, behind)
		}
	}
	rows := s.rows()
	room := height - len(lines) - 2 // the table's head and the keys
	if height < 4 {
		room = height - len(lines)
	}
	found, latest, cpus := s.findingLines(width, s.age()), s.latestLines(width, 2), s.cpuTable(width, 4)
	// The rows get up to half of the room, then the parts below get theirs in order of importance.
	left := room - min(len(rows), max(room/2, 3), room)
	take := func(part []Line, least int) []Line {
		n := min(len(part), left)
		if n < least {
			return nil
		}
		left -= n
		return part[:n]
	}
	// Each part gets a blank line above it while there is room.
	keep := 4
	if len(found) < keep {
		keep = len(found)
	}
	foundShown := take(found[:keep], min(len(found), 2))
	latestShown := take(latest, min(len(latest), 2))
	cpuShown := take(cpus, 2)
	shown := min(len(rows), room-len(foundShown)-len(latestShown)-len(cpuShown))
	spare := room - shown - len(foundShown) - len(latestShown) - len(cpuShown)
	if more := min(len(found)-len(foundShown), spare); more > 0 && len(foundShown) > 0 {
		foundShown, spare = found[:len(foundShown)+more], spare-more
	}
	if all := s.latestLines(width, 12); spare > 0 && len(latestShown) > 0 {
		more := min(len(all)-len(latestShown), spare)
		latestShown, spare = all[:len(latestShown)+more], spare-more
	}
	if all := s.cpuTable(width, 64); spare > 0 && len(cpuShown) > 0 {
		more := min(len(all)-len(cpuShown), spare)
		cpuShown, spare = all[:len(cpuShown)+more], spare-more
	}
	if height >= 4 {
		lines = append(lines, s.tableHead(rows, width))
	}
	lines = append(lines, s.table(rows, width, shown)...)
	for _, part := range [][]Line{cpuShown, foundShown, latestShown} {
		if len(part) > 0 && spare > 0 {
			lines, spare = append(lines, nil), spare-1
		}
		lines = append(lines, part...)
	}
	for len(lines) < height-1 {
		lines = append(lines, nil)
	}
	if height >= 4 {
		lines = append(lines[:height-1], s.foot(width))
	}
	return lines
}

// title names the host, the time, the interval, and what is unusual about the view.
func (s *State) title() Line {
	l := Line{{"linerate top", Bold}}.add(0, "  "+s.glyphs.inert(s.host))
	if s.shown != nil {
		l = l.add(0, "  "+s.shown.Time.Local().Format("15:04:05"))
	}
	l = l.add(Dim, "  every "+s.interval.String())
	if s.paused {
		text := "PAUSED"
		if s.shown != nil {
			text += " " + ago(s.last.Time.Sub(s.shown.Time))
		}
		l = l.add(0, "  ").add(Bold|Reverse, " "+text+" ")
	}
	if s.view == Overview {
		if s.filter != "" && !s.typing {
			l = l.add(0, "  ").add(Bold, "filter /"+s.glyphs.inert(s.filter))
		}
		order := "by " + s.sort
		if s.reversed {
			order += ", reversed"
		}
		if s.busyOnly {
			order += ", busy only"
		}
		l = l.add(Dim, "  "+order)
	}
	if s.shown != nil && len(s.shown.Warnings) > 0 {
		l = l.add(0, "  ").add(Yellow, fmt.Sprintf("%d not read (f)", len(s.shown.Warnings)))
	}
	return l
}

// foot shows the keys, or the filter that is being typed.
func (s *State) foot(width int) Line {
	if s.typing {
		return Line{{"/" + s.glyphs.inert(s.filter), Bold}}.add(Reverse, " ").add(Dim,
			"  enter keeps it, esc cancels")
	}
	keys := map[View]string{
		Overview: "? help  q quit  enter open  / filter  < > sort  r reverse  n connections  c CPUs  f findings" +
			"  space pause",
		Connections: "? help  q quit  esc back  up/down scroll  space pause  c CPUs",
		Detail:      "? help  q quit  esc back  up/down scroll  space pause",
		Processors:  "? help  q quit  esc back  up/down scroll  space pause  f findings",
		Verdicts:    "? help  q quit  esc back  up/down scroll  c CPUs",
		Help:        "q quit  esc back  up/down scroll",
	}
	// As many keys as fit.
	var pieces []Line
	for key := range strings.SplitSeq(keys[s.view], "  ") {
		pieces = append(pieces, Line{{key, Dim}})
	}
	l := s.items("", width+2, pieces...)
	return l[min(2, len(l)):]
}

// items joins as many pieces as fit, with two blanks between them.
func (s *State) items(label string, width int, pieces ...Line) Line {
	l := Line{{label, Bold}}
	for _, p := range pieces {
		if len(p) == 0 {
			continue
		}
		if l.width()+2+p.width() > width {
			break
		}
		l = append(l.add(0, "  "), p...)
	}
	return l
}

func piece(name string, value Span) Line { return Line{{name + " ", Dim}, value} }

// level shows a share of a processor, and marks it from strong on.
func level(x, strong float64) Span {
	switch {
	case x >= strong:
		return Span{"!" + percent(x), Bold | Yellow}
	case !(x > 0):
		return Span{percent(0), Dim}
	}
	return Span{percent(x), 0}
}

func (s *State) cpuLine(width int) Line {
	if len(s.shown.CPUs) == 0 {
		return s.items("CPU", width, Line{{"not read", Yellow}})
	}
	var busy, softirq, steal, squeezes, dropped, netRX, interrupts float64
	most := CPU{}
	for _, c := range s.shown.CPUs {
		busy, softirq, steal = busy+c.Busy, softirq+c.Softirq, steal+c.Steal
		squeezes, dropped, netRX, interrupts = squeezes+c.Squeezes, dropped+c.Dropped, netRX+c.NetRX,
			interrupts+c.CardInterrupts
		if c.Softirq > most.Softirq {
			most = c
		}
	}
	n := float64(max(len(s.shown.CPUs), 1))
	soft := piece("softirq", level(softirq/n, 0.5))
	if most.Softirq > 0 && len(s.shown.CPUs) > 1 {
		soft = append(soft.add(Dim, fmt.Sprintf(", cpu %d ", most.CPU)), level(most.Softirq, 0.8))
	}
	return s.items("CPU", width, piece("busy", level(busy/n, 0.9)), soft, piece("steal", level(steal/n, 0.05)),
		piece("squeezes/s", alarm(s.glyphs, squeezes)),
		piece("card irq/s", figure(interrupts)), piece("net_rx/s", figure(netRX)))
}

func (s *State) protocolLine(width int) Line {
	if s.shown.NoTCP {
		return s.items("TCP", width, Line{{"not read", Yellow}})
	}
	t, u := s.shown.TCP, s.shown.UDP
	again := piece("retransmits/s", alarm(s.glyphs, t.Retransmits))
	if t.Retransmits > 0 {
		again = again.add(0, " "+percent(t.Retransmitted))
	}
	return s.items("TCP", width, again, piece("out/s", figure(t.Sent)), piece("in/s", figure(t.Received)),
		piece("timeouts/s", alarm(s.glyphs, t.Timeouts)),
		piece("refused/s", alarm(s.glyphs, t.ListenOverflows)), piece("open", figure(t.Connections)),
		piece("UDP out/s", figure(u.Sent)), piece("in/s", figure(u.Received)))
}

// behindLine returns a line when packets are lost between NICs and programs.
func (s *State) behindLine(width int) Line {
	var pieces []Line
	for _, d := range s.shown.Drops {
		if d.Rate > 0 {
			pieces = append(pieces, piece(s.glyphs.inert(d.Place), alarm(s.glyphs, d.Rate)))
		}
	}
	if len(pieces) == 0 {
		return nil
	}
	return s.items("LOST/s", width, pieces...)
}

// layout returns the columns that fit.
func layout(width, name int) []Column {
	worth := []string{"in", "out", "drops", "link", "packets-in", "packets-out", "errors", "speed"}
	room := width - 2 - name
	var chosen []string
	all := Columns()
	for _, w := range worth {
		at := slices.IndexFunc(all, func(c Column) bool { return c.Name == w })
		if all[at].width+1 > room {
			break
		}
		room -= all[at].width + 1
		chosen = append(chosen, w)
	}
	return slices.DeleteFunc(all, func(c Column) bool { return !slices.Contains(chosen, c.Name) })
}

// nameWidth returns the width of the longest name, within bounds.
func (s *State) nameWidth(rows []Interface, width int) int {
	n := utf8.RuneCountInString("INTERFACE") + 2
	for _, i := range rows {
		n = max(n, utf8.RuneCountInString(s.glyphs.inert(i.Name)))
	}
	return min(n, 15, max(width/3, 6))
}

func right(text string, width int) string {
	return strings.Repeat(" ", max(width-utf8.RuneCountInString(text), 0)) + text
}

func (s *State) tableHead(rows []Interface, width int) Line {
	mark := s.glyphs.down
	if s.reversed {
		mark = s.glyphs.up
	}
	name := s.nameWidth(rows, width)
	head := "INTERFACE"
	if s.sort == "name" {
		head += mark
	}
	l := Line{{"  " + head, Bold | Reverse}}.cut(name+2, "").pad(name+2, Reverse)
	for _, c := range layout(width, name) {
		title := c.Title
		if c.Name == s.sort {
			title += mark
		}
		l = l.add(Bold|Reverse, " "+right(title, c.width))
	}
	if extra := width - l.width(); extra >= 12 {
		what := "  CURVE, PLACE OF DROPS, KIND"
		if s.bare {
			what = "  PLACE OF DROPS, KIND"
		}
		l = l.add(Bold|Reverse, what)
	}
	return l.cut(width, "").pad(width, Reverse)
}

// table returns n rows around the selected one.
func (s *State) table(rows []Interface, width, n int) []Line {
	if len(rows) == 0 {
		text := "no interfaces"
		if s.filter != "" || s.busyOnly {
			text = "no interface matches: esc removes the filter, i shows idle ones"
		}
		return []Line{{{"  " + text, Dim}}}
	}
	n = max(n, 0)
	s.page = n
	at := max(s.index(rows), 0)
	s.first = min(max(s.first, at-n+1), at, max(len(rows)-n, 0))
	s.first = max(s.first, 0)
	name := s.nameWidth(rows, width)
	columns := layout(width, name)
	var lines []Line
	for k := s.first; k < min(s.first+n, len(rows)); k++ {
		lines = append(lines, s.row(&rows[k], columns, name, width, k == at && !s.bare))
	}
	return lines
}

func (s *State) row(i *Interface, columns []Column, name, width int, selected bool) Line {
	look, mark := Look(0), "  "
	if selected {
		look, mark = Bold, s.glyphs.pick+" "
	}
	if !i.Up {
		look |= Dim
	}
	l := Line{{mark, look}}
	l = append(l, Line{{s.glyphs.inert(i.Name), look}}.cut(name, s.glyphs.more)...).pad(name+2, 0)
	for _, c := range columns {
		cell := c.cell(s.glyphs, i)
		l = l.add(cell.Look, " "+right(cell.Text, c.width))
	}
	if extra := width - l.width() - 2; extra >= 10 {
		l = append(l.add(0, "  "), s.rest(i, extra)...)
	}
	return l
}

// rest fills the remaining width: the curve of the traffic, the places of drops, the kind of the
// interface.
func (s *State) rest(i *Interface, width int) Line {
	n := min(max(width/2, 10), 40)
	if s.bare {
		n = 0
	}
	var both []float64
	if t := s.trails[i.Name]; t != nil {
		for k := range t.in {
			both = append(both, t.in[k]+t.out[k])
		}
	}
	curve := s.glyphs.spark(both, n)
	l := Line{{strings.Repeat(" ", max(n-utf8.RuneCountInString(curve), 0)) + curve, Green}}
	for _, d := range i.Drops {
		if d.Rate > 0 && d.Place != unwanted {
			l = l.add(worst, " "+s.glyphs.alarm+s.glyphs.inert(d.Place)+" "+short(d.Rate))
		}
	}
	what := strings.TrimSpace(i.Kind + " " + i.Driver)
	if i.Parent != "" {
		what += " on " + i.Parent
	}
	return l.add(Dim, " "+s.glyphs.inert(what)).cut(width, s.glyphs.more)
}

// age returns the age of the verdict.
func (s *State) age() string {
	if s.verdict.Time.IsZero() || s.last == nil {
		return ""
	}
	return ago(s.last.Time.Sub(s.verdict.Time))
}

// ago returns an elapsed time in words.
func ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return "now"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h ago", int(d.Hours()))
}

// findingLines are the head and a line for each finding.
func (s *State) findingLines(width int, age string) []Line {
	head := Line{{"FINDINGS", Bold}}
	switch {
	case s.verdict.Err != nil && s.verdict.Time.IsZero():
		return []Line{head.add(Yellow, "  this host cannot be judged: "+s.glyphs.inert(s.verdict.Err.Error()))}
	case s.verdict.Time.IsZero():
		return []Line{head.add(Dim, "  watching this host; a verdict comes in a few seconds")}
	}
	head = head.add(Dim, "  "+age)
	if s.verdict.Err != nil {
		head = head.add(Yellow, "; the last check failed: "+s.glyphs.inert(s.verdict.Err.Error()))
	}
	lines := []Line{head}
	for _, f := range s.verdict.Findings {
		lines = append(lines, s.finding(f))
	}
	if len(lines) == 2 && len(s.verdict.Findings) > 0 && s.verdict.Findings[0].Severity == evidence.Info {
		// A single short line goes beside the head.
		return []Line{append(head.add(0, "  "), lines[1][1:]...)}
	}
	return lines
}

func (s *State) finding(f evidence.Finding) Line {
	mark, look := "  ", Look(0)
	switch f.Severity {
	case evidence.Critical:
		mark, look = "!!", worst
	case evidence.Warning:
		mark, look = "! ", Bold|Yellow
	case evidence.Notice:
		mark = "* "
	}
	return Line{{mark + " ", look}}.add(look|Bold, string(f.Code)).add(0, "  "+s.glyphs.inert(f.Title))
}

// latestLines are the head and the n newest changes and events.
func (s *State) latestLines(width, n int) []Line {
	head := Line{{"CHANGES", Bold}}
	if s.journal.Err != nil {
		head = head.add(Yellow, "  "+s.glyphs.inert(s.journal.Err.Error()))
	}
	all := s.newest()
	if len(all) == 0 {
		if s.journal.Err == nil {
			head = head.add(Dim, "  none")
		}
		return []Line{head}
	}
	lines := []Line{head}
	for _, e := range all[:min(n, len(all))] {
		lines = append(lines, Line{{"   " + when(e.time, s.shown) + "  ", Dim}}.add(e.look, s.glyphs.inert(e.text)))
	}
	return lines
}

// when returns the time of a change, with the date unless that is today.
func when(t time.Time, now *Reading) string {
	layout := "15:04:05"
	if now != nil && t.Local().Format(time.DateOnly) != now.Time.Local().Format(time.DateOnly) {
		layout = "2006-01-02 15:04"
	}
	return t.Local().Format(layout)
}

// cpuTable is the head and the n processors with most work for the network.
func (s *State) cpuTable(width, n int) []Line {
	if s.shown == nil || len(s.shown.CPUs) == 0 {
		return nil
	}
	cpus := slices.Clone(s.shown.CPUs)
	sorting.StableFunc(cpus, func(a, b CPU) int {
		switch d := (b.Softirq + b.IRQ) - (a.Softirq + a.IRQ); {
		case d > 0:
			return 1
		case d < 0:
			return -1
		}
		return a.CPU - b.CPU
	})
	return s.cpuRows(cpus[:min(n, len(cpus))], width)
}

// cpuRows is a table of processors.
func (s *State) cpuRows(cpus []CPU, width int) []Line {
	type cpuColumn struct {
		title string
		width int
		cell  func(*CPU) Span
	}
	columns := []cpuColumn{
		{"BUSY", 6, func(c *CPU) Span { return level(c.Busy, 0.95) }},
		{"SOFTIRQ", 7, func(c *CPU) Span { return level(c.Softirq, 0.8) }},
		{"IRQ/s", 6, func(c *CPU) Span { return figure(c.CardInterrupts) }},
		{"NET_RX/s", 8, func(c *CPU) Span { return figure(c.NetRX) }},
		{"PACKETS/s", 9, func(c *CPU) Span { return figure(c.Packets) }},
		{"SQUEEZE/s", 9, func(c *CPU) Span { return alarm(s.glyphs, c.Squeezes) }},
		{"DROP/s", 7, func(c *CPU) Span { return alarm(s.glyphs, c.Dropped) }},
		{"USER", 6, func(c *CPU) Span { return level(c.User, 2) }},
		{"SYSTEM", 6, func(c *CPU) Span { return level(c.System, 2) }},
		{"IRQ", 6, func(c *CPU) Span { return level(c.IRQ, 0.5) }},
		{"STEAL", 6, func(c *CPU) Span { return level(c.Steal, 0.05) }},
		{"RPS/s", 6, func(c *CPU) Span { return figure(c.RPS) }},
	}
	head := Line{{"CPU   ", Bold}}
	fit := 0
	for _, c := range columns {
		if head.width()+1+c.width > width {
			break
		}
		head = head.add(Bold, " "+right(c.title, c.width))
		fit++
	}
	lines := []Line{head}
	for k := range cpus {
		l := Line{{fmt.Sprintf("%-6d", cpus[k].CPU), 0}}
		for _, c := range columns[:fit] {
			cell := c.cell(&cpus[k])
			l = l.add(cell.Look, " "+right(cell.Text, c.width))
		}
		lines = append(lines, l)
	}
	return lines
}
