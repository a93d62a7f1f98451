package follow

import (
	"errors"
	"fmt"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/host/sample"
)

// An interface that changes more often than this has one event for all changes.
const (
	manyChanges = 20
	within      = 10 * time.Minute
)

// flapping is an interface that changed recently.
type flapping struct {
	times []time.Time // of the latest changes, oldest first
	since time.Time   // when it began to flap; zero: it does not flap
	count int         // changes since then
	put   time.Time   // when the event was last put
}

// Happened takes a reading: link changes, and whether readings were missing before it. The caller
// may reuse the reading afterwards.
func (f *Follower) Happened(r *sample.Reading) {
	wall, boot := r.Time, r.SinceBoot
	f.pause(&sample.Reading{Time: wall, SinceBoot: boot})
	for _, h := range r.Happened {
		f.later(func() error { return f.link(h) })
	}
}

// link puts an event of an interface, or adds it to the event of a flapping one.
func (f *Follower) link(h sample.Happening) error {
	l := f.links[h.Interface]
	if l == nil {
		l = &flapping{}
		f.links[h.Interface] = l
	}
	l.times = append(l.times, h.Time)
	if len(l.times) > manyChanges {
		l.times = l.times[len(l.times)-manyChanges-1:]
	}
	if !l.since.IsZero() {
		l.count++
		if h.Time.Sub(l.put).Abs() < readEvery {
			return nil
		}
		l.put = h.Time
		return f.flaps(h.Interface, l, time.Time{})
	}
	if len(l.times) > manyChanges && h.Time.Sub(l.times[0]) < within {
		l.since, l.count, l.put = h.Time, 1, h.Time
		return f.flaps(h.Interface, l, time.Time{})
	}
	e := timeline.Event{
		ID: idOf("link", fmt.Sprint(h.Time.UnixMilli()), h.Interface, string(h.Change)), Kind: timeline.Link,
		Time:    ms(h.Time),
		Subject: h.Interface, Interface: h.Interface, Title: h.Text, Severity: "info", State: string(h.Change),
	}
	if h.Change == sample.LinkDown || h.Change == sample.LinkGone {
		e.Severity = "warning"
	}
	return f.putNew(e, nil)
}

// flaps puts the event of a flapping interface.
func (f *Follower) flaps(name string, l *flapping, end time.Time) error {
	return f.putNew(timeline.Event{
		ID: idOf("flaps", fmt.Sprint(l.since.Unix()), name), Kind: timeline.Link, Time: ms(l.since), End: ms(end),
		Open:    end.IsZero(),
		Subject: name, Interface: name, Severity: "warning", State: "flapping",
		Title: fmt.Sprintf("%s comes and goes: %d changes", name, l.count),
	}, nil)
}

// quietLinks ends the events of interfaces that have not changed for a while.
func (f *Follower) quietLinks(now time.Time) error {
	var errs []error
	for name, l := range f.links {
		last := l.times[len(l.times)-1]
		if now.Sub(last) < within {
			continue
		}
		if !l.since.IsZero() {
			errs = append(errs, f.flaps(name, l, last))
		}
		delete(f.links, name)
	}
	return errors.Join(errs...)
}
