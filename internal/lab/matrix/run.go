package matrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/linerate/linerate/internal/base/scratch"
	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/report"
)

// Options of Run. The zero value plays every case once and keeps no document.
type Options struct {
	Runs     int                      // of each case; 0: 1
	Out      string                   // directory for the verdicts' documents; empty: none is kept
	Inside   bool                     // this program already runs in the guest that the cases need
	Embed    bool                     // documents go into the cases, for a caller who cannot read files here
	Guest    Guest[report.MatrixCase] // nil: cases that need a guest are skipped
	Progress func(what string)        // called when a case begins; may be nil
	Done     func(report.MatrixCase)  // called when a case has ended; may be nil
	Log      io.Writer                // receives the commands' stderr; may be nil

	kernel string // release of the running kernel
}

// Guest plays cases in guests. It boots the guests that they need, and calls each with the results
// in their order, with their documents in them.
type Guest[T any] interface {
	Play(ctx context.Context, cases []Case, runs int, each func(T)) error
}

// Run plays the cases, those in namespaces first. A verdict that fails is a wrong case. An error is
// the lab's own (no namespaces here) or ctx's; the cases played before it are returned with it.
func Run(ctx context.Context, cases []Case, o Options) ([]report.MatrixCase, error) {
	o.kernel = release()
	progress := func(what string) {
		if o.Progress != nil {
			o.Progress(what)
		}
	}
	p := playing[report.MatrixCase]{
		runs: max(o.Runs, 1), out: o.Out, inside: o.Inside, embed: o.Embed, guest: o.Guest, done: o.Done,
		one: func(c Case, run, runs int) (report.MatrixCase, error) {
			progress(fmt.Sprintf("%s, run %d of %d", c.Name(), run, runs))
			return play(ctx, c, run, o)
		},
		not:  func(c Case) report.MatrixCase { return Unplayed(c, 1, o.kernel, needsGuest, true) },
		file: func(m *report.MatrixCase) file { return file{m.Scenario, m.Level, m.Run, &m.Document} },
		away: func() { progress("guests") },
	}
	return p.all(ctx, cases)
}

// play makes one world and gets one verdict.
func play(ctx context.Context, c Case, run int, o Options) (report.MatrixCase, error) {
	m := begin(c, run, o)
	// Before the world is made: the world's own work must not count.
	load := busy(ctx)
	state, err := scratch.New("matrix")
	if err != nil {
		return m, err
	}
	defer state.Close() // journals of the world alone
	stage, err := lab.Stage(ctx, c.Scenario, c.Level, state.Path)
	switch {
	case errors.Is(err, lab.ErrLacks):
		m.Skipped, m.Reason = true, err.Error()
		return m, nil
	case errors.Is(err, lab.ErrNoNamespaces), errors.Is(err, lab.ErrNotSupported), ctx.Err() != nil:
		return m, err
	case err != nil:
		// The world differs from the scenario. This is a fault of the scenario or of the lab, and
		// must not look like a right verdict.
		m.Reason = err.Error()
		if load != "" {
			m.Warnings = []string{load}
		}
		return m, nil
	}
	defer stage.Close()
	disturbed := lab.Watch()
	// A verdict that takes longer than patience counts as failed.
	inner, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v, err := stage.Diagnose(inner, o.Log)
	noise := disturbed()
	if ctx.Err() != nil {
		return m, ctx.Err()
	}
	m.Warnings = append([]string{}, stage.Warnings...)
	for _, w := range []string{load, noise, stage.Busy(ctx)} {
		if w != "" {
			m.Warnings = append(m.Warnings, w)
		}
	}
	m.Seconds, m.CPU, m.Document = v.Elapsed.Seconds(), v.CPU.Seconds(), v.Document
	if err != nil {
		m.Reason, m.Document = err.Error(), nil
		return m, nil
	}
	judge(&m, c)
	return m, nil
}

// Unplayed returns the result of a case without a verdict, for a Guest that could not play it. A
// skipped case is not counted.
func Unplayed(c Case, run int, kernel, reason string, skipped bool) report.MatrixCase {
	m := begin(c, run, Options{kernel: kernel})
	m.Reason, m.Skipped = reason, skipped
	return m
}

// patience bounds a verdict. It guards against a hang: a verdict takes a quarter of a minute, and
// many times as long where an emulator gets a part of a processor. The case has the time that it
// took.
const patience = 5 * time.Minute

// begin returns the result of a case with the fields that are known before it is played.
func begin(c Case, run int, o Options) report.MatrixCase {
	m := report.MatrixCase{
		Scenario: c.Scenario.Name, Level: string(c.Level), Run: run, Kernel: o.kernel,
		Ground: string(c.Scenario.On()), Mode: string(c.Scenario.From()), Pair: len(c.Scenario.Expect.Both) > 0,
	}
	if m.Pair {
		m.Expected = c.Scenario.Expect.Both
	} else {
		m.Expected = append([]string{c.Scenario.Expect.Finding}, c.Scenario.Expect.Also...)
	}
	return m
}
