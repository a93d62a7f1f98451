package storage_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/storage"
	"github.com/linerate/linerate/internal/storage/layers"
)

// inMounts runs a test in a process with mounts of its own, and returns true there: a thread could
// have its own, but /proc/self shows those of the process.
func inMounts(t *testing.T) bool {
	t.Helper()
	const variable = "LINERATE_STORAGE_MOUNTS"
	testenv.Need(t, testenv.NetNS)
	if os.Getuid() != 0 {
		testenv.Missing(t, testenv.NetNS, "loop devices need root")
	}
	if os.Getenv(variable) != "" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"=1", "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	out, err := cmd.CombinedOutput()
	t.Logf("in a mount namespace:\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

// tool runs a program of the system and returns what it prints.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(testenv.Program(t, name), args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

func mount(t *testing.T, source, kind, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount(source, dir, kind, 0, options); err != nil {
		t.Fatalf("mount %s: %v", kind, err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// loop makes a loop device over a file of that size, which is written completely: holes of it would
// need no device.
func loop(t *testing.T, size int, direct string) (device, backing string) {
	t.Helper()
	backing = filepath.Join(t.TempDir(), "backing")
	f, err := os.Create(backing)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(noise(size)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := sys.DropPages(int(f.Fd()), 0, 0); err != nil {
		t.Fatal(err)
	}
	device = tool(t, "losetup", "--find", "--show", "--direct-io="+direct, backing)
	t.Cleanup(func() { tool(t, "losetup", "--detach", device) })
	return device, backing
}

// ext4 mounts a file system on a loop device that goes past the cache of its backing file.
func ext4(t *testing.T, size int) string {
	t.Helper()
	device, _ := loop(t, size, "on")
	tool(t, "mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", device)
	return mount(t, device, "ext4", "")
}

// noise returns bytes that do not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // cannot fail
	return b
}

// enough is the number of operations on which a verdict of a trap rests: a file of a mebibyte is
// written several times, and what else the process reads at the device is little beside them.
const enough = 64

// figure runs one short test and returns its result. A busy host may give its thread no processor
// meanwhile: then few operations have ended, and the test is run again for longer.
func figure(t *testing.T, target storage.Target, spec storage.Spec) (*storage.Result, storage.Subject) {
	t.Helper()
	s, err := storage.Open(context.Background(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	spec.Duration, spec.Interval = 200*time.Millisecond, 50*time.Millisecond
	r, err := s.Run(context.Background(), spec, nil)
	for err == nil && r.Operations < enough && spec.Duration < time.Minute {
		spec.Duration *= 2
		r, err = s.Run(context.Background(), spec, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s (latency %s), %.0f operations/s, because %q, warnings %q", spec.Test, r.Whose, r.LatencyWhose,
		r.OperationsPerSec, r.Because, r.Warnings)
	return r, s.Subject
}

const mebibyte = 1 << 20

// TestTraps is the truth table: what answers in each place is known, because the test made it. Two
// traps need a limit of a control group, which belongs to the whole machine: see TestLimits and
// docs/evidence/disk.md.
func TestTraps(t *testing.T) {
	if !inMounts(t) {
		return
	}
	own := func(dir string) storage.Target { return storage.Target{Path: dir, SizeBytes: 8 * mebibyte} }
	random := storage.Spec{Test: storage.RandomRead}
	disk := ext4(t, 96*mebibyte)
	file := func(t *testing.T, name string, make func(f *os.File) error) storage.Target {
		t.Helper()
		f, err := os.Create(filepath.Join(disk, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := make(f); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		return storage.Target{Path: f.Name()}
	}
	written := func(f *os.File) error { _, err := f.Write(noise(8 * mebibyte)); return err }
	for _, trap := range []struct {
		name    string
		whose   storage.Whose
		latency storage.Whose // empty: the same
		run     func(t *testing.T) *storage.Result
	}{
		{"no trap", storage.Device, "", func(t *testing.T) *storage.Result {
			r, subject := figure(t, own(disk), random)
			kinds := []layers.Kind{}
			for _, l := range subject.Stack.Layers {
				kinds = append(kinds, l.Kind)
			}
			if !slices.Contains(kinds, layers.Loop) || subject.Stack.FileSystem != "ext4" {
				t.Errorf("layers %v of %s", kinds, subject.Stack.FileSystem)
			}
			return r
		}},
		{"no trap, io_uring and a synchronous write", storage.Device, "", func(t *testing.T) *storage.Result {
			r, _ := figure(t, own(disk), storage.Spec{Test: storage.RandomWrite, Depth: 4, Sync: storage.Dsync,
				Engine: storage.IOUring})
			return r
		}},
		{"tmpfs", storage.Memory, "", func(t *testing.T) *storage.Result {
			r, _ := figure(t, own(mount(t, "tmpfs", "tmpfs", "size=32m")), random)
			return r
		}},
		{"tmpfs with O_DIRECT", storage.Memory, "", func(t *testing.T) *storage.Result {
			spec := random
			spec.Way = storage.Direct
			r, _ := figure(t, own(mount(t, "tmpfs", "tmpfs", "size=32m")), spec)
			return r
		}},
		{"ramfs", storage.Memory, "", func(t *testing.T) *storage.Result {
			r, _ := figure(t, own(mount(t, "ramfs", "ramfs", "")), random)
			return r
		}},
		{"file in the cache", storage.PageCache, "", func(t *testing.T) *storage.Result {
			target := file(t, "cached", written)
			if _, err := os.ReadFile(target.Path); err != nil {
				t.Fatal(err)
			}
			spec := random
			spec.Way = storage.Buffered
			r, _ := figure(t, target, spec)
			return r
		}},
		{"file in the cache, read directly", storage.Device, "", func(t *testing.T) *storage.Result {
			target := file(t, "cached", written)
			if _, err := os.ReadFile(target.Path); err != nil {
				t.Fatal(err)
			}
			r, _ := figure(t, target, random)
			return r
		}},
		{"sparse file", storage.Holes, "", func(t *testing.T) *storage.Result {
			r, _ := figure(t, file(t, "sparse", func(f *os.File) error { return f.Truncate(8 * mebibyte) }), random)
			return r
		}},
		{"unwritten extents", storage.Unwritten, "", func(t *testing.T) *storage.Result {
			r, _ := figure(t, file(t, "unwritten", func(f *os.File) error {
				return unix.Fallocate(int(f.Fd()), 0, 0, 8*mebibyte)
			}), random)
			return r
		}},
		{"loop device over a cached file", storage.BackingCache, "", func(t *testing.T) *storage.Result {
			device, backing := loop(t, 8*mebibyte, "off")
			if _, err := os.ReadFile(backing); err != nil {
				t.Fatal(err)
			}
			r, _ := figure(t, storage.Target{Path: device}, random)
			return r
		}},
		{"compressed file system", storage.Compression, "", func(t *testing.T) *storage.Result {
			device, _ := loop(t, 128*mebibyte, "on")
			tool(t, "mkfs.btrfs", "-q", "-K", device)
			dir := mount(t, device, "btrfs", "compress-force=zstd")
			name := filepath.Join(dir, "text")
			if err := os.WriteFile(name, bytes.Repeat([]byte("the same again "), 8*mebibyte/15), 0o600); err != nil {
				t.Fatal(err)
			}
			unix.Sync()
			r, _ := figure(t, storage.Target{Path: name}, random)
			return r
		}},
		{"own file on a compressed file system", storage.Device, "", func(t *testing.T) *storage.Result {
			device, _ := loop(t, 128*mebibyte, "on")
			tool(t, "mkfs.btrfs", "-q", "-K", device)
			r, _ := figure(t, own(mount(t, device, "btrfs", "compress-force=zstd")), random)
			return r
		}},
		{"small file under a time-based write", storage.PageCache, "", func(t *testing.T) *storage.Result {
			target := own(disk)
			target.SizeBytes = mebibyte
			r, _ := figure(t, target, storage.Spec{Test: storage.SequentialWrite, Way: storage.Dropped})
			return r
		}},
		{"overlay", storage.Device, "", func(t *testing.T) *storage.Result {
			dirs := map[string]string{}
			for _, name := range []string{"lower", "upper", "work"} {
				dirs[name] = filepath.Join(disk, name)
				if err := os.Mkdir(dirs[name], 0o755); err != nil {
					t.Fatal(err)
				}
			}
			r, subject := figure(t, own(mount(t, "overlay", "overlay", fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s",
				dirs["lower"], dirs["upper"], dirs["work"]))), random)
			if subject.Stack.FileSystem != "overlay" || subject.Stack.Layers[0].Kind != layers.Overlay ||
				!slices.ContainsFunc(subject.Stack.Layers, func(l layers.Layer) bool { return l.Name == "ext4" }) {
				t.Errorf("layers of an overlay: %+v", subject.Stack)
			}
			return r
		}},
		{"read-ahead", storage.Device, storage.ReadAhead, func(t *testing.T) *storage.Result {
			target := own(disk)
			target.SizeBytes = 32 * mebibyte
			r, _ := figure(t, target, storage.Spec{Test: storage.SequentialRead, Way: storage.Dropped})
			return r
		}},
		// The last: it hides what the others read.
		{"container without permission", storage.Unknown, "", func(t *testing.T) *storage.Result {
			mountOver(t, "/proc/diskstats")
			if err := unix.Mount("tmpfs", "/sys", "tmpfs", 0, ""); err != nil {
				t.Fatal(err)
			}
			r, subject := figure(t, own(disk), random)
			if len(subject.Stack.Unknown) == 0 {
				t.Error("nothing says that /sys is not visible")
			}
			return r
		}},
	} {
		t.Run(trap.name, func(t *testing.T) {
			r := trap.run(t)
			latency := trap.latency
			if latency == "" {
				latency = trap.whose
			}
			if r.Whose != trap.whose || r.LatencyWhose != latency {
				t.Errorf("whose %s, latency %s; want %s and %s", r.Whose, r.LatencyWhose, trap.whose, latency)
			}
			if len(r.Because) == 0 || r.Operations == 0 {
				t.Errorf("%d operations, because %q", r.Operations, r.Because)
			}
		})
	}
}

// mountOver hides a file behind an empty one.
func mountOver(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mount("/dev/null", path, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
}

// TestBadPlaces: a full disk, a read-only one, one without permission; each is one sentence, and
// nothing of linerate's is left behind.
func TestBadPlaces(t *testing.T) {
	if !inMounts(t) {
		return
	}
	disk := ext4(t, 64*mebibyte)
	open := func(dir string, size int64) error {
		s, err := storage.Open(context.Background(), storage.Target{Path: dir, SizeBytes: size}, nil)
		if err == nil {
			s.Close()
		}
		return err
	}
	// A file system that fills up between the check and the end of the filling has the same end.
	if err := open(disk, 60*mebibyte); err == nil || !strings.Contains(err.Error(), "no space left on device: ") ||
		!strings.Contains(err.Error(), "stay free") {
		t.Errorf("full: %v", err)
	}
	if err := unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := open(disk, mebibyte); err == nil || !strings.Contains(err.Error(), "read-only file system") {
		t.Errorf("read-only: %v", err)
	}
	if err := unix.Mount("", disk, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	device := tool(t, "findmnt", "--noheadings", "--output", "SOURCE", disk)
	s, err := storage.Open(context.Background(), storage.Target{Path: device, Overwrite: true}, nil)
	if err == nil || !strings.Contains(err.Error(), "a file system or another layer uses it") {
		t.Errorf("writes to a mounted device: %v", err)
	}
	if err == nil {
		s.Close()
	}
	entries, err := os.ReadDir(disk)
	if err != nil || len(entries) != 1 || entries[0].Name() != "lost+found" {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
