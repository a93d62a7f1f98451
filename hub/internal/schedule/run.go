package schedule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
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
)

const (
	connectPatience = 10 * time.Second
	// tuneLook is how often it is looked whether a tune has begun beside a run.
	tuneLook = time.Second
	// patience is how much longer than its limit a run may take to come back, since the far end is
	// told of its end. Then it counts as hung.
	patience = 30 * time.Second
)

var (
	errLimit = errors.New("took longer than its time limit, and was cut off")
	errTune  = errors.New("was cut off")
)

// outcome is what a run came to.
type outcome struct {
	connected bool
	results   []traffic.Result
	missing   []string
	err       error
}

// measure makes one run and tells of it; it tells whether the target is alive.
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
			// What a target sends must not end the hub; whatever it is, the run has failed by it.
			if r := recover(); r != nil {
				s.o.Log.Error("measurement broke", "name", p.Name, "panic", r, "stack", string(debug.Stack()))
				o.err = fmt.Errorf("broke by a mistake of this program: %v", r)
			}
			done <- o
		}()
		s.tests(limited, p, &o)
	}()
	o := s.await(ctx, p, done, cancel)
	if ctx.Err() != nil {
		return false // the hub ends, and nobody can say how it would have gone on
	}
	if o.connected {
		p.spent.add(s.clock(), p.worst)
	}
	if cause := context.Cause(limited); cause != nil && o.err != nil {
		o.err = cause
	}
	s.tell(p, began, o)
	return o.err == nil || errors.Is(o.err, errTune)
}

// await gives the outcome of a run, looking meanwhile whether a tune begins: that must not be
// measured into.
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
			// It is being given up; what it has to say to the far end may take a moment.
			ended, ending = nil, time.After(patience)
		case <-ending:
			return outcome{err: ctx.Err()}
		case <-look.C:
			if reason := s.o.tuning(); reason != "" {
				cancel(fmt.Errorf("%w: %s", errTune, reason))
			}
		case <-hung.C:
			// It goes on to block the others: two at once would be worse than none.
			s.o.Log.Error("measurement hangs", "name", p.Name, "target", p.Target, "limit", p.limit)
			s.problem(p.Name, "hangs, and no other is made until it ends")
		}
	}
}

// tests runs what there is to run against the target.
func (s *Scheduler) tests(ctx context.Context, p *plan, o *outcome) {
	key := ""
	if p.KeyFile != "" {
		var err error
		if key, err = credential.Secret(p.KeyFile); err != nil {
			o.err = fmt.Errorf("read key_file: %w", err)
			return
		}
	}
	way, err := s.o.open(ctx, p.Target, peer.ConnectOptions{Key: key, Timeout: min(connectPatience, p.limit),
		Version: s.o.Version, HostName: s.o.Host})
	if err != nil {
		o.err = err
		return
	}
	defer way.Close()
	o.connected = true
	o.results, o.missing, o.err = reach.All(p.specs(p.amounts), func(spec traffic.Spec) (*traffic.Result, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return loop.Measure(ctx, way.Run, spec, nil)
	})
}

// tell writes what a run came to into history and timeline.
func (s *Scheduler) tell(p *plan, began time.Time, o outcome) {
	now := time.Now()
	e := timeline.Event{
		ID: fmt.Sprintf("measurement-%s-%d", p.Name, began.UnixMilli()), Kind: timeline.Measurement, Time: began.UTC(),
		End:  now.UTC(),
		Host: s.o.Host, Subject: p.Target, Title: p.title(o), Severity: "info", State: "done",
	}
	switch {
	case errors.Is(o.err, errTune):
		e.Severity, e.State = "notice", "cut"
	case o.err != nil:
		e.Severity, e.State = "warning", "failed"
	}
	var document []byte
	if len(o.results) > 0 {
		d := report.NewMeasure(report.NewEnvelope(s.o.Version, s.o.Host), p.Target, o.results)
		d.Warnings = append(d.Warnings, o.missing...)
		if o.err != nil {
			d.Warnings = append(d.Warnings, "the tests after these are missing: "+sentence(o.err))
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
	if s.o.Append == nil || e.State == "cut" {
		return // a run that a tune has cut off says nothing of the path
	}
	if err := s.o.Append(&sample.Reading{Time: now, Points: s.points(p, o)}); err != nil {
		s.o.Log.Warn("a measurement is not in the history", "name", p.Name, "error", err)
	}
}

// skipped tells that a run did not start, as one event for as long as the reason is the same.
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

// unskipped ends the event of runs that were skipped.
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

// sentence is an error in one line, with what to do where somebody knows.
func sentence(err error) string {
	text := strings.Replace(err.Error(), traffic.ErrBadSpec.Error()+": ", "", 1)
	var told interface{ Hint() string }
	if errors.As(err, &told) && told.Hint() != "" {
		text += "; " + told.Hint()
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
