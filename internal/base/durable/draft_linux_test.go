package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/durable"
)

// TestDraftHasNoName shows what a process leaves that is killed before Publish: nothing, where the
// file system has files without a name.
func TestDraftHasNoName(t *testing.T) {
	dir := t.TempDir()
	want := 0
	if probe, err := os.OpenFile(dir, os.O_WRONLY|unix.O_TMPFILE, 0o600); err != nil {
		t.Logf("the file system has none: %v", err)
		want = 1
	} else if err := probe.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := durable.NewDraft(filepath.Join(dir, "case.jsonl"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Discard()
	if _, err := d.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); len(entries) != want || err != nil {
		t.Errorf("a killed process leaves %v, %v", entries, err)
	}
}
