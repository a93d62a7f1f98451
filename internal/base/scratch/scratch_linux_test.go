package scratch

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestDirectoriesOfTheDead makes a directory beside those of runs that were killed, that live, and
// whose programs still end, and beside what is of other users and of other programs.
func TestDirectoriesOfTheDead(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := func(name string, files ...string) string {
		name = filepath.Join(os.TempDir(), prefix+name)
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(name, f), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return name
	}
	living, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	dead, empty := dir("world-1", lockName, "named.conf"), dir("test-2")
	foreign, ending := dir("world-3", "a"), dir("world-4", lockName)
	build := dir("build-9") // of a program that has just made it
	named, journal := dir("mine", lockName), dir("lab-5", "lock", "journal")
	target := filepath.Join(t.TempDir(), "target")
	link, inside := filepath.Join(os.TempDir(), prefix+"world-6"), filepath.Join(dead, "link")
	if err := errors.Join(os.Mkdir(target, 0o700), os.WriteFile(filepath.Join(target, lockName), nil, 0o600),
		os.Symlink(target, link), os.Symlink(target, inside)); err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{foreign: true, named: true, journal: true, link: true,
		filepath.Join(target, lockName): true, build: true}
	if os.Geteuid() == 0 { // only root can give a directory away
		others, emptied := dir("world-7"), dir("test-8")
		pipe := filepath.Join(others, lockName) // opening it would wait for a writer
		if err := errors.Join(unix.Mkfifo(pipe, 0o600), os.Chown(others, 65534, 65534),
			os.Chown(emptied, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		kept[pipe], kept[emptied] = true, true
	}
	program := exec.Command("sh", "-c", "read -r x # $0", ending)
	in, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	present := func(want map[string]bool) {
		t.Helper()
		for name, there := range want {
			if _, err := os.Lstat(name); (err == nil) != there {
				t.Errorf("%s: %v, want %v", filepath.Base(name), err == nil, there)
			}
		}
	}
	next, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	present(kept)
	present(map[string]bool{living.Path: true, dead: false, empty: false, ending: true, next.Path: true})
	_ = in.Close() // the program ends
	_ = program.Wait()
	another, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*Directory{living, next, another} {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	present(kept)
	present(map[string]bool{living.Path: false, ending: false, next.Path: false})
}

// TestKilledAtAnyMoment kills runs that do nothing but make, fill and remove directories beside
// each other. The next run finds nothing else than its own.
func TestKilledAtAnyMoment(t *testing.T) {
	if parent := os.Getenv("SCRATCH_PARENT"); parent != "" {
		for {
			if err := once(parent); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
	}
	parent := t.TempDir()
	for range 40 {
		var runs [2]*exec.Cmd
		for i := range runs {
			runs[i] = exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
			runs[i].Env = append(os.Environ(), "SCRATCH_PARENT="+parent)
			out, err := runs[i].StdoutPipe()
			if err == nil {
				err = runs[i].Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			line := make([]byte, 1)
			if _, err := io.ReadFull(out, line); err != nil || line[0] != '.' {
				t.Fatalf("a run did not begin: %q, %v", line, err)
			}
		}
		time.Sleep(rand.N(5 * time.Millisecond)) // any moment
		for _, r := range runs {
			if err := r.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if _ = r.Wait(); r.ProcessState.Exited() {
				t.Error("a run ended before it was killed: another removed what it had")
			}
		}
	}
	d, err := In(parent, "test")
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(parent)
	if err != nil || len(left) != 1 {
		t.Errorf("%d directories beside the own one, %v", len(left)-1, err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// once makes, fills and removes a directory.
func once(parent string) error {
	d, err := In(parent, "test")
	if err != nil {
		return err
	}
	for i := range 5 {
		below := filepath.Join(d.Path, strconv.Itoa(i))
		if err := errors.Join(os.Mkdir(below, 0o700), os.WriteFile(filepath.Join(below, "a"), nil, 0o600)); err != nil {
			return err
		}
	}
	fmt.Print(".")
	return d.Close()
}

// TestStillWritten removes a directory into which a program writes meanwhile: it keeps a lock, so
// that the next run removes it.
func TestStillWritten(t *testing.T) {
	parent := t.TempDir()
	d, err := In(parent, "test")
	if err != nil {
		t.Fatal(err)
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
				_ = os.WriteFile(filepath.Join(d.Path, strconv.Itoa(i)), nil, 0o600) // fails when it is removed
			}
		}
	}()
	_ = d.Close() // an error if it was not empty
	close(end)
	<-ended
	next, err := In(parent, "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}
