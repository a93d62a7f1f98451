package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/watch"
)

// ErrNotTogether reports that two moments have no difference; see [Between].
var ErrNotTogether = errors.New("the two do not belong together")

// Moment is one host at one moment, with all that it had counted until then.
type Moment struct {
	File *File
	Host *host.Snapshot

	reading *watch.Reading
}

// Moment reads host and counters. It fails for a file without any counters.
func (f *File) Moment(ctx context.Context) (*Moment, error) {
	s, err := f.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	r, err := watch.ReadArchive(f.root)
	if err != nil {
		return nil, fmt.Errorf("read snapshot %s: %w", f.Name, err)
	}
	return &Moment{File: f, Host: s, reading: r}, nil
}

// narrowSeconds is the time in which a 32-bit counter wraps at some 1.2 million packets per second,
// which one CPU can receive.
const narrowSeconds = 3600

// sayNarrow adds a warning to a long span.
func sayNarrow(s *watch.Span) *watch.Span {
	if s.Seconds > narrowSeconds {
		s.Warnings = append(s.Warnings,
			"counters of 32 bits (softnet_stat, queueing disciplines, interrupts) may have wrapped within "+
				duration(s.Seconds)+
				": theirs are lower bounds")
	}
	return s
}

// SinceBoot returns what the host has counted since it started. Seconds is 0 if one of the two
// moments is not known.
func (m *Moment) SinceBoot() *watch.Span {
	var boot time.Time
	if _, ok := m.Host.Uptime(); ok {
		boot = m.Host.BootTime
	}
	s := sayNarrow(m.reading.SinceBoot(boot))
	if boot.IsZero() {
		s.Warnings = append(s.Warnings,
			"how long the host had been up is not known, so counters since its start have no rates")
	}
	// A socket is younger than the host, so its drops have no time to be divided by.
	s.Sockets = sockets(m.File.sockets, nil, 0)
	return s
}

// Between returns the earlier and the later of two moments, and the span from one to the other. It
// returns ErrNotTogether for moments of different hosts or different boots, for two at the same
// time, and for one without a known time.
func Between(a, b *Moment) (earlier, later *Moment, span *watch.Span, err error) {
	refuse := func(format string, args ...any) (*Moment, *Moment, *watch.Span, error) {
		return nil, nil, nil,
			fmt.Errorf("compare %s with %s: "+format+": %w",
				append(append([]any{a.File.Name, b.File.Name}, args...), ErrNotTogether)...)
	}
	for _, m := range []*Moment{a, b} {
		if m.Host.Time.IsZero() {
			return refuse("it is not known when %s was taken", m.File.Name)
		}
	}
	earlier, later = a, b
	if b.Host.Time.Before(a.Host.Time) {
		earlier, later = b, a
	}
	if !later.Host.Time.After(earlier.Host.Time) {
		return refuse("both were taken at %s", a.Host.Time.UTC().Format(time.RFC3339))
	}
	scrubbed := a.File.Kind == Capture || b.File.Kind == Capture
	if what, one, other := different(a.Host, b.Host, scrubbed); what != "" {
		return refuse("%s %s and %s: another host", what, one, other)
	}
	// If the host started between the two, their counters begin at different times. A capture
	// replaces the boot id, and an old report may lack it.
	switch boot := later.Host.BootTime; {
	case boot.After(earlier.Host.Time):
		return refuse("the host restarted between the two, at %s", boot.UTC().Format(time.RFC3339))
	case !scrubbed && a.Host.BootID != b.Host.BootID && a.Host.BootID != "" && b.Host.BootID != "":
		return refuse("the host restarted between the two: boot id %s, then %s", earlier.Host.BootID,
			later.Host.BootID)
	}
	span = sayNarrow(later.reading.Since(earlier.reading))
	// Without sockets of the first moment, those of the second would appear to have dropped all
	// their lifetime's drops in the span.
	if before := earlier.File.sockets; len(before) > 0 {
		span.Sockets = sockets(later.File.sockets, before, span.Seconds)
	}
	return earlier, later, span, nil
}

// different distinguishes two hosts: by what a host keeps over its life, and by names only if
// neither file is scrubbed. Empty results: they may be one host.
func different(a, b *host.Snapshot, scrubbed bool) (what, one, other string) {
	if a.Arch != b.Arch && a.Arch != "" && b.Arch != "" {
		return "architecture", a.Arch, b.Arch
	}
	if x, y := processors(a), processors(b); x != y && x != "" && y != "" {
		return "processors", x, y
	}
	if !scrubbed && a.Name != b.Name && a.Name != "" && b.Name != "" {
		return "name", a.Name, b.Name
	}
	x, y := cards(a), cards(b)
	if len(x) > 0 && len(y) > 0 && !slices.ContainsFunc(x, func(name string) bool { return slices.Contains(y, name) }) {
		return "cards", fmt.Sprint(x), fmt.Sprint(y)
	}
	return "", "", ""
}

// processors returns their model.
func processors(s *host.Snapshot) string {
	if len(s.CPUs) == 0 {
		return ""
	}
	return s.CPUs[0].Model
}

// cards lists the interfaces with hardware: their drivers and buses stay, while a capture may
// replace a name (enx…).
func cards(s *host.Snapshot) []string {
	var all []string
	for _, dev := range s.Interfaces {
		if !dev.Virtual && dev.Bus != nil {
			all = append(all, dev.Driver+" at "+dev.Bus.Address)
		}
	}
	return all
}

// duration formats a long time in its usual unit.
func duration(seconds float64) string {
	switch {
	case seconds >= 2*86400:
		return fmt.Sprintf("%.0f days", seconds/86400)
	case seconds >= 2*3600:
		return fmt.Sprintf("%.0f hours", seconds/3600)
	}
	return fmt.Sprintf("%.0f minutes", seconds/60)
}
