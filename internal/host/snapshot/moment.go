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

// ErrNotTogether is in the errors of [Between] for two moments that have no difference.
var ErrNotTogether = errors.New("the two do not belong together")

// Moment is one host at one moment with all that it had counted until then.
type Moment struct {
	File *File
	Host *host.Snapshot

	reading *watch.Reading
}

// Moment reads host and counters. The error is for a file without any counters.
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

// narrowSeconds is the time in which a counter of 32 bits goes through zero at some 1.2 million
// packets a second, which one processor can take in.
const narrowSeconds = 3600

// sayNarrow adds what is to be said of a long span.
func sayNarrow(s *watch.Span) *watch.Span {
	if s.Seconds > narrowSeconds {
		s.Warnings = append(s.Warnings,
			"counters of 32 bits (softnet_stat, queueing disciplines, interrupts) may have gone through zero within "+
				duration(s.Seconds)+
				": theirs are lower bounds")
	}
	return s
}

// SinceBoot gives what the host has counted since it was started. Seconds is 0 where one of the two
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
	// A socket is younger than the host: there is no time that its drops could be divided by.
	s.Sockets = sockets(m.File.sockets, nil, 0)
	return s
}

// Between gives the earlier and the later of two moments, and what happened from one to the other.
// The error is ErrNotTogether for moments of different hosts or different boots, for two at the
// same time, and for one of which the time is not known.
func Between(a, b *Moment) (earlier, later *Moment, span *watch.Span, err error) {
	refuse := func(format string, args ...any) (*Moment, *Moment, *watch.Span, error) {
		return nil, nil, nil,
			fmt.Errorf("compare %s with %s: "+format+": %w",
				append(append([]any{a.File.Name, b.File.Name}, args...), ErrNotTogether)...)
	}
	for _, m := range []*Moment{a, b} {
		if m.Host.Time.IsZero() {
			return refuse("when %s was taken is not known", m.File.Name)
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
	// A start between the two: the counters of both are since different moments. In a capture the
	// boot id is replaced, and in an old report it may be missing.
	switch boot := later.Host.BootTime; {
	case boot.After(earlier.Host.Time):
		return refuse("the host was started anew in between, at %s", boot.UTC().Format(time.RFC3339))
	case !scrubbed && a.Host.BootID != b.Host.BootID && a.Host.BootID != "" && b.Host.BootID != "":
		return refuse("the host was started anew in between: boot id %s, then %s", earlier.Host.BootID,
			later.Host.BootID)
	}
	span = sayNarrow(later.reading.Since(earlier.reading))
	// Without sockets at the beginning those at the end would have dropped all that they ever did
	// in between.
	if before := earlier.File.sockets; len(before) > 0 {
		span.Sockets = sockets(later.File.sockets, before, span.Seconds)
	}
	return earlier, later, span, nil
}

// different tells two hosts apart: by what a host keeps over its life, and by names only where
// nobody replaced them. Empty: they may be one.
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

// processors is their model.
func processors(s *host.Snapshot) string {
	if len(s.CPUs) == 0 {
		return ""
	}
	return s.CPUs[0].Model
}

// cards are the interfaces with hardware below: their drivers and buses stay, where a name may be
// replaced in a capture (enx…).
func cards(s *host.Snapshot) []string {
	var all []string
	for _, dev := range s.Interfaces {
		if !dev.Virtual && dev.Bus != nil {
			all = append(all, dev.Driver+" at "+dev.Bus.Address)
		}
	}
	return all
}

// duration writes a long time in the unit that people count it in.
func duration(seconds float64) string {
	switch {
	case seconds >= 2*86400:
		return fmt.Sprintf("%.0f days", seconds/86400)
	case seconds >= 2*3600:
		return fmt.Sprintf("%.0f hours", seconds/3600)
	}
	return fmt.Sprintf("%.0f minutes", seconds/60)
}
