package follow

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/peer/agent"
	"github.com/linerate/linerate/internal/report"
)

const (
	// abandoned is how long a run may store nothing before it counts as ended: a test and a soak
	// take less.
	abandoned = 15 * time.Minute
	// againAfter is the time between two reads of a run under way, which stores its growing
	// document every other second.
	againAfter = 30 * time.Second
	// stateUnfinished is the state of a run without an end.
	stateUnfinished = "unfinished"
)

// seenRun is what the follower knows of a run.
type seenRun struct {
	over bool      // it does not change any more
	read time.Time // when its document was last read
	doc  uint32    // checksum of the document as it was put
}

// lookAtRuns puts the runs that differ from the last look.
func (f *Follower) lookAtRuns(ctx context.Context, now time.Time) error {
	ids, err := f.o.Source.Runs(ctx, runs.Tunes)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		s, known := f.runs[id]
		have, stored := f.o.Store.Get(id)
		if !known && stored && have.State != stateUnfinished {
			s.over = true
		}
		if s.over || known && now.Sub(s.read).Abs() < againAfter {
			f.runs[id] = s
			continue
		}
		s, err := f.run(ctx, id, s, now)
		if err != nil {
			errs = append(errs[:min(len(errs), 3)], err) // the others are put anyway
			continue
		}
		f.runs[id] = s
	}
	for id := range f.runs {
		if len(f.runs) <= 2*runs.DefaultKeep {
			break
		}
		delete(f.runs, id) // pruned long ago; one that still exists is read once more
	}
	return errors.Join(errs...)
}

// run puts one run, and returns what is known of it then.
func (f *Follower) run(ctx context.Context, id string, before seenRun, now time.Time) (seenRun, error) {
	over := seenRun{over: true, read: now}
	began, ok := runs.Began(id)
	if !ok {
		return over, nil // not a run of linerate
	}
	e := timeline.Event{ID: id, Kind: timeline.Run, Time: began, Host: f.o.Host, Severity: "info", Title: "tune",
		State: "unreadable"}
	doc, err := f.o.Source.Run(ctx, runs.Tunes, id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return over, nil // pruned in the meantime
	case err != nil && strings.Contains(err.Error(), agent.ErrTooLarge.Error()):
		// an agent returns the error as text
		e.Title += ", whose document is " + agent.ErrTooLarge.Error()
		return over, f.putNew(e, nil)
	case err != nil:
		return before, err
	}
	d, err := report.DecodeTune(doc)
	if err != nil {
		e.Title += ", whose document cannot be read"
		return over, f.putNew(e, nil)
	}
	s := seenRun{over: true, read: now, doc: crc32.ChecksumIEEE(doc)}
	e.Subject, e.State, e.Title = d.Target, string(d.State), title(d)
	e.End = began.Add(time.Duration(d.Seconds * float64(time.Second)))
	if d.Seconds <= 0 || d.Unfinished != "" {
		e.End = d.Time
	}
	if d.Unfinished != "" {
		e.State = stateUnfinished
		// A run of today that was silent for long may still end; one of yesterday does not.
		s.over = now.Sub(d.Time) > 24*time.Hour
		if now.Sub(d.Time) < abandoned {
			e.Open, e.End = true, time.Time{}
		}
	}
	if e, err = e.Normal(); err != nil {
		return over, nil // times that no run of linerate has
	}
	have, stored := f.o.Store.Get(id)
	if e.Document = have.Document; stored && have == e && have.Document && s.doc == before.doc {
		return s, nil
	}
	err = f.o.Store.Put(e, doc)
	if errors.Is(err, timeline.ErrDocumentTooLarge) {
		err = nil // the list has it without the document
	}
	return s, err
}

// title returns the result of a run on one line.
func title(d *report.TuneDocument) string {
	r := report.NewRunEntry("", d)
	what := strings.TrimSpace("tune for " + r.Goal)
	if r.Target != "" {
		what += " to " + r.Target
	}
	switch {
	case r.Ratio > 0 && r.Low > 0 && r.High > 0:
		what += fmt.Sprintf(": %+.1f %% (%+.1f to %+.1f %%)", 100*(r.Ratio-1), 100*(r.Low-1), 100*(r.High-1))
	case r.Ratio > 0:
		what += fmt.Sprintf(": %+.1f %%", 100*(r.Ratio-1))
	case r.Unfinished == "":
		what += ": " + r.Result
	}
	if n := len(r.Kept); n > 0 {
		what += fmt.Sprintf(", %d kept", n)
	}
	if r.Unfinished != "" {
		what += ": " + r.Unfinished
	}
	return what
}
