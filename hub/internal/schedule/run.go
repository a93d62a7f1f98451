package schedule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/credential"
	"github.com/linerate/linerate/hub/internal/timeline"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/peer/reach"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/lease"
)

const (
	connectPatience = 10 * time.Second
	// tuneLook is the time between two checks for a tune beside a run.
	tuneLook = time.Second
	// patience is how much longer than its limit a run may take to return, because the near end
	// notifies the far end. After that it counts as hung.
	patience = 30 * time.Second
)

var (
	errLimit = errors.New("took longer than its time limit, and was cut off")
	errTune  = errors.New("was cut off")
)

// outcome is the result of a run.
type outcome struct {
	connected bool
	results   []traffic.Result
	missing   []string
	err       error
}

// measure makes one run and records it. It reports whether the target is alive.
func (s *Scheduler) measure(ctx context.Context, p *plan) bool {
	began := time.Now()
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	stop := time.AfterFunc(p.limit, func() { cancel(errLimit) })
	defer stop.Stop()
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			// Input of a target must not end the hub: a panic is a failure of the run.
			if r := recover(); r != nil {
				s.o.Log.Error("measurement broke", "name", p.Name, "panic", r, "stack", string(debug.Stack()))
				o.err = fmt.Errorf("internal error: %v", r)
			}
			done <- o
		}()
		s.tests(limited, p, &o)
	}()
	o := s.await(ctx, p, done, cancel)
	if ctx.Err() != nil {
		return false // the hub ends: the run has no result
	}
	p.spent.add(p.last, -p.worst) // of the start, which stays charged only if the hub ends
	if o.connected {
		p.spent.add(s.clock(), p.worst)
	}
	if cause := context.Cause(limited); cause != nil && o.err != nil {
		o.err = cause
	}
	s.publish(p, began, o)
	return o.err == nil || errors.Is(o.err, errTune) || errors.Is(o.err, lease.ErrBusy)
}

// await returns the outcome of a run, and watches for a tune in the meantime, which a run must not
// disturb.
func (s *Scheduler) await(ctx context.Context, p *plan, done <-chan outcome, cancel context.CancelCauseFunc) outcome {
	look := time.NewTicker(tuneLook)
	defer look.Stop()
	hung := time.NewTimer(p.limit + patience)
	defer hung.Stop()
	var ending <-chan time.Time
	ended := ctx.Done()
	for {
		select {
		case o := <-done:
			return o
		case <-ended:
			// The run is being cut off; notifying the far end may take a moment.
			ended, ending = nil, time.After(patience)
		case <-ending:
			return outcome{err: ctx.Err()}
		case <-look.C:
			if reason := s.o.tuning(); reason != "" {
				cancel(fmt.Errorf("%w: %s", errTune, reason))
			}
		case <-hung.C:
			// The hung run keeps blocking the next ones: two at once would be worse than none.
			s.o.Log.Error("measurement hangs", "name", p.Name, "target", p.Target, "limit", p.limit)
			s.problem(p.Name, "hangs, and no other is made until it ends")
		}
	}
}

// tests runs the tests against the target.
func (s *Scheduler) tests(ctx context.Context, p *plan, o *outcome) {
	specs := p.specs(p.amounts)
	if loads := slices.ContainsFunc(specs, traffic.Spec.Heavy); loads && s.o.Lease != nil {
		release, err := s.o.Lease.Take()
		if err != nil {
			o.err = err
			return
		}
		defer release()
	}
	key := ""
	if p.KeyFile != "" {
		var err error
		if key, err = credential.Secret(p.KeyFile); err != nil {
			o.err = fmt.Errorf("read key_file: %w", err)
			return
		}
	}
	// A shorter limit of the run ends the context.
	way, err := s.o.open(ctx, p.Target, peer.ConnectOptions{Key: key, Timeout: connectPatience,
		Version: s.o.Version, HostName: s.o.Host})
	if err != nil {
		o.err = err
		return
	}
	defer way.Close()
	o.connected = true
	o.results, o.missing, o.err = reach.All(specs, func(spec traffic.Spec) (*traffic.Result, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return loop.Measure(ctx, way.Run, spec, nil)
	})
}

