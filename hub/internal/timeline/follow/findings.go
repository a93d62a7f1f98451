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
	// pauseOf is how long a finding may be absent and still be the same when it returns.
	pauseOf = 5 * time.Minute
	// rewriteAfter is the time between two writes of the figures of a finding that lasts.
	rewriteAfter = 10 * time.Minute
)

// key identifies a finding: a verdict at a place.
type key struct {
	code  evidence.Code
	where string
}

// held is an open finding.
type held struct {
	event timeline.Event
	last  time.Time // time of the last report
	put   time.Time
}

// severities in ascending order.
var severities = []evidence.Severity{evidence.Info, evidence.Notice, evidence.Warning, evidence.Critical}

func rank(s timeline.Severity) int {
	for i, known := range severities {
		if string(known) == string(s) {
			return i
		}
	}
	return -1
}

// Findings takes the findings of a diagnosis at a time; an empty list means that it found nothing.
// "healthy" and "no-traffic" are not events.
func (f *Follower) Findings(at time.Time, found []evidence.Finding) {
	found = append([]evidence.Finding(nil), found...)
	f.later(func() error {
		var errs []error
		for _, x := range found {
			if x.Code != evidence.Healthy && x.Code != evidence.NoTraffic {
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
		return nil // the text for its worst state stays
	}
	h.event.Title = x.Title
	doc, err := encoded(report.NewDiagnose(f.envelope(at), "", evidence.Case{}, []evidence.Finding{x}, nil))
	if err != nil {
		return fmt.Errorf("finding %s: %w", x.Code, err)
	}
	h.event.Host = f.o.Host
	return f.o.Store.Put(h.event, doc)
}

// overFindings ends findings that have been absent for long enough.
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

// resumeFindings resumes the findings that were open when the follower last ran: each ends then,
// unless a diagnosis finds it again soon. What else was open ends: links that came and went, and
// skipped runs of package schedule. Those of a clock that was ahead begin later than now.
func (f *Follower) resumeFindings(last time.Time) error {
	now := f.o.Now()
	if last.IsZero() || last.After(now) {
		last = now
	}
	lasting, _ := f.o.Store.Between(now, time.Time{}, timeline.Query{Host: f.o.Host, Limit: timeline.MaxLimit,
		Kinds: []timeline.Kind{timeline.Finding, timeline.Link, timeline.Measurement}})
	var errs []error
	for _, e := range lasting {
		k := key{evidence.Code(e.Subject), e.State}
		switch {
		case !e.Open:
		case e.Kind != timeline.Finding, f.opened[k] != nil, now.Sub(last) > pauseOf, !strings.HasPrefix(e.ID, "finding-"):
			errs = append(errs, f.over(e, last))
		default:
			f.opened[k] = &held{event: e, last: last, put: last}
		}
	}
	return errors.Join(errs...)
}
