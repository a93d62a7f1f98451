package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/lab"
	"github.com/linerate/linerate/internal/report"
)

// Options of Run. The zero value plays every case once and keeps nothing.
type Options struct {
	Runs     int                      // of each case; 0: 1
	Out      string                   // directory for the verdicts' documents; empty: none is kept
	Inside   bool                     // this program already runs in the guest that the cases need
	Embed    bool                     // documents go into the cases, for a caller who cannot read files here
	Guest    Guest[report.MatrixCase] // nil: cases that need a guest are skipped
	Progress func(what string)        // a case begins; nil: nobody listens
	Done     func(report.MatrixCase)  // a case has ended; nil: nobody listens
	Log      io.Writer                // what the commands say; nil: nobody reads it

	kernel string // release of the one that runs here
}

// Guest plays cases in guests, boots what they need, and answers in their order with their documents in them.
type Guest[T any] interface {
	Play(ctx context.Context, cases []Case, runs int, each func(T)) error
}

// Run plays the cases, those in namespaces first. A verdict that fails is a wrong case; the error is the lab's own (no namespaces here) or
// ctx's, and the cases played until then come with it.
func Run(ctx context.Context, cases []Case, o Options) ([]report.MatrixCase, error) {
	o.Runs = max(o.Runs, 1)
	if o.Out != "" {
		if err := os.MkdirAll(o.Out, 0o755); err != nil {
			return nil, fmt.Errorf("keep verdicts: %w", err)
		}
	}
	var (
		all    []report.MatrixCase
		guests []Case
		failed error
	)
	// A document is kept as soon as its case has ended: a matrix takes long, and what was played before an interrupt is not lost.
	done := func(c report.MatrixCase) {
		if err := Keep(o.Out, c.Scenario, c.Level, c.Run, c.Document); err != nil && failed == nil {
			failed = err
		}
		if !o.Embed {
			c.Document = nil
		}
		all = append(all, c)
		if o.Done != nil {
			o.Done(c)
		}
	}
	o.kernel = release()
	for _, c := range cases {
		// Guests go last and together, because those that ask for the same one share it.
		if c.Scenario.On() == lab.Guest && !o.Inside {
			guests = append(guests, c)
			continue
		}
		for run := range o.Runs {
			if o.Progress != nil {
				o.Progress(fmt.Sprintf("%s, run %d of %d", c.Name(), run+1, o.Runs))
			}
			m, err := play(ctx, c, run+1, o)
			if err != nil {
				return all, err
			}
			done(m)
		}
	}
	if len(guests) == 0 {
		return all, failed
	}
	if o.Guest == nil {
		for _, c := range guests {
			m := begin(c, 1, o)
			m.Skipped, m.Reason = true, "it needs a guest"
			done(m)
		}
		return all, failed
	}
	if o.Progress != nil {
		o.Progress("guests")
	}
	return all, errors.Join(o.Guest.Play(ctx, guests, o.Runs, done), failed)
}

// play makes one world and asks for one verdict.
func play(ctx context.Context, c Case, run int, o Options) (report.MatrixCase, error) {
	m := begin(c, run, o)
	// Before the world is made, or its own work would count.
	others := busy(ctx)
	state, err := os.MkdirTemp("", "linerate-matrix-")
	if err != nil {
		return m, fmt.Errorf("make state directory: %w", err)
	}
	defer os.RemoveAll(state)
	stage, err := lab.Stage(ctx, c.Scenario, c.Level, state)
	switch {
	case errors.Is(err, lab.ErrLacks):
		m.Skipped, m.Reason = true, err.Error()
		return m, nil
	case errors.Is(err, lab.ErrNoNamespaces), errors.Is(err, lab.ErrNotSupported), ctx.Err() != nil:
		return m, err
	case err != nil:
		// The world could not be made as the scenario says: that is a fault of the scenario or of the lab, and must not look like a right verdict.
		m.Reason = err.Error()
		return m, nil
	}
	defer stage.Close()
	// A verdict that takes longer than this is no verdict, whatever it says.
	inner, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v, err := stage.Diagnose(inner, o.Log)
	if ctx.Err() != nil {
		return m, ctx.Err()
	}
	m.Warnings = append([]string{}, stage.Warnings...)
	for _, w := range []string{others, stage.Busy(ctx)} {
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

// Unplayed is a case without a verdict, for a Guest that cannot give one. A skipped one counts for nothing.
func Unplayed(c Case, run int, kernel, reason string, skipped bool) report.MatrixCase {
	m := begin(c, run, Options{kernel: kernel})
	m.Reason, m.Skipped = reason, skipped
	return m
}

// patience is when a verdict is given up: eight times what it may take.
const patience = 2 * time.Minute

// begin is a case with what is known before it is played.
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

// Keep writes a document to a file in a directory that is there, named after its case; nothing when either is empty.
func Keep(dir, scenario, level string, run int, document json.RawMessage) error {
	if dir == "" || len(document) == 0 {
		return nil
	}
	name := strings.Trim(fmt.Sprintf("%s.%s", scenario, level), ".")
	if run > 1 { // the first has the plain name, which is what one looks for
		name += fmt.Sprintf(".%d", run)
	}
	indented, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return fmt.Errorf("keep document of %s: %w", name, err)
	}
	return os.WriteFile(filepath.Join(dir, name+".json"), append(indented, '\n'), 0o644)
}
