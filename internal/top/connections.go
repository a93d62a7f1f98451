package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host/talkers"
)

// listed is how many connections a document or a page has.
const listed = 100

// Talk is what moved over TCP in the last interval.
type Talk struct {
	Reading talkers.Reading
	Time    time.Time // zero: not yet
	Err     error
}

// Talked sets what moved over TCP.
func (s *State) Talked(t Talk) {
	if !s.paused {
		s.talk = t
	}
}

// Listening reports whether the screen shows connections.
func (s *State) Listening() bool { return s.view == Connections }

// talked reads the connections while the screen shows them: a list of them costs some 5 µs each.
func (o Source) talked(ctx context.Context, h *Handle) error {
	tick := time.NewTicker(max(o.Interval, time.Second))
	defer tick.Stop()
	var meter *talkers.Meter
	for {
		switch {
		case !h.Listening():
			meter = nil
		case meter == nil:
			meter = new(talkers.Meter)
			if _, err := meter.Take(); err != nil {
				h.Change(func(s *State) { s.Talked(Talk{Time: time.Now(), Err: err}) })
			}
		default:
			r, err := meter.Take()
			h.Change(func(s *State) { s.Talked(Talk{r, time.Now(), err}) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// talk adds to a reading what its processes and connections moved.
func (r *Reading) talk(t talkers.Reading, err error) {
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		r.Warnings = append(r.Warnings, "the connections: this system does not list them with their bytes")
	case err != nil:
		r.Warnings = append(r.Warnings, "the connections: "+err.Error())
	}
	r.Warnings = append(r.Warnings, t.Warnings...)
	r.Processes, r.Connections = t.Processes(), t.Connections[:min(len(t.Connections), listed)]
}

// tableColumn is a column of a table after its name.
type tableColumn[T any] struct {
	title string
	width int
	cell  func(*T) Span
}

// fitted is a table of as many columns as fit, with the rest of each row, such as an address, in
// the remaining width.
func fitted[T any](width, name int, head string, rows []T, columns []tableColumn[T], named, rest func(*T) string,
	restTitle string, more string) []Line {
	line := Line{{head, Bold}}.cut(name, more).pad(name, Bold)
	fit := 0
	for _, c := range columns {
		if line.width()+1+c.width > width {
			break
		}
		line = line.add(Bold, " "+right(c.title, c.width))
		fit++
	}
	room := width - line.width() - 2
	const least = 9 // of an address that is worth a column
	if room >= least {
		line = line.add(Bold, "  "+restTitle)
	}
	lines := []Line{line}
	for i := range rows {
		l := Line{{named(&rows[i]), 0}}.cut(name, more).pad(name, 0)
		for _, c := range columns[:fit] {
			cell := c.cell(&rows[i])
			l = l.add(cell.Look, " "+right(cell.Text, c.width))
		}
		if room >= least {
			l = append(l.add(0, "  "), Line{{rest(&rows[i]), Dim}}.cut(room, more)...)
		}
		lines = append(lines, l)
	}
	return lines
}

// processName is the width of a process's name, which the kernel keeps in 15 bytes.
const processName = 15

// processOf returns the name of a process for a table.
func (s *State) processOf(p talkers.Process) string {
	return s.glyphs.inert(cmp.Or(p.Name, "(not known)"))
}

// processRows is a table of what processes moved.
func (s *State) processRows(all []talkers.Total, width int) []Line {
	return fitted(width, processName, "PROCESS", all, []tableColumn[talkers.Total]{
		{"OUT b/s", 8, func(t *talkers.Total) Span { return figure(t.Send) }},
		{"IN b/s", 8, func(t *talkers.Total) Span { return figure(t.Receive) }},
		{"AGAIN b/s", 9, func(t *talkers.Total) Span { return alarm(s.glyphs, t.Again) }},
		{"PID", 8, func(t *talkers.Total) Span {
			if t.PID == 0 {
				return Span{s.glyphs.absent, Dim}
			}
			return Span{strconv.Itoa(t.PID), 0}
		}},
		{"CONNS", 6, func(t *talkers.Total) Span { return figure(float64(t.Connections)) }},
	}, func(t *talkers.Total) string { return s.processOf(t.Process) },
		func(t *talkers.Total) string { return s.glyphs.inert(t.Cgroup) }, "CONTROL GROUP", s.glyphs.more)
}

// connectionRows is a table of what connections moved.
func (s *State) connectionRows(all []talkers.Connection, width int) []Line {
	return fitted(width, processName, "CONNECTION OF", all, []tableColumn[talkers.Connection]{
		{"OUT b/s", 8, func(c *talkers.Connection) Span { return figure(c.Send) }},
		{"IN b/s", 8, func(c *talkers.Connection) Span { return figure(c.Receive) }},
		{"AGAIN b/s", 9, func(c *talkers.Connection) Span { return alarm(s.glyphs, c.Again) }},
		{"RTT", 8, func(c *talkers.Connection) Span {
			if c.RTT <= 0 {
				return Span{s.glyphs.absent, Dim}
			}
			return Span{strings.ReplaceAll(s.glyphs.inert(unit.FormatSeconds(c.RTT)), " ", ""), 0}
		}},
	}, func(c *talkers.Connection) string { return s.processOf(c.Process) },
		func(c *talkers.Connection) string {
			return s.glyphs.inert(fmt.Sprintf("%s  %s  %s", c.Remote, c.Local, c.Congestion))
		}, "REMOTE, LOCAL, CONGESTION CONTROL", s.glyphs.more)
}

// connections returns the page of processes and connections.
func (s *State) connections(width int) []Line {
	switch {
	case s.talk.Err != nil && errors.Is(s.talk.Err, errors.ErrUnsupported):
		return []Line{{{"This system does not list its connections with their bytes.", Yellow}}}
	case s.talk.Err != nil:
		return s.wrapped(Line{{s.glyphs.inert("The connections cannot be read: " + s.talk.Err.Error()), Yellow}},
			width, 2)
	case s.talk.Time.IsZero():
		return []Line{{{"reading the connections; rates come with the second reading", Dim}}}
	}
	processes := s.talk.Reading.Processes()
	if len(processes) == 0 {
		return s.wrapped(Line{{"no TCP connection moved bytes; the kernel counts no bytes of UDP sockets", Dim}}, width, 0)
	}
	lines := append(s.processRows(processes, width), nil)
	connections := s.talk.Reading.Connections
	lines = append(lines, s.connectionRows(connections[:min(len(connections), listed)], width)...)
	if n := len(connections) - listed; n > 0 {
		lines = append(lines, Line{{fmt.Sprintf("and %d more connections", n), Dim}})
	}
	for _, w := range s.talk.Reading.Warnings {
		lines = append(lines, s.wrapped(Line{{"not read: " + s.glyphs.inert(w), Yellow}}, width, 2)...)
	}
	return lines
}
