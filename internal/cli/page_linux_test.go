package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPageOnDevice: a page that cannot be written takes neither the device nor the link of its name
// away. As root, `--html /dev/stdout` on a full disk would remove /dev/stdout.
func TestPageOnDevice(t *testing.T) {
	link := filepath.Join(t.TempDir(), "stdout")
	if err := os.Symlink("/dev/full", link); err != nil {
		t.Fatal(err)
	}
	p, err := newPage("html", link)
	if err != nil {
		t.Fatal(err)
	}
	defer p.discard()
	err = p.write(func(w io.Writer) error {
		_, err := io.WriteString(w, "a page")
		return err
	})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write: %v, want that the device is full", err)
	}
	if _, err := os.Lstat(link); err != nil {
		t.Error(err)
	}
}

// TestPipeWithoutReader: a file for the result that is a named pipe without a reader is an error at
// once. Its open would wait, and see no signal.
func TestPipeWithoutReader(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newPage("flame", pipe); exitStatus(err) != exitFailed || hintOf(err) == "" {
		t.Errorf("page: %v", err)
	}
}
