package journal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
)

// TestFullDisk fills a real file system under a journal. The journal changes nothing any more,
// earlier changes can still be undone, and once there is room again the journal records everything.
func TestFullDisk(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	dir := t.TempDir()
	mounted := make(chan error)
	go func() {
		defer close(mounted)
		// A mount namespace of this thread alone, which ends with it because it is never unlocked.
		runtime.LockOSThread()
		err := privateDisk(dir)
		mounted <- err
		if err == nil {
			fullDisk(t, dir)
		}
	}()
	err := <-mounted
	<-mounted // The end.
	switch {
	case errors.Is(err, fs.ErrPermission):
		testenv.Missing(t, testenv.NetNS, err)
	case err != nil:
		t.Fatalf("private mount: %v", err)
	}
}

// privateDisk puts a file system of 64 KiB in a directory, for this thread only.
func privateDisk(dir string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k")
}

func fullDisk(t *testing.T, dir string) {
	k := host()
	o := options(durable.OS(), k, &clock{})
	o.Dir = filepath.Join(dir, "state")
	j, err := journal.Open(o)
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := j.Apply(t.Context(), journal.Request{}, settings(rmem, "B")...); err != nil {
		t.Error(err)
	}
	ballast := filepath.Join(dir, "ballast")
	err = os.WriteFile(ballast, make([]byte, 1<<20), 0o600)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("filling the disk: %v", err)
	}
	// The last page of the log has room left, so it takes a reason that does not fit in.
	long := journal.Request{Reason: strings.Repeat("x", 8<<10)}
	_, err = j.Apply(t.Context(), long, settings(mtu, "9000")...)
	if !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, journal.ErrUnwritable) ||
		!strings.Contains(err.Error(), "nothing changed") {
		t.Errorf("apply on a full disk: %v", err)
	}
	if outcomes, err := j.UndoAll(t.Context()); !errors.Is(err, journal.ErrUnwritable) || len(outcomes) != 1 ||
		!outcomes[0].Restored {
		t.Errorf("undo on a full disk: %+v, %v", outcomes, err)
	}
	if diff := cmp.Diff(host().values, k.values); diff != "" {
		t.Error(diff)
	}
	j.Close()
	// The next process can open the journal even now, and records everything once there is room.
	if j, err = journal.Open(o); err != nil {
		t.Errorf("open on a full disk: %v", err)
		return
	}
	defer j.Close()
	if err := os.Remove(ballast); err != nil {
		t.Error(err)
	}
	outcomes, err := j.Recover(t.Context())
	if err != nil || len(outcomes) != 1 ||
		outcomes[0].Change.Note != "undone by recovery: writer died; the old value was there already" {
		t.Errorf("%+v, %v", outcomes, err)
	}
}
