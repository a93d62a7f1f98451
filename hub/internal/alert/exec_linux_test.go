package alert

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// script makes a program.
func script(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "program")
	// Renamed into place by a write that is over: a program that is still open for writing cannot
	// be run.
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestProgram(t *testing.T) {
	var log bytes.Buffer
	dir := t.TempDir()
	t.Setenv("LINERATE_KEY", "secret")
	argv := []string{"/bin/sh",
		script(t, `cat > "$1/body"; echo "$2" > "$1/arg"; env > "$1/env"; pwd; echo done >&2; head -c 100000 `+
			`/dev/zero | tr '\0' x`), dir, "; rm -rf $HOME `id`"}
	if err := program(argv, slog.New(slog.NewTextHandler(&log, nil)))(t.Context(),
		[]byte(`{"version":"4"}`)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"body": `{"version":"4"}`, "arg": "; rm -rf $HOME `id`\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil || strings.Contains(string(env), "secret") || strings.Contains(string(env), "HOME=") ||
		!strings.Contains(string(env), "PATH=") {
		t.Errorf("environment %q, %v", env, err)
	}
	if text := log.String(); !strings.Contains(text, "/ done xxx") || len(text) > mostOutput+1000 {
		t.Errorf("log of %d bytes: %.200s", len(text), text)
	}
	err = program([]string{"/bin/sh", "-c", "exit 3"}, slog.New(slog.DiscardHandler))(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Error(err)
	}
}

// TestProgramEndsWithItsChildren checks that when its time is over nothing of it is left.
func TestProgramEndsWithItsChildren(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- program([]string{"/bin/sh", script(t, `exec 3> "$1"; sleep 1000 & echo up >&3; wait`), pipe},
			slog.New(slog.DiscardHandler))(ctx, nil)
	}()
	f, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Read(make([]byte, 8)); err != nil { // until both run
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Error(err)
	}
	// Each of them holds the pipe open: its end is theirs.
	if rest, err := io.ReadAll(f); err != nil || len(rest) != 0 {
		t.Errorf("%q, %v", rest, err)
	}
}
