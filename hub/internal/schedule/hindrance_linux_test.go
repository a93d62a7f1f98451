package schedule

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// values are knobs in memory.
type values map[knob.ID]knob.Value

func (v values) Read(_ context.Context, id knob.ID) (knob.Value, error) { return v[id], nil }
func (v values) Write(_ context.Context, id knob.ID, to knob.Value) error {
	v[id] = to
	return nil
}

// TestTuningIsSeen checks that a journal in use is seen without being touched, by its lock and by
// the changes on trial in it.
func TestTuningIsSeen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	here := func() string { return tuning(durable.OS(), []string{"/nonexistent", dir}) }
	if reason := here(); reason != "" {
		t.Errorf("before there is a journal: %s", reason)
	}
	j, err := journal.Open(journal.Options{Dir: dir, Backend: values{"sysctl:a.b": "1"},
		Identify: func(knob.ID) journal.Identity { return journal.Identity{} }})
	if err != nil {
		t.Fatal(err)
	}
	if reason := here(); reason != "a tune or another change of this host is under way" {
		t.Errorf("with the journal open: %q", reason)
	}
	// The check left the lock alone.
	if _, err := durable.OS().Lock(filepath.Join(dir, "lock")); err == nil {
		t.Error("the lock is gone")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if reason := here(); reason != "" {
		t.Errorf("with the journal closed: %s", reason)
	}
}

// TestLockOnOverlay holds a lock on a file of overlay, whose device in stat(2) is not that of the
// list of locks; neither is it on btrfs.
func TestLockOnOverlay(t *testing.T) {
	testenv.Need(t, testenv.NetNS)
	if dir := os.Getenv("LINERATE_OVERLAY"); dir != "" {
		for _, err := range []error{
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("tmpfs", dir, "tmpfs", 0, ""),
			os.MkdirAll(filepath.Join(dir, "lower"), 0o700),
			unix.Mount("tmpfs", filepath.Join(dir, "lower"), "tmpfs", 0, ""),
			os.MkdirAll(filepath.Join(dir, "upper"), 0o700), os.MkdirAll(filepath.Join(dir, "work"), 0o700),
			os.MkdirAll(filepath.Join(dir, "whole"), 0o700),
			unix.Mount("overlay", filepath.Join(dir, "whole"), "overlay", 0,
				fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir)),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		name := filepath.Join(dir, "whole", "lock")
		lock, err := durable.OS().Lock(name)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		if !held(name) {
			t.Error("not held")
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestLockOnOverlay$", "-test.v")
	cmd.Env = append(os.Environ(), "LINERATE_OVERLAY="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestLockedIn(t *testing.T) {
	const locks = `1: POSIX  ADVISORY  WRITE 700 fe:00:12 0 EOF
2: FLOCK  ADVISORY  WRITE 701 fe:00:13 0 EOF
2: -> FLOCK  ADVISORY  WRITE 702 fe:00:14 0 EOF
3: OFDLCK ADVISORY  READ -1 fe:00:15 0 0
`
	for file, want := range map[string]bool{"fe:00:12": false, "fe:00:13": true, "fe:00:14": false, "fe:00:15": false,
		"fe:00:1": false} {
		if got := lockedIn(locks, file); got != want {
			t.Errorf("%s: %t", file, got)
		}
	}
}
