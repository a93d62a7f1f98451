package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/agent"
)

const storedTune = "20261122-120000-0001"

// stateOfRoot makes a state directory as root's commands make it: it and the journal are open to
// all, the runs are not.
func stateOfRoot(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(openDir(t), "state")
	j, err := journal.Open(journal.Options{
		Dir: dir, Unguarded: true, BootID: "boot",
		Backend:  knob.NewMemory(map[knob.ID]knob.Value{"sysctl:net.core.rmem_max": "200000"}),
		Identify: func(knob.ID) journal.Identity { return journal.Identity{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := j.Apply(t.Context(), journal.Request{Reason: "because"},
		knob.Setting{Knob: "sysctl:net.core.rmem_max", Value: "300000"}); err != nil {
		t.Fatal(err)
	}
	if err := runs.In(durable.OS(), dir, runs.Tunes, 0).Save(storedTune,
		[]byte(`{"schema":"linerate.tune/1"}`)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, string(runs.Tunes))); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("the directory of runs: %v, %v; want mode 0700", info.Mode(), err)
	}
	return dir
}

// openDir returns a directory that every user may enter; its path is short enough for a socket.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hub")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// asStranger opens files for the rest of the goroutine as a user who owns none of them: on its
// thread, with the user id 65534 of the file system. An ordinary user closes the directory of runs
// instead.
func asStranger(t *testing.T, dir string) error {
	if os.Getuid() != 0 {
		closed := filepath.Join(dir, string(runs.Tunes))
		t.Cleanup(func() { _ = os.Chmod(closed, 0o700) })
		return os.Chmod(closed, 0)
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	return errors.Join(syscall.Setfsgid(65534), syscall.Setfsuid(65534))
}

// asker asks as a stranger, one question after the other: all on one thread.
func asker(t *testing.T, dir string) func(func()) {
	questions, answered := make(chan func()), make(chan struct{})
	ready := make(chan struct{})
	go func() {
		if err := asStranger(t, dir); err != nil {
			t.Error(err)
		}
		close(ready)
		for q := range questions {
			q()
			answered <- struct{}{}
		}
	}()
	<-ready
	t.Cleanup(func() { close(questions) })
	return func(q func()) {
		questions <- q
		<-answered
	}
}

// TestHalfReadable checks a hub that may read a part of the state directory: what it may not read
// comes from the agent, also from one that starts later, and without one the reason is true.
func TestHalfReadable(t *testing.T) {
	dir := stateOfRoot(t)
	socket := filepath.Join(openDir(t), "run", "agent.sock")
	s := newHostSource(Config{State: dir, Agent: socket})
	ask := asker(t, dir)
	ctx := t.Context()
	look := func() (changes, tunes int, document string, err error) {
		ask(func() {
			if _, err = s.Stamp(ctx); err != nil {
				return
			}
			var all []journal.Change
			if all, err = s.History(ctx); err != nil {
				return
			}
			changes = len(all)
			var ids []string
			if ids, err = s.Runs(ctx, runs.Tunes); err != nil {
				return
			}
			tunes = len(ids)
			var b []byte
			b, err = s.Run(ctx, runs.Tunes, storedTune)
			document = string(b)
		})
		return changes, tunes, document, err
	}

	changes, _, _, err := look()
	if err == nil || changes != 1 || !strings.Contains(err.Error(), "does not run") ||
		!strings.Contains(err.Error(), "does not show tunes and measurements") {
		t.Errorf("without an agent: %d changes, %v", changes, err)
	}

	if os.Getuid() != 0 {
		return // the agent of an ordinary user may read no more than the hub
	}
	agentCtx, stop := context.WithCancel(ctx)
	up, over := make(chan struct{}), make(chan error, 1)
	go func() {
		over <- agent.Serve(agentCtx, agent.Config{Local: agent.Local{Dir: dir}, Version: "v", Socket: socket},
			func(string) { close(up) })
	}()
	defer func() {
		stop()
		<-over
	}()
	select {
	case <-up:
	case err := <-over:
		over <- err
		t.Fatal(err)
	}
	if _, _, _, err = look(); err == nil || !strings.Contains(err.Error(), "refuses the user of this hub") {
		t.Errorf("a socket of another group: %v", err)
	}
	if err := os.Chmod(socket, 0o666); err != nil { // as a member of its group
		t.Fatal(err)
	}
	if changes, tunes, document, err := look(); changes != 1 || tunes != 1 ||
		document != `{"schema":"linerate.tune/1"}` || err != nil {
		t.Errorf("with an agent: %d changes, %d tunes, %q, %v", changes, tunes, document, err)
	}
	ask(func() {
		if _, err := s.Run(ctx, runs.Tunes, "20261122-120000-0002"); err == nil ||
			strings.Contains(err.Error(), "only root") {
			t.Errorf("a tune that is not there: %v", err)
		}
	})
}

// TestNoState checks that a host without a state directory is no problem, with and without an
// agent.
func TestNoState(t *testing.T) {
	s := newHostSource(Config{State: filepath.Join(t.TempDir(), "none"),
		Agent: filepath.Join(t.TempDir(), "none.sock")})
	stamp, err := s.Stamp(t.Context())
	if err != nil || stamp != "- - -" {
		t.Errorf("%q, %v", stamp, err)
	}
	if all, err := s.History(t.Context()); len(all) != 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}
