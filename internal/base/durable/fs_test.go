package durable_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
)

// implementations returns all file systems, each with an empty working directory.
func implementations(t *testing.T) map[string]func(t *testing.T) (durable.FS, string) {
	mem := func(t *testing.T) (durable.FS, string) {
		fsys := durable.NewMem()
		if err := durable.MkdirAll(fsys, "/work", 0o755); err != nil {
			t.Fatal(err)
		}
		return fsys, "/work"
	}
	return map[string]func(t *testing.T) (durable.FS, string){
		"os":  func(t *testing.T) (durable.FS, string) { return durable.OS(), t.TempDir() },
		"mem": mem,
		"faulty": func(t *testing.T) (durable.FS, string) {
			fsys, dir := mem(t)
			return durable.NewFaulty(fsys, func(durable.Op) error { return nil }), dir
		},
		"crashed": func(t *testing.T) (durable.FS, string) {
			fsys, dir := mem(t)
			return fsys.(*durable.Mem).CrashClone(0, nil), dir
		},
	}
}

func write(t *testing.T, file durable.File, text string) {
	t.Helper()
	if n, err := file.Write([]byte(text)); err != nil || n != len(text) {
		t.Fatalf("wrote %d of %d bytes: %v", n, len(text), err)
	}
}

func content(t *testing.T, fsys durable.FS, name string) string {
	t.Helper()
	data, err := fsys.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestConformance checks the contract of FS for all implementations.
func TestConformance(t *testing.T) {
	for name, start := range implementations(t) {
		t.Run(name, func(t *testing.T) {
			t.Run("files", func(t *testing.T) {
				fsys, dir := start(t)
				path := filepath.Join(dir, "a")
				file, err := fsys.Create(path, 0o644)
				must(t, err)
				write(t, file, "one")
				write(t, file, " two")
				must(t, file.Sync())
				must(t, file.Truncate(3))
				must(t, file.Close())
				if err := file.Close(); !errors.Is(err, fs.ErrClosed) {
					t.Errorf("second close: %v", err)
				}
				if got := content(t, fsys, path); got != "one" {
					t.Errorf("after truncate: %q", got)
				}
				file, err = fsys.OpenAppend(path, 0o644)
				must(t, err)
				write(t, file, "+")
				must(t, file.Truncate(2))
				write(t, file, "!") // At the new end, not after a hole.
				must(t, file.Close())
				if got := content(t, fsys, path); got != "on!" {
					t.Errorf("after append: %q", got)
				}
				info, err := fsys.Stat(path)
				must(t, err)
				if info.Name() != "a" || info.Size() != 3 || info.IsDir() {
					t.Errorf("stat: %s %d %v", info.Name(), info.Size(), info.Mode())
				}
				file, err = fsys.Create(path, 0o644)
				must(t, err)
				must(t, file.Close())
				if got := content(t, fsys, path); got != "" {
					t.Errorf("create of an existing file: %q", got)
				}
			})
			t.Run("names", func(t *testing.T) {
				fsys, dir := start(t)
				a, b, sub := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "sub")
				must(t, durable.Replace(fsys, a, []byte("A"), 0o644))
				must(t, durable.Replace(fsys, b, []byte("B"), 0o644))
				must(t, durable.MkdirAll(fsys, filepath.Join(sub, "deep"), 0o755))
				must(t, durable.MkdirAll(fsys, sub, 0o755))
				must(t, fsys.Rename(a, b))
				names, err := fsys.ReadDir(dir)
				must(t, err)
				if diff := cmp.Diff([]string{"b", "sub"}, names); diff != "" {
					t.Error(diff)
				}
				if got := content(t, fsys, b); got != "A" {
					t.Errorf("renamed: %q", got)
				}
				if err := fsys.Remove(sub); err == nil {
					t.Error("a non-empty directory was removed")
				}
				must(t, fsys.Remove(filepath.Join(sub, "deep")))
				must(t, fsys.Remove(sub))
				must(t, fsys.Remove(b))
				must(t, fsys.SyncDir(dir))
				names, err = fsys.ReadDir(dir)
				must(t, err)
				if len(names) != 0 {
					t.Errorf("left: %q", names)
				}
			})
			t.Run("errors", func(t *testing.T) {
				fsys, dir := start(t)
				gone := filepath.Join(dir, "gone")
				there := filepath.Join(dir, "there")
				must(t, durable.Replace(fsys, there, nil, 0o644))
				must(t, fsys.Mkdir(filepath.Join(dir, "sub"), 0o755))
				_, readErr := fsys.ReadFile(gone)
				_, statErr := fsys.Stat(gone)
				_, dirErr := fsys.ReadDir(gone)
				_, createErr := fsys.Create(filepath.Join(gone, "x"), 0o644)
				_, appendErr := fsys.OpenAppend(filepath.Join(gone, "x"), 0o644)
				_, lockErr := fsys.Lock(filepath.Join(gone, "x"))
				for what, err := range map[string]error{
					"read": readErr, "stat": statErr, "readdir": dirErr, "create": createErr, "append": appendErr,
					"lock":   lockErr,
					"rename": fsys.Rename(gone, there), "remove": fsys.Remove(gone),
					"mkdir": fsys.Mkdir(filepath.Join(gone, "x"), 0o755),
				} {
					if !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("%s of a missing name: %v", what, err)
					}
				}
				if err := fsys.Mkdir(filepath.Join(dir, "sub"), 0o755); !errors.Is(err, fs.ErrExist) {
					t.Errorf("mkdir of an existing name: %v", err)
				}
				if err := durable.MkdirAll(fsys, there, 0o755); err == nil {
					t.Error("mkdirall over a file")
				}
				if _, err := fsys.Create(filepath.Join(there, "x"), 0o644); err == nil {
					t.Error("file inside a file")
				}
				if _, err := fsys.Create(filepath.Join(dir, "sub"), 0o644); err == nil {
					t.Error("file over a directory")
				}
				if _, err := fsys.ReadFile(filepath.Join(dir, "sub")); err == nil {
					t.Error("directory read as a file")
				}
			})
			t.Run("lock", func(t *testing.T) {
				fsys, dir := start(t)
				path := filepath.Join(dir, "lock")
				lock, err := fsys.Lock(path)
				must(t, err)
				_, err = fsys.Lock(path)
				var locked *durable.LockedError
				if !errors.As(err, &locked) || !errors.Is(err, durable.ErrLocked) || locked.PID != os.Getpid() {
					t.Fatalf("second lock: %v", err)
				}
				must(t, lock.Close())
				lock, err = fsys.Lock(path)
				must(t, err)
				must(t, lock.Close())
				info, err := fsys.Stat(path)
				must(t, err)
				if perm := info.Mode().Perm(); runtime.GOOS != "windows" && perm != 0o600 {
					t.Errorf("another user may open the file and hold the lock: mode %v", perm)
				}
			})
		})
	}
}

