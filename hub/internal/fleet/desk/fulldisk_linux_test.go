package desk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/report"
)

// onFullDisk marks the process that has a disk of its own.
const onFullDisk = "LINERATE_FLEET_DISK"

// TestFullDisk fills the disk under a running hub. What it cannot keep it refuses with a reason, it
// answers from memory meanwhile, and with room again it goes on without a restart.
func TestFullDisk(t *testing.T) {
	testenv.Need(t, testenv.NetNS) // and private mounts
	disk := os.Getenv(onFullDisk)
	if disk == "" {
		own, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(own, "-test.run", "^TestFullDisk$", "-test.v")
		c.Env = append(os.Environ(), onFullDisk+"="+t.TempDir())
		dieWithParent(c)
		alone(c)
		out, err := c.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Errorf("on a disk of its own: %v", err)
		}
		return
	}
	mountSmall(t, disk)
	o := options(t)
	o.Dir = filepath.Join(disk, "f")
	if err := os.Mkdir(o.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d := start(t, o)
	s := small(t, o, 5)
	until(t, "all hosts", func() bool { return answered(t, o.Dir) == 5 })
	id := d.hosts.Hosts()[0].ID
	ballast := filepath.Join(disk, "ballast")
	fillDisk(t, ballast)
	var refused error
	until(t, "a refusal of what cannot be kept", func() bool {
		refused = Call(t.Context(), o.Dir, Request{Do: DoInvite, Uses: 1, TTLMS: time.Hour.Milliseconds()},
			&report.FleetInviteDocument{}, nil)
		return refused != nil
	})
	t.Logf("an invitation on a full disk: %v", refused)
	err := Call(t.Context(), o.Dir, Request{Do: DoRemove, IDs: []string{id}}, &report.FleetDecideDocument{}, nil)
	if t.Logf("a removal on a full disk: %v", err); err == nil {
		t.Error("a removal that is on no disk is called done")
	}
	until(t, "answers of the hosts while the disk is full", func() bool { return answered(t, o.Dir) >= 4 })
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	until(t, "an invitation with room again", func() bool {
		return Call(t.Context(), o.Dir, Request{Do: DoInvite, Uses: 1, TTLMS: time.Hour.Milliseconds()},
			&report.FleetInviteDocument{}, nil) == nil
	})
	if err := Call(t.Context(), o.Dir, Request{Do: DoRemove, IDs: []string{id}},
		&report.FleetDecideDocument{}, nil); err != nil {
		t.Fatal(err)
	}
	until(t, "the end of the removed host", func() bool { return s.Failed.Load() == 1 && answered(t, o.Dir) == 4 })
	// What was kept is whole.
	d.stop()
	start(t, o)
	until(t, "four hosts after a restart", func() bool { return answered(t, o.Dir) == 4 })
}

// fillDisk writes until nothing fits any more.
func fillDisk(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			size /= 16
		}
	}
}

// alone gives a program mounts of its own.
func alone(c *exec.Cmd) { c.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS }

// mountSmall mounts a file system of 1 MiB in memory, which no other process sees.
func mountSmall(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Fatal(err)
	}
}
