package journal_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal/journaltest"
)

// TestHandshakeForgivesAPause: a writer that is stopped for longer than the handshake may take does
// not blame its guard, which answers when both run again.
func TestHandshakeForgivesAPause(t *testing.T) {
	testenv.Need(t, testenv.Long) // the pause
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "guard")
	if err := os.WriteFile(script, []byte(`#!/bin/sh
		kill -STOP $PPID
		sleep 5
		kill -CONT $PPID
		sleep 0.3
		echo ready >&4
		exec cat <&3 >/dev/null`), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := journaltest.Start(t, nil, script, "patient", dir).Run(); err != nil {
		t.Error(err)
	}
}
