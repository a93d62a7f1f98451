package journal_test

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

const throttle = "module:e1000/InterruptThrottleRate"

// loadedModule is a driver whose parameter the kernel does not show: a value that was not kept is
// taken from the file with which the module was loaded, as it is now.
type loadedModule struct {
	*knobs
	disk   durable.FS
	loaded knob.Value // by the kernel
	known  knob.Value // what was kept; "" if nothing was
	fails  error      // of Keep
}

const moduleFile = "/etc/modprobe.d/linerate-0001.conf"

func (m *loadedModule) Read(ctx context.Context, id knob.ID) (knob.Value, error) {
	if id != throttle {
		return m.knobs.Read(ctx, id)
	}
	if m.known != "" {
		return m.known, nil
	}
	if _, err := m.disk.ReadFile(moduleFile); errors.Is(err, fs.ErrNotExist) {
		return knob.Absent, nil
	}
	return "2000", nil
}

// Write loads the module again only for a value that it does not have, as far as is known.
func (m *loadedModule) Write(ctx context.Context, id knob.ID, v knob.Value) error {
	if id != throttle {
		return m.knobs.Write(ctx, id, v)
	}
	if present, _ := m.Read(ctx, id); present != v {
		m.loaded, m.known = v, v
	}
	return nil
}

func (m *loadedModule) Keep(id knob.ID) (err error) {
	if m.fails == nil {
		m.known, err = m.Read(context.Background(), id)
	}
	return errors.Join(m.fails, err)
}

// TestUndoOfAModuleLoadedFromOurFile undoes, after a restart, a persisted parameter that only the
// file shows: the module must lose it, although the file is gone by then.
func TestUndoOfAModuleLoadedFromOurFile(t *testing.T) {
	for name, fails := range map[string]error{"kept": nil, "no room for a note": syscall.ENOSPC} {
		t.Run(name, func(t *testing.T) {
			disk := durable.NewMem()
			etc(t, disk)
			before := tree(t, disk, "/etc")
			m := &loadedModule{knobs: newHost(), disk: disk, loaded: knob.Absent}
			o := options(disk, m.knobs, &clock{})
			o.Backend = m
			j := open(t, o)
			changes := apply(t, j, journal.Request{}, throttle, "2000")
			if err := j.Commit(t.Context(), changes[0].ID); err != nil {
				t.Fatal(err)
			}
			if _, err := j.Persist(t.Context(), "/", journal.Plan{ID: changes[0].ID,
				Files: []journal.File{{Path: moduleFile, Content: "options e1000 InterruptThrottleRate=2000\n",
					Mode: 0o644}}}); err != nil {
				t.Fatal(err)
			}
			j.Close()

			m.known, m.fails = "", fails // a restart: the note is gone, and the module loaded from the file
			o.BootID = "boot-2"
			j = open(t, o)
			outcomes, err := j.UndoAll(t.Context())
			if !errors.Is(err, fails) || len(outcomes) != 1 || !outcomes[0].Restored || m.loaded != knob.Absent {
				t.Fatalf("%+v, %v; the module has %q", outcomes, err, m.loaded)
			}
			if fails != nil { // the file waits for the next attempt
				m.fails = nil
				if _, err := j.UndoAll(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if now := tree(t, disk, "/etc"); len(now) != len(before) || m.loaded != knob.Absent ||
				j.Changes()[0].State != journal.Undone {
				t.Errorf("%v; the module has %q; %+v", now, m.loaded, j.Changes()[0])
			}
		})
	}
}
