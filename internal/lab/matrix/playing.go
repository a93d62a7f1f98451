package matrix

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/linerate/linerate/internal/lab/scenario"
)

// needsGuest is the reason for skipping a case when no guest can play it.
const needsGuest = "it needs a guest"

// playing is the common part of judging and tuning: the order of the cases, the documents to keep,
// and the progress.
type playing[T any] struct {
	runs   int    // of each case
	out    string // directory for documents; empty: none is kept
	inside bool
	embed  bool
	guest  Guest[T] // nil: cases that need a guest are skipped
	done   func(T)  // called at the end of a case; may be nil

	one  func(c Case, run, runs int) (T, error) // plays a case here
	not  func(c Case) T                         // returns the result of a case that lacks its guest
	file func(*T) file
	away func() // called before the cases in guests; may be nil
}

// file is the document of a case and the parts of its file name.
type file struct {
	scenario, level string
	run             int
	document        *json.RawMessage
}

// all plays the cases in namespaces and then those in guests, together, because cases that need the
// same guest share it. An error is the lab's own or ctx's; the cases played before it are returned
// with it.
func (p playing[T]) all(ctx context.Context, cases []Case) (all []T, err error) {
	if p.out != "" {
		if err := os.MkdirAll(p.out, 0o755); err != nil {
			return nil, fmt.Errorf("keep documents: %w", err)
		}
	}
	var failed error
	// A document is written as soon as its case has ended: a matrix takes long, and an interrupt
	// must not lose the cases before it.
	done := func(m T) {
		f := p.file(&m)
		failed = cmp.Or(failed, Keep(p.out, f.scenario, f.level, f.run, *f.document))
		if !p.embed {
			*f.document = nil
		}
		all = append(all, m)
		if p.done != nil {
			p.done(m)
		}
	}
	var guests []Case
	for _, c := range cases {
		if c.Scenario.On() == scenario.Guest && !p.inside {
			guests = append(guests, c)
			continue
		}
		for run := range p.runs {
			m, err := p.one(c, run+1, p.runs)
			if err != nil {
				return all, err
			}
			done(m)
		}
	}
	switch {
	case len(guests) == 0:
	case p.guest == nil:
		for _, c := range guests {
			done(p.not(c))
		}
	default:
		if p.away != nil {
			p.away()
		}
		err = p.guest.Play(ctx, guests, p.runs, done)
	}
	return all, errors.Join(err, failed)
}

// Keep writes a document to a file in an existing directory. The file has the name of the case.
// Without a directory or a document it writes nothing.
func Keep(dir, scenario, level string, run int, document json.RawMessage) error {
	if dir == "" || len(document) == 0 {
		return nil
	}
	name := strings.Trim(fmt.Sprintf("%s.%s", scenario, level), ".")
	if run > 1 { // the first run has the plain name, which users look for
		name += fmt.Sprintf(".%d", run)
	}
	indented, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return fmt.Errorf("keep document of %s: %w", name, err)
	}
	return os.WriteFile(filepath.Join(dir, name+".json"), append(indented, '\n'), 0o644)
}
