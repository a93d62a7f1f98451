package journal_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// knobs is a host of the tests: values in memory, with what real kernels do to them.
type knobs struct {
	mu     sync.Mutex
	values map[knob.ID]knob.Value
	// round is what the driver makes of a value; nil: takes it as it is.
	round func(knob.ID, knob.Value) knob.Value
	// sets is what the kernel sets with a value, once it has taken it; it may refuse the value.
	// coupled names those knobs. nil: each knob is on its own.
	sets    func(values map[knob.ID]knob.Value, id knob.ID, v knob.Value) error
	coupled map[knob.ID][]knob.ID
	// before may refuse or watch an operation ("read" or "write"); nil: all is well.
	before func(op string, id knob.ID) error
	writes int
}

func newKnobs(values map[knob.ID]knob.Value) *knobs { return &knobs{values: maps.Clone(values)} }

func (k *knobs) Read(ctx context.Context, id knob.ID) (knob.Value, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return k.access("read", id, nil)
}

func (k *knobs) Write(ctx context.Context, id knob.ID, v knob.Value) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	k.writes++
	_, err := k.access("write", id, &v)
	return err
}

func (k *knobs) access(op string, id knob.ID, v *knob.Value) (knob.Value, error) {
	if k.before != nil {
		if err := k.before(op, id); err != nil {
			return "", &fs.PathError{Op: op, Path: string(id), Err: err}
		}
	}
	present, ok := k.values[id]
	if !ok {
		return "", &fs.PathError{Op: op, Path: string(id), Err: fs.ErrNotExist}
	}
	if v != nil {
		present = *v
		if k.round != nil {
			present = k.round(id, present)
		}
		if k.sets != nil {
			if err := k.sets(k.values, id, present); err != nil {
				return "", &fs.PathError{Op: op, Path: string(id), Err: err}
			}
		}
		k.values[id] = present
	}
	return present, nil
}

// Coupled implements knob.Coupler.
func (k *knobs) Coupled(ctx context.Context, id knob.ID) []knob.Setting {
	var all []knob.Setting
	for _, other := range k.coupled[id] {
		if v, err := k.Read(ctx, other); err == nil {
			all = append(all, knob.Setting{Knob: other, Value: v})
		}
	}
	return all
}

// set is what another program does.
func (k *knobs) set(id knob.ID, v knob.Value) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.values[id] = v
}

// get returns the value that the knob has now.
func (k *knobs) get(id knob.ID) knob.Value {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.values[id]
}

// clone is the same host at this moment, without hooks.
func (k *knobs) clone() *knobs {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cloneLocked()
}

// clock is a CLOCK_BOOTTIME that tests turn.
type clock struct {
	mu  sync.Mutex
	now time.Duration
}

func (c *clock) Boottime() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d
}

// dayOne is the wall clock of the tests; nothing may depend on it.
func dayOne() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

// options opens a journal of the tests on a host, without a guard.
func options(fsys durable.FS, backend knob.Backend, c *clock) journal.Options {
	return journal.Options{
		Dir: "/state", FS: fsys, Backend: backend, Unguarded: true,
		BootID: "boot-1", Boottime: c.Boottime, Now: dayOne,
		Identify: func(knob.ID) journal.Identity { return journal.Identity{} },
	}
}

func open(t testing.TB, o journal.Options) *journal.Journal {
	t.Helper()
	j, err := journal.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// apply applies settings given as knob, value, knob, value.
func apply(t testing.TB, j *journal.Journal, request journal.Request, pairs ...string) []journal.Change {
	t.Helper()
	changes, err := j.Apply(t.Context(), request, settings(pairs...)...)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func settings(pairs ...string) []knob.Setting {
	var list []knob.Setting
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, knob.Setting{Knob: knob.ID(pairs[i]), Value: knob.Value(pairs[i+1])})
	}
	return list
}

// fileKnobs are knobs that processes share: one file each in a directory, written in one go like a
// sysctl.
type fileKnobs struct{ dir string }

func (k fileKnobs) path(id knob.ID) string {
	return filepath.Join(k.dir, strings.ReplaceAll(string(id), "/", "_"))
}

func (k fileKnobs) Read(_ context.Context, id knob.ID) (knob.Value, error) {
	data, err := os.ReadFile(k.path(id))
	return knob.Value(data), err
}

// Write changes the knob in one step, as a kernel does: a reader never sees half of it.
func (k fileKnobs) Write(_ context.Context, id knob.ID, v knob.Value) error {
	temp := k.path(id) + ".new"
	if err := os.WriteFile(temp, []byte(v), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, k.path(id))
}

type knobID = knob.ID

var errBusy = errors.New("device or resource busy")