// publish writes the outcome of a run into history and timeline.
func (s *Scheduler) publish(p *plan, began time.Time, o outcome) {
	now := time.Now()
	e := timeline.Event{
		ID: fmt.Sprintf("measurement-%s-%d", p.Name, began.UnixMilli()), Kind: timeline.Measurement, Time: began.UTC(),
		End:  now.UTC(),
		Host: s.o.Host, Subject: p.Target, Title: p.title(o), Severity: "info", State: "done",
	}
	switch {
	case errors.Is(o.err, errTune):
		e.Severity, e.State = "notice", "cut"
	case errors.Is(o.err, lease.ErrBusy):
		e.Severity, e.State = "info", "skipped"
	case o.err != nil:
		e.Severity, e.State = "warning", "failed"
	}
	var document []byte
	if len(o.results) > 0 {
		d := report.NewMeasure(report.NewEnvelope(s.o.Version, s.o.Host), p.Target, o.results)
		d.Warnings = append(d.Warnings, o.missing...)
		if o.err != nil {
			d.Warnings = append(d.Warnings, "the following tests are missing: "+sentence(o.err))
		}
		var b bytes.Buffer
		if err := report.Encode(&b, d); err != nil {
			s.o.Log.Warn("a measurement has no document", "name", p.Name, "error", err)
		} else {
			document = b.Bytes()
		}
	}
	problem := ""
	if o.err != nil && e.State == "failed" {
		problem = sentence(o.err)
	}
	s.problem(p.Name, problem)
	if s.o.Put != nil {
		if err := s.o.Put(e, document); err != nil {
			s.o.Log.Warn("a measurement is not in the timeline", "name", p.Name, "error", err)
		}
	}
	s.remember(p, e, o)
	if s.o.Append == nil || e.State == "cut" || e.State == "skipped" {
		return // a run that a tune or another test kept away has no result for the path
	}
	if err := s.o.Append(&sample.Reading{Time: now, Points: s.points(p, o)}); err != nil {
		s.o.Log.Warn("a measurement is not in the history", "name", p.Name, "error", err)
	}
}

// skipped records that a run did not start, as one event for as long as the reason is the same.
func (s *Scheduler) skipped(p *plan, reason string) {
	now := time.Now()
	if p.skip == nil || p.reason != reason {
		s.unskipped(p)
		s.o.Log.Info("measurement skipped", "name", p.Name, "reason", reason)
		p.skip, p.reason = &timeline.Event{
			ID: fmt.Sprintf("skipped-%s-%d", p.Name, now.UnixMilli()), Kind: timeline.Measurement, Time: now.UTC(),
			Host: s.o.Host, Subject: p.Target,
			Severity: "info", State: "skipped",
		}, reason
	}
	p.skips++
	p.skip.Open, p.skip.Title = true, fmt.Sprintf("%s to %s skipped: %s", p.test(), p.Target, reason)
	if p.skips > 1 {
		p.skip.Title += fmt.Sprintf(" (%d times)", p.skips)
	}
	s.putSkip(p)
}

// unskipped ends the event of skipped runs.
func (s *Scheduler) unskipped(p *plan) {
	if p.skip == nil {
		return
	}
	p.skip.Open, p.skip.End = false, time.Now().UTC()
	s.putSkip(p)
	p.skip, p.skips, p.reason = nil, 0, ""
}

func (s *Scheduler) putSkip(p *plan) {
	if s.o.Put == nil {
		return
	}
	if err := s.o.Put(*p.skip, nil); err != nil {
		s.o.Log.Warn("a skipped measurement is not in the timeline", "name", p.Name, "error", err)
	}
}

// sentence returns an error on one line, with its hint if it has one.
func sentence(err error) string {
	text := strings.Replace(err.Error(), traffic.ErrBadSpec.Error()+": ", "", 1)
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) && hinted.Hint() != "" {
		text += "; " + hinted.Hint()
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
