package desk

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/swarm"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/report"
)

// small starts a swarm of a few hosts; its end is that of the test.
func small(t *testing.T, o Options, hosts int) *swarm.Swarm {
	t.Helper()
	address, token := invite(t, o.Dir, Request{Uses: hosts + 10})
	s := &swarm.Swarm{}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	dir := t.TempDir()
	done.Go(func() {
		s.Run(ctx, swarm.Options{Hosts: hosts, Dir: dir, Address: address, Token: token,
			BeatEvery: 100 * time.Millisecond, Longest: time.Second})
	})
	t.Cleanup(func() { stop(); done.Wait() })
	return s
}

// TestHubClockYearOff starts the hub with a clock that is a year ahead, then right, then ahead
// again. Hosts that joined under one clock stay under the other. A clock that is behind is not
// played here: the embedded server compares expiries with the real clock, and would refuse what
// that hub signs.
func TestHubClockYearOff(t *testing.T) {
	const year = 365 * 24 * time.Hour
	o := options(t)
	const hosts = 5
	for i, skew := range []time.Duration{year, 0, year} {
		o.now = func() time.Time { return time.Now().Add(skew) }
		d := start(t, o)
		if i == 0 {
			small(t, o, hosts)
		}
		until(t, "all hosts", func() bool { return answered(t, o.Dir) == hosts })
		d.stop()
	}
}

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
	if n := answered(t, o.Dir); n < 4 {
		t.Errorf("%d of 5 hosts answer while the disk is full", n)
	}
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
