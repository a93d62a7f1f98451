package cli

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/report"
)

// runRecord stores one tune, from its first segment on.
type runRecord struct {
	app          *app
	recorder     *runs.Recorder
	target, goal string
	unit         string // of the objective; empty: that of a network's goal
	began        time.Time
}

// recordRun names a new run. Nothing is written before its first segment.
func (a *app) recordRun(target, goal string) (*runRecord, error) {
	store, _, err := a.runStore()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	return &runRecord{app: a, target: target, goal: goal, began: began,
		recorder: store.Begin(runs.NewID(began, uint16(rand.Uint32())), time.Now)}, nil
}

// document returns the document of a tune so far; unfinished is the reason why the tune did not
// complete.
func (r *runRecord) document(t *loop.Tuning, unfinished string) *report.TuneDocument {
	d := report.NewTune(r.app.envelope(t.Before.Near.Name), report.TuneRun{
		ID: r.recorder.ID, Target: r.target, Goal: r.goal, Unit: r.unit, Findings: t.Before.Findings, Outcome: t.Outcome,
		Changes:  t.Changes,
		Duration: time.Since(r.began), Unfinished: unfinished,
	})
	d.Plan = planDocument(t.Plan)
	return d
}

// checkpoint stores an unfinished tune. Until its end is stored it counts as killed, with its
// changes on trial, or with changes that its hosts may have committed.
func (r *runRecord) checkpoint(t *loop.Tuning) {
	store, why := r.recorder.Checkpoint, "still running, or killed; the guard undoes its trial changes"
	if len(t.Outcome.PossiblyCommitted) > 0 {
		store, why = r.recorder.Keep, "still running, or killed while its hosts committed"
	}
	store(func() ([]byte, error) {
		d := r.document(t, why)
		d.State = tune.StateTrial
		return encoded(d)
	})
}

// finish stores the end of a tune and returns its document; a cause that is not nil ended the tune
// early. A run that cannot be stored gets a warning, because its result is valid without the file.
func (r *runRecord) finish(t *loop.Tuning, cause error) *report.TuneDocument {
	unfinished := ""
	switch {
	case errors.Is(cause, errInterrupted), exitStatus(cause) == exitInterrupted:
		unfinished = "interrupted"
	case cause != nil:
		unfinished = "ended early: " + oneSentence(cause)
	}
	d := r.document(t, unfinished)
	if err := r.recorder.Finish(func() ([]byte, error) { return encoded(d) }); err != nil {
		d.Run = ""
		d.Warnings = append(d.Warnings, "this run is not stored: "+oneSentence(err))
	}
	return d
}

// storeMeasurement stores a measurement that began at a given time. One that cannot be stored gets
// a warning.
func (a *app) storeMeasurement(began time.Time, d *report.MeasureDocument) {
	dir, err := a.stateDir()
	if err == nil {
		id := runs.NewID(began, uint16(rand.Uint32()))
		err = runs.In(durable.OS(), dir, runs.Measurements, 0).Begin(id,
			time.Now).Finish(func() ([]byte, error) { return encoded(d) })
	}
	if err != nil {
		d.Warnings = append(d.Warnings, "this measurement is not stored: "+oneSentence(err))
	}
}

func encoded(d any) ([]byte, error) {
	var b bytes.Buffer
	err := report.Encode(&b, d)
	return b.Bytes(), err
}
