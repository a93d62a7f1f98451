package storage_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/storage"
)

// snapshot lists a tree: names, kinds, permissions, owners, sizes, times of change, and contents.
// The times of what the fault itself changes are left out.
func snapshot(t *testing.T, dir string, changed ...string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content := ""
		if e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = fmt.Sprintf("%x", sha256.Sum256(data))
		}
		if slices.Contains(changed, name) {
			st.Mtim = unix.Timespec{}
		}
		fmt.Fprintf(&b, "%s %o %d:%d %d links %d bytes %d.%09d %s\n", name, st.Mode, st.Uid, st.Gid, st.Nlink, st.Size,
			st.Mtim.Sec, st.Mtim.Nsec, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// place is a file system of a test, with files of another program.
type place struct {
	t      *testing.T
	dir    string
	device string
}

func newPlace(t *testing.T, dir, device string) place {
	t.Helper()
	must(t, os.Mkdir(filepath.Join(dir, "other"), 0o750))
	must(t, os.WriteFile(filepath.Join(dir, "other", "precious"), noise(4*mebibyte), 0o640))
	must(t, os.Symlink("precious", filepath.Join(dir, "other", "link")))
	unix.Sync()
	return place{t, dir, device}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fills writes a file until nothing is free, as another program does.
func (p place) fills() error {
	f, err := os.Create(filepath.Join(p.dir, "filler"))
	if err != nil {
		return err
	}
	defer f.Close()
	for chunk := noise(mebibyte); err == nil; {
		_, err = f.Write(chunk)
	}
	if err := f.Sync(); err != nil && !errors.Is(err, unix.ENOSPC) {
		return err
	}
	if !errors.Is(err, unix.ENOSPC) {
		return err
	}
	return nil
}

// btrfs makes a btrfs, which needs new blocks to overwrite old ones.
func btrfs(t *testing.T) place {
	t.Helper()
	device, _ := loop(t, 160*mebibyte, "on")
	tool(t, "mkfs.btrfs", "-q", "-K", "-m", "single", device)
	return newPlace(t, mount(t, device, "btrfs", ""), device)
}

// ext4Place makes an ext4.
func ext4Place(t *testing.T) place {
	t.Helper()
	dir := ext4(t, 64*mebibyte)
	return newPlace(t, dir, tool(t, "findmnt", "--noheadings", "--output", "SOURCE", dir))
}

// remounted mounts the file system again, which shows what is on its device.
func (p place) remounted() {
	p.t.Helper()
	must(p.t, unix.Unmount(p.dir, 0)) // busy, if anything holds the own file
	must(p.t, unix.Mount(p.device, p.dir, "ext4", 0, ""))
}

// shutdown is EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH (fs/ext4/ext4.h): the file system
// ends at once, as when its device is gone.
func (p place) shutdown() error {
	d, err := os.Open(p.dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.IoctlSetPointerInt(int(d.Fd()), 0x8004587d, 2)
}

// TestFaultsDuringATest breaks a place in the middle of a test: the test ends with one sentence,
// its own file is gone, and all others are as before.
func TestFaultsDuringATest(t *testing.T) {
	if !inMounts(t) {
		return
	}
	precious := func(p place) storage.Target {
		return storage.Target{Path: filepath.Join(p.dir, "other", "precious")}
	}
	own := func(p place) storage.Target { return storage.Target{Path: p.dir, SizeBytes: 8 * mebibyte} }
	for _, c := range []struct {
		name   string
		make   func(t *testing.T) place
		target func(p place) storage.Target
		spec   storage.Spec
		fault  func(p place) error
		repair func(p place) // before the second snapshot
		err    string        // "": the test goes on until it is asked to end
		warns  string
		// What the fault and its repair change.
		changes []string
	}{
		{"full", btrfs, own, storage.Spec{Test: storage.SequentialWrite, Sync: storage.Dsync}, place.fills,
			func(p place) { must(p.t, os.Remove(filepath.Join(p.dir, "filler"))) },
			`^sequential-write on \S+: write at byte \d+: no space left on device$`, "", []string{"."}},
		{"full, io_uring", btrfs, own, storage.Spec{Test: storage.RandomWrite, Engine: storage.IOUring, Depth: 4,
			Sync: storage.Fdatasync}, place.fills,
			func(p place) { must(p.t, os.Remove(filepath.Join(p.dir, "filler"))) },
			`^random-write on \S+: write at byte \d+: no space left on device$`, "", []string{"."}},
		{"quota", func(t *testing.T) place {
			p := btrfs(t)
			tool(t, "btrfs", "quota", "enable", p.dir)
			tool(t, "btrfs", "quota", "rescan", "-w", p.dir)
			return p
		}, own, storage.Spec{Test: storage.SequentialWrite, Sync: storage.Dsync}, func(p place) error {
			tool(p.t, "btrfs", "qgroup", "limit", "1M", p.dir)
			return nil
		}, func(place) {}, `^sequential-write on \S+: write at byte \d+: disk quota exceeded$`, "", nil},
		{"shut down, reads", ext4Place, own, storage.Spec{Test: storage.RandomRead, Depth: 4}, place.shutdown,
			place.remounted, `^random-read on \S+: read at byte \d+: input/output error$`, "", nil},
		{"shut down, threads", ext4Place, own, storage.Spec{Test: storage.RandomRead, Depth: 4,
			Engine: storage.Psync}, place.shutdown, place.remounted,
			`^random-read on \S+: read at byte \d+: input/output error$`, "", nil},
		{"shut down, writes", ext4Place, own, storage.Spec{Test: storage.RandomWrite, Way: storage.Dropped,
			Sync: storage.Fdatasync}, place.shutdown, place.remounted,
			`^random-write on \S+: write at byte \d+: input/output error$`, "", nil},
		{"read-only after an error", ext4Place, own, storage.Spec{Test: storage.SequentialWrite, Sync: storage.Dsync},
			func(p place) error {
				must(p.t, unix.Mount("", p.dir, "", unix.MS_REMOUNT, "errors=remount-ro"))
				return os.WriteFile("/sys/fs/ext4/"+filepath.Base(p.device)+"/trigger_fs_error", []byte("1"), 0)
			}, place.remounted,
			`^sequential-write on \S+: write at byte \d+: (read-only file system|input/output error)$`, "", nil},
		{"device cut off", func(t *testing.T) place {
			device, backing := loop(t, 16*mebibyte, "on")
			dir := t.TempDir()
			must(t, os.Symlink(backing, filepath.Join(dir, "backing")))
			return place{t, dir, device}
		}, func(p place) storage.Target { return storage.Target{Path: p.device} },
			storage.Spec{Test: storage.RandomRead, Depth: 2}, func(p place) error {
				return os.Truncate(filepath.Join(p.dir, "backing"), 0)
			}, func(place) {}, `^random-read on /dev/loop\d+: read at byte \d+: input/output error$`, "", nil},
		{"file truncated", ext4Place, precious, storage.Spec{Test: storage.RandomRead}, func(p place) error {
			return os.Truncate(precious(p).Path, 0)
		}, func(p place) { must(p.t, os.WriteFile(precious(p).Path, noise(4*mebibyte), 0)) },
			`^random-read on \S+: read at byte \d+: unexpected EOF after 0 of 4096 bytes: the file became shorter$`, "",
			[]string{"other/precious"}},
		{"file replaced", ext4Place, precious, storage.Spec{Test: storage.RandomRead}, func(p place) error {
			return os.Rename(precious(p).Path, precious(p).Path+".old")
		}, func(p place) { must(p.t, os.Rename(precious(p).Path+".old", precious(p).Path)) }, "",
			"precious was replaced or removed meanwhile: the figures are those of the file that was opened", []string{"other"}},
		{"permission withdrawn", ext4Place, own, storage.Spec{Test: storage.RandomWrite}, func(p place) error {
			return os.Chmod(p.dir, 0)
		}, func(p place) { must(p.t, os.Chmod(p.dir, 0o755)) }, "", "", nil},
		{"directory removed", func(t *testing.T) place {
			p := ext4Place(t)
			must(t, os.Mkdir(filepath.Join(p.dir, "empty"), 0o755))
			return p
		}, func(p place) storage.Target {
			return storage.Target{Path: filepath.Join(p.dir, "empty"), SizeBytes: 4 * mebibyte}
		}, storage.Spec{Test: storage.RandomWrite}, func(p place) error {
			return os.Remove(filepath.Join(p.dir, "empty"))
		}, func(p place) { must(p.t, os.Mkdir(filepath.Join(p.dir, "empty"), 0o755)) }, "", "", []string{".", "empty"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.make(t)
			must(t, os.Chmod(p.dir, 0o755))
			before := snapshot(t, p.dir, c.changes...)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			s, err := storage.Open(ctx, c.target(p), nil)
			must(t, err)
			c.spec.Duration, c.spec.Interval = time.Hour, 20*time.Millisecond
			var once sync.Once
			var faulted error
			r, err := s.Run(ctx, c.spec, func(x storage.Sample) {
				if x.OperationsPerSec == 0 {
					return
				}
				once.Do(func() {
					if faulted = c.fault(p); faulted != nil || c.err == "" {
						cancel()
					}
				})
			})
			must(t, faulted)
			t.Logf("%v", err)
			if r == nil || r.Operations == 0 {
				t.Fatalf("no result until then: %v", err)
			}
			if c.err == "" && !errors.Is(err, context.Canceled) || c.err != "" &&
				(err == nil || !regexp.MustCompile(c.err).MatchString(err.Error()) || r.Errors == 0) {
				t.Errorf("%v, want %s", err, c.err)
			}
			if got := strings.Join(r.Warnings, "\n"); !strings.Contains(got, c.warns) {
				t.Errorf("warnings %q, want %s", got, c.warns)
			}
			must(t, s.Close())
			c.repair(p)
			if after := snapshot(t, p.dir, c.changes...); after != before {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
		})
	}
}

// TestFaultsDuringFilling breaks a place while a session fills its own file.
func TestFaultsDuringFilling(t *testing.T) {
	if !inMounts(t) {
		return
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T) (p place, fault func() error)
		err  string
	}{
		// The own file has its blocks already. But nothing else would have any.
		{"full", func(t *testing.T) (place, func() error) {
			p := ext4Place(t)
			return p, p.fills
		}, `^fill a file in \S+: another program leaves only 0 B free$`},
		{"shut down", func(t *testing.T) (place, func() error) {
			p := ext4Place(t)
			return p, p.shutdown
		}, `^fill a file of 16 MiB in \S+: input/output error$`},
		// Thin provisioning: the file system has space, and the storage below it has none.
		{"thin", func(t *testing.T) (place, func() error) {
			memory := place{t: t, dir: mount(t, "tmpfs", "tmpfs", "size=24m")}
			backing := filepath.Join(memory.dir, "backing")
			must(t, os.WriteFile(backing, nil, 0o600))
			must(t, os.Truncate(backing, 64*mebibyte))
			device := tool(t, "losetup", "--find", "--show", backing)
			t.Cleanup(func() { tool(t, "losetup", "--detach", device) })
			tool(t, "mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", device)
			return newPlace(t, mount(t, device, "ext4", ""), device), memory.fills
		}, `^fill a file of 16 MiB in \S+: (no space left on device|input/output error)$`},
		{"interrupted", func(t *testing.T) (place, func() error) {
			return ext4Place(t), func() error { return context.Canceled }
		}, `^context canceled$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, fault := c.make(t)
			before := snapshot(t, filepath.Join(p.dir, "other"))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			var once sync.Once
			var faulted error
			s, err := storage.Open(ctx, storage.Target{Path: p.dir, SizeBytes: 16 * mebibyte}, func(share float64) {
				once.Do(func() {
					if faulted = fault(); faulted == context.Canceled {
						faulted = nil
						cancel()
					}
				})
			})
			must(t, faulted)
			if err == nil {
				must(t, s.Close())
			}
			if err == nil || !regexp.MustCompile(c.err).MatchString(err.Error()) {
				t.Errorf("%v, want %s", err, c.err)
			}
			if c.name == "shut down" {
				p.remounted()
			}
			if after := snapshot(t, filepath.Join(p.dir, "other")); after != before {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
			entries, err := os.ReadDir(p.dir)
			must(t, err)
			for _, e := range entries {
				if e.Name() != "other" && e.Name() != "lost+found" && e.Name() != "filler" {
					t.Errorf("left behind: %s", e.Name())
				}
			}
		})
	}
}

// TestNoDisk: what is neither a directory, nor a file, nor a block device is refused without a
// wait.
func TestNoDisk(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, unix.Mkfifo(at("fifo"), 0o600))
	must(t, os.Symlink("loop", at("loop")))
	must(t, os.Symlink("nowhere", at("dangling")))
	must(t, os.Symlink("fifo", at("to-fifo")))
	l, err := net.Listen("unix", at("socket"))
	must(t, err)
	defer l.Close()
	before := snapshot(t, dir)
	for name, want := range map[string]string{
		at("fifo"):      "neither a directory, nor a file, nor a block device",
		at("to-fifo"):   "neither a directory, nor a file, nor a block device",
		at("socket"):    "neither a directory, nor a file, nor a block device",
		at("loop"):      "too many levels of symbolic links",
		at("dangling"):  "no such file or directory",
		at("fifo/file"): "not a directory",
		"/dev/null":     "neither a directory, nor a file, nor a block device",
		"":              "no such file or directory",
	} {
		_, err := storage.Open(t.Context(), storage.Target{Path: name}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if after := snapshot(t, dir); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}
