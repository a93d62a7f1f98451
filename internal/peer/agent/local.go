package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/tally"
)

// Local reads the data on this host, as the user who runs the program.
type Local struct {
	Dir string // the state directory, as of --state
}

// State returns the state directory of the host.
func (l Local) State(context.Context) (string, error) { return l.Dir, nil }

// Stamp returns a text that changes whenever the journal, the runs or the measurements change:
// sizes and times of the files. It costs three stat calls, so it can be called every second. The
// file system limits the resolution of the times: two changes within some milliseconds may appear
// as one.
func (l Local) Stamp(context.Context) (string, error) {
	stamp := ""
	for _, name := range []string{"journal.log", string(runs.Tunes), string(runs.Measurements)} {
		info, err := os.Stat(filepath.Join(l.Dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			stamp += "- "
		case err != nil:
			return "", fmt.Errorf("look at the state directory: %w", err)
		default:
			stamp += fmt.Sprintf("%d-%d ", info.Size(), info.ModTime().UnixNano())
		}
	}
	return stamp[:len(stamp)-1], nil
}

// History returns all changes of the journal, oldest first, without the values of secrets.
func (l Local) History(context.Context) ([]journal.Change, error) {
	changes, err := journal.History(durable.OS(), l.Dir)
	return journal.Redact(changes, knob.Catalogue()), err
}

// Runs returns the ids of all stored documents of a kind, newest first.
func (l Local) Runs(_ context.Context, kind runs.Kind) ([]string, error) {
	return runs.In(durable.OS(), l.Dir, kind, 0).List()
}

// Run returns a stored document. A missing document is fs.ErrNotExist, one that is too large is
// ErrTooLarge.
func (l Local) Run(_ context.Context, kind runs.Kind, id string) ([]byte, error) {
	store := runs.In(durable.OS(), l.Dir, kind, 0)
	if runs.Name(id) {
		if info, err := os.Stat(store.Path(id)); err == nil && info.Size() > maxDocument {
			return nil, fmt.Errorf("read run %s: %w", id, ErrTooLarge)
		}
	}
	return store.Read(id)
}

// Rules returns the counters of the packet filter's rules in the network namespace of this process,
// at most tally.Most, and how many are left out. A host without rules has none. The error is
// fs.ErrPermission without the right to read rules, and read.ErrChanging while another program
// rewrites them.
func (l Local) Rules(ctx context.Context) ([]tally.Count, int, error) {
	all, err := read.Live(ctx)
	if errors.Is(err, read.ErrNone) {
		return nil, 0, nil
	} else if err != nil {
		return nil, 0, err
	}
	counts, left := tally.Of(all, tally.Most)
	return counts, left, nil
}

// rulesFresh is how long an answer about rules is used again: to read them runs programs.
const rulesFresh = 5 * time.Second

// counted is the answer about rules at one moment.
type counted struct {
	at     time.Time
	counts []tally.Count
	left   int
}

// rules returns the counters, from the cache if they were read just now.
func (c *counted) rules(ctx context.Context, l Local, now time.Time) ([]tally.Count, int, error) {
	if age := now.Sub(c.at); !c.at.IsZero() && age >= 0 && age < rulesFresh {
		return c.counts, c.left, nil
	}
	counts, left, err := l.Rules(ctx)
	if err != nil {
		return nil, 0, err
	}
	*c = counted{now, counts, left}
	return counts, left, nil
}

// cached is the history at one stamp, so that repeated questions do not read the journal again.
type cached struct {
	stamp   string
	at      time.Time
	changes []journal.Change
}

// history returns the changes, from the cache if nothing has changed since.
func (c *cached) history(ctx context.Context, l Local, now time.Time) ([]journal.Change, error) {
	stamp, err := l.Stamp(ctx)
	if err != nil {
		return nil, err
	}
	// A second write within the resolution of the file's times leaves the stamp unchanged, so the
	// cache is valid for a limited time only.
	if age := now.Sub(c.at); c.stamp == stamp && age >= 0 && age < 5*time.Second {
		return c.changes, nil
	}
	changes, err := l.History(ctx)
	if err != nil {
		return nil, err
	}
	*c = cached{stamp, now, changes}
	return changes, nil
}
