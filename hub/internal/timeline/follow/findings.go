package follow

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/report"
)

const (
	// pauseOf is how long a finding may be away and be the same when it comes back.
	pauseOf = 5 * time.Minute
	// rewriteAfter is how long the figures of a finding that lasts are good for.
	rewriteAfter = 10 * time.Minute
)

// key is what makes two findings the same: a verdict at a place.
type key struct {
	code  evidence.Code
	where string
}

// held is a finding that is not over.
type held struct {
	event timeline.Event
	last  time.Time // when it was last reported
	put   time.Time
}

// severities in their order.
var severities = []evidence.Severity{evidence.Info, evidence.Notice, evidence.Warning, evidence.Critical}

func rank(s timeline.Severity) int {
	for i, known := range severities {
		if string(known) == string(s) {
			return i
		}
	}
	return -1
}

// Findings takes in what was found at a time; an empty list says that nothing was. That the host is
// healthy is no event.
func (f *Follower) Findings(at time.Time, found []evidence.Finding) {
	found = append([]evidence.Finding(nil), found...)
	f.later(func() error {
		var errs []error
		for _, x := range found {
			if x.Code != evidence.Healthy {
				errs = append(errs, f.finding(at, x))
			}
		}
		return errors.Join(errs...)
	})
}

func (f *Follower) finding(at time.Time, x evidence.Finding) error {
	k := key{x.Code, x.Where}
	h := f.opened[k]
	if h == nil {
		h = &held{event: timeline.Event{
			ID: idOf("finding", string(x.Code), x.Where, fmt.Sprint(at.Unix())), Kind: timeline.Finding, Time: ms(at),
			Open: true, Subject: string(x.Code), State: x.Where,
		}}
		f.opened[k] = h
	}
	h.last = at
	worse := rank(timeline.Severity(x.Severity)) > rank(h.event.Severity)
	if !worse && at.Sub(h.put).Abs() < rewriteAfter {
		return nil
	}
	h.put = at
	if worse {
		h.event.Severity = timeline.Severity(x.Severity)
	} else if rank(timeline.Severity(x.Severity)) < rank(h.event.Severity) {
		return nil // the words for the worst of it stay
	}
	h.event.Title = x.Title
	doc, err := encoded(report.NewDiagnose(f.envelope(at), "", evidence.Case{}, []evidence.Finding{x}, nil))
	if err != nil {
		return fmt.Errorf("finding %s: %w", x.Code, err)
	}
	h.event.Host = f.o.Host
	return f.o.Store.Put(h.event, doc)
}

// overFindings ends what has been away for long enough.
func (f *Follower) overFindings(now time.Time) error {
	var errs []error
	for k, h := range f.opened {
		if now.Sub(h.last) <= pauseOf {
			continue
		}
		delete(f.opened, k)
		errs = append(errs, f.over(h.event, h.last))
	}
	return errors.Join(errs...)
}

func (f *Follower) over(e timeline.Event, end time.Time) error {
	e.Open, e.End = false, ms(end)
	return f.putNew(e, nil)
}

// resumeFindings goes on with what was not over when the follower was last there: it ends then,
// unless it is found again soon.
func (f *Follower) resumeFindings(last time.Time) error {
	now := f.o.Now()
	if last.IsZero() || last.After(now) {
		last = now
	}
	lasting, _ := f.o.Store.Between(now, now, timeline.Query{Kinds: []timeline.Kind{timeline.Finding, timeline.Link},
		Host: f.o.Host, Limit: timeline.MaxLimit})
	var errs []error
	for _, e := range lasting {
		k := key{evidence.Code(e.Subject), e.State}
		switch {
		case !e.Open:
		case e.Kind == timeline.Link, f.opened[k] != nil, now.Sub(last) > pauseOf, !strings.HasPrefix(e.ID, "finding-"):
			errs = append(errs, f.over(e, last))
		default:
			f.opened[k] = &held{event: e, last: last, put: last}
		}
	}
	return errors.Join(errs...)
}