// TestReplaceSurvivesPowerLossAtEveryOperation checks that a power loss at any operation leaves the
// old content or the new.
func TestReplaceSurvivesPowerLossAtEveryOperation(t *testing.T) {
	contents := []string{"", strings.Repeat("old ", 400), strings.Repeat("newer ", 300), "newest"}
	for _, keep := range []float64{0, 0.5, 1} {
		rng := rand.New(rand.NewPCG(1, uint64(keep*10)))
		mem := durable.NewMem()
		must(t, durable.MkdirAll(mem, "/d", 0o755))
		step := 0
		check := func() {
			for range 20 {
				crashed := mem.CrashClone(keep, rng)
				data, err := crashed.ReadFile("/d/f")
				got := string(data)
				if step <= 1 && errors.Is(err, fs.ErrNotExist) {
					continue
				}
				must(t, err)
				if got != contents[step] && got != contents[max(step-1, 1)] {
					t.Fatalf("keep %v, step %d: found %.20q…", keep, step, got)
				}
				// The file can be replaced again, with or without leftovers.
				must(t, durable.Replace(crashed, "/d/f", []byte("again"), 0o644))
			}
		}
		fsys := durable.NewFaulty(mem, func(durable.Op) error { check(); return nil })
		for step = 1; step < len(contents); step++ {
			must(t, durable.Replace(fsys, "/d/f", []byte(contents[step]), 0o644))
			// Replace has returned: from here on the content is safe.
			if got := content(t, mem.CrashClone(0, nil), "/d/f"); got != contents[step] {
				t.Fatalf("after replace: %.20q…", got)
			}
		}
	}
}

