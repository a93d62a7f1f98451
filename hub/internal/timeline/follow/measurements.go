package follow

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/peer/agent"
	"github.com/linerate/linerate/internal/report"
)

// lookAtMeasurements puts the measurements stored since the last look. A stored measurement never
// changes.
func (f *Follower) lookAtMeasurements(ctx context.Context) error {
	ids, err := f.o.Source.Runs(ctx, runs.Measurements)
	if err != nil {
		return err
	}
	var errs []error
	stored := make(map[string]bool, len(ids))
	for _, id := range ids {
		if !f.measured[id] {
			if err := f.measurement(ctx, id); err != nil {
				errs = append(errs[:min(len(errs), 3)], err) // the others are put anyway
				continue
			}
		}
		stored[id] = true
	}
	f.measured = stored
	return errors.Join(errs...)
}

// measurement puts one measurement, unless the store has it.
func (f *Follower) measurement(ctx context.Context, id string) error {
	began, ok := runs.Began(id)
	event := idOf("measurement", id)
	if have, known := f.o.Store.Get(event); !ok || known && have.Document {
		return nil
	}
	e := timeline.Event{ID: event, Kind: timeline.Measurement, Time: began, Host: f.o.Host, Severity: "info",
		Title: "measurement", State: "unreadable"}
	doc, err := f.o.Source.Run(ctx, runs.Measurements, id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // pruned in the meantime
	case err != nil && strings.Contains(err.Error(), agent.ErrTooLarge.Error()):
		// an agent returns the error as text
		e.Title += ", whose document is " + agent.ErrTooLarge.Error()
		return f.putNew(e, nil)
	case err != nil:
		return err
	}
	d, err := report.DecodeMeasure(doc)
	if err != nil {
		e.Title += ", whose document cannot be read"
		return f.putNew(e, nil)
	}
	e.Subject, e.State, e.End, e.Title = d.Target, "done", d.Time, measured(d)
	if len(d.Warnings) > 0 {
		e.Severity = "notice" // the document is incomplete
	}
	if e, err = e.Normal(); err != nil {
		return nil // times that no measurement of linerate has
	}
	if err = f.o.Store.Put(e, doc); errors.Is(err, timeline.ErrDocumentTooLarge) {
		err = nil // the list has it without the document
	}
	return err
}

// measured returns the result of a measurement on one line.
func measured(d *report.MeasureDocument) string {
	what := "suite"
	if len(d.Tests) == 1 {
		what = report.Named(d.Tests[0])
	}
	what += " to " + d.Target
	if figures := report.Figures(d.Tests); figures != "" {
		what += ": " + figures
	}
	return what
}
