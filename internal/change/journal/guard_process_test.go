//go:build unix

package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/journal/journaltest"
)

// TestGuardIsOutOfReach: no terminal and none of its signals can end a guard, and one that was
// killed is replaced.
func TestGuardIsOutOfReach(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	o := processOptions(s.knobs, s.state)
	o.Guard = &journal.GuardOptions{Exe: os.Args[0], Args: []string{s.knobs}, Handshake: journaltest.Patience}
	j := open(t, o)
	apply(t, j, journal.Request{For: time.Hour}, rmem, "B")
	first := guardOf(t, j)
	for _, signal := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGTSTP} {
		if err := syscall.Kill(first.PID(), signal); err != nil {
			t.Fatal(err)
		}
	}
	if session, err := sessionOf(first.PID()); err == nil && session != first.PID() {
		t.Errorf("the guard %d is in session %d", first.PID(), session)
	}
	apply(t, j, journal.Request{}, mtu, "9000")
	if guardOf(t, j) != first {
		t.Error("the guard was replaced")
	}
	if err := syscall.Kill(first.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-first.Exited()
	apply(t, j, journal.Request{}, ring, "512")
	second := guardOf(t, j)
	if second == first {
		t.Fatal("no new guard")
	}
	if _, err := j.UndoAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.Close()
	<-second.Exited() // Nothing to do, so it ends.
	if diff := cmp.Diff(host().values, s.values()); diff != "" {
		t.Error(diff)
	}
}

// TestGuardDoesNotStart: without a guard no knob is touched.
func TestGuardDoesNotStart(t *testing.T) {
	t.Parallel()
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "guard")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, guard := range map[string]*journal.GuardOptions{
		"no such program": {Exe: "/no/such/program"},
		"ends at once":    {Exe: script("exit 0"), Handshake: journaltest.Patience},
		"says no":         {Exe: script("echo no memory >&4; exit 1"), Handshake: journaltest.Patience},
		"says nothing":    {Exe: script("exec sleep 60"), Handshake: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			o := processOptions(s.knobs, s.state)
			o.Guard = guard
			j := open(t, o)
			_, err := j.Apply(t.Context(), journal.Request{}, settings(rmem, "B")...)
			if !errors.Is(err, journal.ErrUnguarded) ||
				!strings.Contains(err.Error(), "nothing changed: start guard: ") {
				t.Error(err)
			}
			if name == "says no" && !strings.HasSuffix(err.Error(), "no memory") {
				t.Error(err)
			}
			if diff := cmp.Diff(host().values, s.values()); diff != "" || len(j.Changes()) != 0 {
				t.Errorf("%s, %+v", diff, j.Changes())
			}
		})
	}
	if err := journal.RunGuard(t.Context(),
		journal.GuardConfig{Journal: processOptions(t.TempDir(), t.TempDir())}); err == nil {
		t.Error("a guard without its pipes")
	}
}

// guardOf returns the guard of a journal.
func guardOf(t *testing.T, j *journal.Journal) *journal.Guard {
	t.Helper()
	guard := j.Guard()
	if guard == nil {
		t.Fatal("no guard")
	}
	return guard
}

// sessionOf returns the session of a process from /proc/PID/stat.
func sessionOf(pid int) (int, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// Behind the name, which may hold anything: state, parent, group, session (proc_pid_stat(5)).
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	return strconv.Atoi(string(fields[3]))
}

// kill ends a guard as the OOM killer does.
func kill(t *testing.T, g *journal.Guard) {
	t.Helper()
	if err := syscall.Kill(g.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-g.Exited()
}
