package peer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/journal/journaltest"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer"
)

// The test binary is also the far program of its own tests: with farEnv set it runs as `linerate
// serve --stdio`, and with "guard" as its first argument as that program's guard.
const (
	farEnv   = "LINERATE_TEST_FAR"   // directory of knobs (files), journal and pid
	allowEnv = "LINERATE_TEST_ALLOW" // not empty: --allow-tuning
)

// TestMain runs the far program if farEnv is set, and otherwise fails the package when goroutines
// outlive its tests.
func TestMain(m *testing.M) {
	if dir := os.Getenv(farEnv); dir != "" {
		if err := playFar(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if left := leaked(time.Minute); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leaked waits until no goroutine runs code of wire or peer, and returns the stacks of those that
// still do after patience.
func leaked(patience time.Duration) string {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		buf := make([]byte, 1<<20)
		var left []string
		for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if (strings.Contains(stack, "internal/wire.") || strings.Contains(stack, "internal/peer.")) &&
				!strings.Contains(stack, "TestMain") {
				left = append(left, stack)
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return strings.Join(left, "\n\n")
		}
	}
}

// stateIn is the state directory of a far program.
func stateIn(dir string) string { return filepath.Join(dir, "state") }

// farDir returns a directory for a far program.
func farDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	journaltest.AwaitGuards(t, stateIn(dir))
	return dir
}

// playFar runs a far host whose knobs are files, with a real journal and a real guard process.
func playFar(dir string) error {
	options := journal.Options{
		Dir: stateIn(dir), Backend: fileKnobs(dir), Side: peer.FarSide, Guard: &journal.GuardOptions{},
		Identify: func(knob.ID) journal.Identity { return journal.Identity{} },
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == "guard" {
		return journaltest.Guard(os.Args[2:], func(string) journal.Options { return options })
	}
	if err := os.WriteFile(filepath.Join(dir, "pid"), fmt.Append(nil, os.Getpid()), 0o600); err != nil {
		return err
	}
	var tuning *knob.Permission
	if os.Getenv(allowEnv) != "" {
		tuning = &knob.Permission{Class: knob.DefaultClass}
	}
	return peer.ServeStdio(ctx, os.Stdin, os.Stdout, peer.ServerOptions{
		Backend: options.Backend, Version: "test", HostName: "farside",
		// The process of the client before may still be about to end.
		OpenJournal: func() (*journal.Journal, error) { return journaltest.OpenSoon(options) },
		Tuning:      tuning,
	})
}

// fileKnobs is a backend whose knobs outlive the process: sysctl:a.b is the file a.b in a
// directory.
type fileKnobs string

func (d fileKnobs) path(id knob.ID) string {
	return filepath.Join(string(d), strings.TrimPrefix(string(id), "sysctl:"))
}

func (d fileKnobs) Read(_ context.Context, id knob.ID) (knob.Value, error) {
	b, err := os.ReadFile(d.path(id))
	if err != nil {
		return "", &knob.Error{Op: "read", Knob: id, Err: errors.Unwrap(err)}
	}
	return knob.Value(strings.TrimSpace(string(b))), nil
}

func (d fileKnobs) Write(_ context.Context, id knob.ID, v knob.Value) error {
	if err := os.WriteFile(d.path(id), []byte(v), 0o600); err != nil {
		return &knob.Error{Op: "write", Knob: id, Err: errors.Unwrap(err)}
	}
	return nil
}