func TestReplaceWithFaults(t *testing.T) {
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
		for n := 0; ; n++ {
			mem := durable.NewMem()
			must(t, durable.MkdirAll(mem, "/d", 0o755))
			must(t, durable.Replace(mem, "/d/f", []byte("old"), 0o644))
			faulty := durable.NewFaulty(mem, durable.FailAt(n, cause))
			err := durable.Replace(faulty, "/d/f", []byte("new"), 0o644)
			if err == nil {
				if n < 4 {
					t.Fatalf("only %d operations", n)
				}
				break
			}
			if !errors.Is(err, cause) || !strings.HasPrefix(err.Error(), "replace /d/f: ") {
				t.Errorf("operation %d: %v", n, err)
			}
			if got := content(t, mem, "/d/f"); got != "old" && !strings.Contains(err.Error(), "sync directory") {
				t.Errorf("operation %d: %q", n, got)
			}
			if names, _ := mem.ReadDir("/d"); len(names) != 1 {
				t.Errorf("operation %d: leftover %q", n, names)
			}
		}
	}
}

func TestMkdirAllIsSafe(t *testing.T) {
	mem := durable.NewMem()
	must(t, durable.MkdirAll(mem, "/var/lib/linerate", 0o755))
	if _, err := mem.CrashClone(0, nil).Stat("/var/lib/linerate"); err != nil {
		t.Fatal(err)
	}
}

// TestCrashClone checks what a power loss may leave of one file.
func TestCrashClone(t *testing.T) {
	mem := durable.NewMem()
	must(t, durable.MkdirAll(mem, "/d", 0o755))
	file, err := mem.Create("/d/f", 0o644)
	must(t, err)
	synced := bytes.Repeat([]byte("s"), 1000)
	write(t, file, string(synced))
	must(t, file.Sync())
	if _, err := mem.CrashClone(0, nil).Stat("/d/f"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an unsynced name always survives: %v", err)
	}
	must(t, mem.SyncDir("/d"))
	write(t, file, strings.Repeat("u", 2000))

	if got := content(t, mem.CrashClone(0, nil), "/d/f"); got != string(synced) {
		t.Errorf("nothing kept: %d bytes", len(got))
	}
	if got := content(t, mem.CrashClone(1, nil), "/d/f"); got != content(t, mem, "/d/f") {
		t.Errorf("all kept: %d bytes", len(got))
	}
	rng := rand.New(rand.NewPCG(3, 4))
	holes, cuts := 0, 0
	for range 200 {
		crashed := mem.CrashClone(0.5, rng)
		got := content(t, crashed, "/d/f")
		if !strings.HasPrefix(got, string(synced)) {
			t.Fatal("synced data lost")
		}
		tail := got[1000:]
		if strings.Trim(tail, "u\x00") != "" {
			t.Fatalf("invented data: %q", tail)
		}
		if strings.Contains(tail, "\x00") {
			holes++
		}
		if len(tail) < 2000 {
			cuts++
		}
		if again := content(t, crashed.CrashClone(0, nil), "/d/f"); again != got {
			t.Fatal("a second crash changed the result of the first")
		}
	}
	if holes < 20 || cuts < 20 {
		t.Errorf("%d holes and %d cuts in 200 crashes", holes, cuts)
	}

	// A truncated, unsynced file is the old one or the new one.
	must(t, file.Sync())
	must(t, file.Truncate(10))
	for range 50 {
		if got := content(t, mem.CrashClone(0.5, rng), "/d/f"); got != "ssssssssss" && len(got) != 3000 {
			t.Fatalf("%d bytes after truncate", len(got))
		}
	}
}

func TestLockIsTakenOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lock")
	must(t, os.WriteFile(path, []byte("1234567\n"), 0o644))
	lock, err := durable.OS().Lock(path)
	must(t, err)
	defer lock.Close()
	data, err := os.ReadFile(path)
	must(t, err)
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("a file of an older linerate remained open to all users: %v, %v", info.Mode(), err)
	}
	if len(data) != 20 || strings.Contains(string(data), "1234567") {
		t.Errorf("lock file holds %q", data)
	}
}
