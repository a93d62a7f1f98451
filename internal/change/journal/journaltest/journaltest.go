//go:build unix

package journaltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
)

// Finish ends a part of the test binary.
func Finish(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Mortal returns a function that kills the process with SIGKILL at its Nth call if the environment
// says DIES_AT_PART=N, and nil if it does not. A part without an Nth step lives. The file "PART
// died" in dir says that it died.
func Mortal(part, dir string) func() {
	n, err := strconv.Atoi(os.Getenv("DIES_AT_" + part))
	if err != nil {
		return nil
	}
	var mu sync.Mutex
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if n--; n == 0 {
			// The process that waits for this one may not be its parent any more.
			_ = os.WriteFile(filepath.Join(dir, part+" died"), nil, 0o600)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // The signal is on its way.
		}
	}
}

// MortalKnobs is a backend that calls Die before each access.
type MortalKnobs struct {
	knob.Backend
	Die func()
}

// Unwrap returns the backend below; see [knob.As].
func (m MortalKnobs) Unwrap() knob.Backend { return m.Backend }

// Read implements [knob.Backend].
func (m MortalKnobs) Read(ctx context.Context, id knob.ID) (knob.Value, error) {
	m.Die()
	return m.Backend.Read(ctx, id)
}

// Write implements [knob.Backend].
func (m MortalKnobs) Write(ctx context.Context, id knob.ID, v knob.Value) error {
	m.Die()
	return m.Backend.Write(ctx, id, v)
}

// Died reports whether a part killed itself.
func Died(part, dir string) bool {
	_, err := os.Stat(filepath.Join(dir, part+" died"))
	return err == nil
}

// Start prepares a part of the test binary, with NAME=VALUE pairs in its environment.
func Start(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(os.Args[0], args...)
	command.Env, command.Stderr = append(os.Environ(), env...), t.Output()
	return command
}

// Killed reports whether a process ended by SIGKILL. An end of its own that is no success fails the
// test.
func Killed(t *testing.T, what string, err error) bool {
	t.Helper()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return false
}

// KillAfter kills a process that was started, and reports whether it still ran.
func KillAfter(t *testing.T, what string, command *exec.Cmd, wait time.Duration) bool {
	t.Helper()
	time.Sleep(wait) // Any moment will do: that is the test.
	if err := command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	return Killed(t, what, command.Wait())
}

// Rounds is how often writers are killed at random: as LINERATE_KILL_ROUNDS says, or usual.
func Rounds(t *testing.T, usual int) int {
	t.Helper()
	s := os.Getenv("LINERATE_KILL_ROUNDS")
	if s == "" {
		return usual
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
