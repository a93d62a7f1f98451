package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/host/talkers"
	"github.com/linerate/linerate/internal/report"
)

// The bounds of the flags.
const (
	MinInterval = 100 * time.Millisecond
	MaxInterval = time.Minute
	MaxCount    = 3600 // readings of one document, which is in memory until it is complete
)

// tableWidth is the width of a table for scripts, in columns; one on a narrower terminal fits it.
const tableWidth = 110

// Asked are the flags of the command.
type Asked struct {
	Begin
	Once    bool
	Count   int
	Counted bool // Count was given
	Endless bool // readings until the context ends, which Collect passes on and does not keep
	Width   int  // columns of the terminal; 0: a file or a pipe
}

// width returns the width of a table.
func (a *Asked) width() int {
	if a.Width == 0 {
		return tableWidth
	}
	return min(a.Width, tableWidth)
}

// Check refuses flags that are out of bounds or contradict each other.
func (a *Asked) Check() error {
	switch {
	case a.Interval < MinInterval || a.Interval > MaxInterval:
		return fmt.Errorf("--interval %v: must be from %v to %v", a.Interval, MinInterval, MaxInterval)
	case a.Counted && a.Count < 1 || a.Count > MaxCount:
		return fmt.Errorf("--count %d: must be from 1 to %d", a.Count, MaxCount)
	case a.Once && a.Count > 1:
		return errors.New("--once and --count: give only one of them")
	case a.Sort != "" && !slices.Contains(columnNames(), a.Sort):
		return fmt.Errorf("--sort %q: not one of %s", a.Sort, strings.Join(columnNames(), ", "))
	case a.Filter != "" && a.Interface != "":
		return errors.New("--filter and --interface: give only one of them")
	}
	return nil
}

// SortNames returns the arguments of --sort, for a help text.
func SortNames() string { return strings.Join(columnNames(), ", ") }

// Collected is the result for a script.
type Collected struct {
	Readings []Reading
	Verdict  Verdict
	Journal  Journal
	Hidden   int // interfaces of the last reading that are left out
}

// ErrNoInterface reports that the host has no interface of that name.
var ErrNoInterface = errors.New("no such interface")

// Collect takes as many readings as requested, at least one, and judges the host meanwhile if there
// is time. It calls each with every reading; an error of each ends it. It returns what was
// collected also beside an error, such as that of a context that ended.
func Collect(ctx context.Context, a Asked, source Source, each func(Reading) error) (Collected, error) {
	var c Collected
	sampler, err := openSampler()
	if err != nil {
		return c, err
	}
	defer sampler.Close()
	count := max(a.Count, 1)
	judged := make(chan Verdict, 1)
	whole := time.Duration(count) * source.Interval
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Over less than a second, shares of processors mean little.
	if whole >= time.Second && !a.Endless {
		go func() { judged <- judge(ctx, min(whole, judgeFor)) }()
	} else {
		judged <- Verdict{Err: errors.New("it takes a second or more to judge a host")}
	}
	connections := new(talkers.Meter)
	_, _ = connections.Take() // an error comes again with the first rates
	var failed error
	err = source.readings(ctx, sampler, func(r Reading) bool {
		r.talk(connections.Take())
		all := len(r.Interfaces)
		if r.Interfaces, failed = a.choose(r.Interfaces); failed != nil {
			return false
		}
		c.Hidden = all - len(r.Interfaces)
		if !a.Endless {
			c.Readings = append(c.Readings, r)
		}
		failed = each(r)
		return failed == nil && (a.Endless || len(c.Readings) < count)
	})
	c.Journal = source.changes()
	if err = errors.Join(err, failed, ctx.Err()); err != nil {
		cancel()
	}
	c.Verdict = <-judged
	return c, err
}

func (a *Asked) choose(all []Interface) ([]Interface, error) {
	if a.Interface == "" {
		chosen := arrange(all, a.Filter, a.sorted(), false, false)
		return append([]Interface{}, chosen...), nil
	}
	for _, i := range all {
		if i.Name == a.Interface {
			return []Interface{i}, nil
		}
	}
	return nil, fmt.Errorf("show interface %q: %w", a.Interface, ErrNoInterface)
}

func (a *Asked) sorted() string {
	if a.Sort == "" {
		return "traffic"
	}
	return a.Sort
}

// Document returns the result as linerate.top/1.
func (c Collected) Document(e report.Envelope) *Document {
	var warnings []string
	for _, err := range []error{c.Verdict.Err, c.Journal.Err} {
		if err != nil {
			warnings = append(warnings, err.Error())
		}
	}
	d := NewDocument(e, c.Readings, c.Verdict.Findings, c.Journal.Changes, warnings)
	d.Hidden = c.Hidden
	return d
}

// ASCII reports whether a terminal shows only ASCII, by the locale in the environment (POSIX: the
// first variable that is set counts). Windows has no such variables.
func ASCII(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env(name)); v != "" {
			return !strings.Contains(v, "utf-8") && !strings.Contains(v, "utf8")
		}
	}
	return runtime.GOOS != "windows"
}

// Table prints a reading as on the screen, without the frame.
func (a *Asked) Table(w io.Writer, r Reading) error {
	s := NewState(a.Begin)
	s.bare, s.view = true, Overview
	s.Reading(r)
	width := a.width()
	lines := []Line{s.title().cut(width, ""), s.cpuLine(width), s.protocolLine(width)}
	if behind := s.behindLine(width); behind != nil {
		lines = append(lines, behind)
	}
	lines = append(lines, nil)
	if a.Interface != "" {
		lines = append(lines, s.detail(width)...)
		lines = lines[:len(lines)-len(s.counters(width))] // only the screen reads those
	} else {
		rows := s.rows()
		lines = append(lines, s.tableHead(rows, width))
		lines = append(lines, s.table(rows, width, len(rows))...)
		lines = append(lines, nil)
		lines = append(lines, s.cpuRows(r.CPUs, width)...)
		if len(r.Processes) > 0 {
			lines = append(append(lines, nil), s.processRows(r.Processes[:min(len(r.Processes), 10)], width)...)
		}
	}
	for _, warning := range r.Warnings {
		lines = append(lines, Line{{"not read: " + s.glyphs.inert(warning), 0}})
	}
	return s.write(w, append(lines, nil), width)
}

// Ending prints findings and changes, below the last table.
func (a *Asked) Ending(w io.Writer, c Collected) error {
	s := NewState(a.Begin)
	if n := len(c.Readings); n > 0 {
		s.Reading(c.Readings[n-1])
	}
	s.Judged(c.Verdict)
	s.Changed(c.Journal)
	width := a.width()
	return s.write(w, append(s.findingLines(width, ""), s.latestLines(width, latest)...), width)
}

// write breaks the lines that are longer than the width.
func (s *State) write(w io.Writer, lines []Line, width int) error {
	var b strings.Builder
	for _, line := range lines {
		for _, l := range s.wrapped(line, width, 5) {
			b.WriteString(l.String() + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
