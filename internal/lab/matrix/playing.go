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

// needsGuest is why a case is skipped where there is nobody to play it.
const needsGuest = "it needs a guest"

// playing is what judging and tuning have in common: the order of the cases, the documents that are
// kept, and who listens.
type playing[T any] struct {
	runs   int    // of each case
	out    string // directory for documents; empty: none is kept
	inside bool
	embed  bool
	guest  Guest[T] // nil: cases that need one are skipped
	done   func(T)  // a case has ended; nil: nobody listens

	one  func(c Case, run, runs int) (T, error) // plays a case here
	not  func(c Case) T                         // one that needs a guest
	file func(*T) file
	away func() // the guests' turn has come; nil: nobody listens
}

// file is where the document of a case is, and what it is named after.
type file struct {
	scenario, level string
	run             int
	document        *json.RawMessage
}

// all plays the cases, those in namespaces first: guests go last and together, because those that
// ask for the same one share it. The error is the lab's own or ctx's, and the cases played until
// then come with it.
func (p playing[T]) all(ctx context.Context, cases []Case) (all []T, err error) {
	if p.out != "" {
		if err := os.MkdirAll(p.out, 0o755); err != nil {
			return nil, fmt.Errorf("keep documents: %w", err)
		}
	}
	var failed error
	// A document is kept as soon as its case has ended: a matrix takes long, and what was played
	// before an interrupt is not lost.
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

// Keep writes a document to a file in a directory that is there, named after its case; nothing when
// either is empty.
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
