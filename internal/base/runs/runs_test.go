package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// filled returns a store of n runs, one second apart.
func filled(t *testing.T, fsys durable.FS, keep, n int) Store {
	t.Helper()
	s := In(fsys, "/state", Tunes, keep)
	for i := range n {
		if err := s.Save(NewID(noon.Add(time.Duration(i)*time.Second), uint16(i)),
			fmt.Appendf(nil, "{%d}", i)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestFind(t *testing.T) {
	s := filled(t, durable.NewMem(), 0, 12)
	for _, c := range []struct {
		name, want string
		err        error
	}{
		{"last", "20261122-120011-000b", nil},
		{"latest", "20261122-120011-000b", nil},
		{"previous", "20261122-120010-000a", nil},
		{"20261122-120003-0003", "20261122-120003-0003", nil},
		{"20261122-12000", "", ErrAmbiguous},
		{"20261122-120010", "20261122-120010-000a", nil},
		{"2027", "", ErrNoRun},
		{"", "", ErrNoRun},
		{"../journal", "", ErrNoRun},
	} {
		got, err := s.Find(c.name)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q: %q, %v; want %q, %v", c.name, got, err, c.want, c.err)
		}
	}
	if _, err := In(durable.NewMem(), "/state", Tunes, 0).Find(Last); !errors.Is(err, ErrNoRun) {
		t.Errorf("the last of an empty store: %v", err)
	}
	if _, err := filled(t, durable.NewMem(), 0, 1).Find(Previous); !errors.Is(err, ErrNoRun) {
		t.Errorf("the one before the only one: %v", err)
	}
}

func TestName(t *testing.T) {
	if id := NewID(noon.In(time.FixedZone("", 3600)), 0x7f3a); id != "20261122-120000-7f3a" || !Name(id) {
		t.Errorf("id %q", id)
	}
	for _, bad := range []string{"", "20261122-120000-7f3", "20261122-120000-7F3a", "20261322-120000-7f3a",
		"20261122-120000-7f3a4",
		"20261122_120000-7f3a", "../../../etc/passwd", "20261122-120000/7f3a", "20261122-120000.5-7f3a"} {
		if Name(bad) {
			t.Errorf("%q is accepted as the name of a run", bad)
		}
	}
}

// TestForeignFiles checks that files of other programs in the directory are neither listed nor
// removed.
func TestForeignFiles(t *testing.T) {
	fsys := durable.NewMem()
	s := filled(t, fsys, 2, 4)
	foreign := []string{"notes.txt", "20261122-120000-zzzz.json", "old.json", "old.json.tmp"}
	for _, name := range append(foreign, "20261122-120001-0001.json.tmp") {
		if err := durable.Replace(fsys, filepath.Join("/state/runs", name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Prune(""); err != nil {
		t.Fatal(err)
	}
	names, err := fsys.ReadDir("/state/runs")
	if err != nil {
		t.Fatal(err)
	}
	want := append(slices.Clone(foreign), "20261122-120002-0002.json", "20261122-120003-0003.json")
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("left: %q, want %q", names, want)
	}
	if ids, err := s.List(); err != nil ||
		!slices.Equal(ids, []string{"20261122-120003-0003", "20261122-120002-0002"}) {
		t.Errorf("listed: %q, %v", ids, err)
	}
}

// TestClockSetBack checks that a run does not remove itself at its end if a wrong clock makes it
// the oldest.
func TestClockSetBack(t *testing.T) {
	s := filled(t, durable.NewMem(), 2, 2)
	r := s.Begin(NewID(noon.Add(-time.Hour), 1), time.Now)
	if err := r.Finish(func() ([]byte, error) { return []byte("{}"), nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(r.ID); err != nil {
		t.Error(err)
	}
}

// TestRead checks the different errors for a missing run, a wrong name, a directory and a file that
// is too large.
func TestRead(t *testing.T) {
	fsys := durable.NewMem()
	s := filled(t, fsys, 0, 1)
	if b, err := s.Read("20261122-120000-0000"); err != nil || string(b) != "{0}" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := s.Read("../secret"); !errors.Is(err, ErrNoRun) {
		t.Errorf("outside of the store: %v", err)
	}
	if _, err := s.Read("20261122-120000-0001"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not there: %v", err)
	}
	if _, err := s.ReadFile("/state/runs"); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
	if err := durable.Replace(fsys, "/state/huge", make([]byte, MaxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReadFile("/state/huge"); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if err := s.Save("../secret", nil); err == nil {
		t.Error("saved outside of the store")
	}
}

// TestPowerLoss checks that after a power loss at any time each saved run is complete, and the one
// being saved has its last or its previous state.
func TestPowerLoss(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		mem := durable.NewMem()
		if err := durable.MkdirAll(mem, "/state", 0o755); err != nil {
			t.Fatal(err)
		}
		var clones []*durable.Mem
		var saved []int // number of completed saves at each clone
		done := 0
		fsys := durable.NewFaulty(mem, func(durable.Op) error {
			clones, saved = append(clones, mem.CrashClone(random.Float64(), random)), append(saved, done)
			return nil
		})
		s := In(fsys, "/state", Tunes, 0)
		id := NewID(noon, 7)
		for i := range 3 {
			if err := s.Save(id, []byte(strings.Repeat(fmt.Sprint(i), 5000))); err != nil {
				t.Fatal(err)
			}
			done++
		}
		for i, clone := range clones {
			b, err := In(clone, "/state", Tunes, 0).Read(id)
			if saved[i] == 0 && errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil || len(b) != 5000 || strings.Trim(string(b), string(b[0])) != "" ||
				int(b[0]-'0') < saved[i]-1 {
				t.Fatalf("after %d saves the file holds %d bytes, %v", saved[i], len(b), err)
			}
		}
	}
}

// TestFaults checks that any failing operation yields an error with its subject, and that the
// previously saved state remains readable.
func TestFaults(t *testing.T) {
	mem := durable.NewMem()
	s := filled(t, mem, 0, 1)
	for n := 0; ; n++ {
		operations := 0
		faulty := durable.NewFaulty(mem, func(op durable.Op) error {
			operations = op.N + 1
			return durable.FailAt(n, syscall.ENOSPC)(op)
		})
		err := In(faulty, "/state", Tunes, 0).Save("20261122-120000-0000", []byte("{0}"))
		if operations <= n {
			break
		}
		if err != nil && (!errors.Is(err, syscall.ENOSPC) ||
			!strings.HasPrefix(err.Error(), "save run 20261122-120000-0000: ")) {
			t.Errorf("operation %d: %v", n, err)
		}
		if b, err := s.Read("20261122-120000-0000"); err != nil || string(b) != "{0}" {
			t.Fatalf("operation %d: %q, %v", n, b, err)
		}
	}
}

// TestRecorder checks that checkpoints are rare, never fail the run, and that the final state is
// always stored.
func TestRecorder(t *testing.T) {
	mem := durable.NewMem()
	if err := durable.MkdirAll(mem, "/state", 0o755); err != nil {
		t.Fatal(err)
	}
	full := false
	fsys := durable.NewFaulty(mem, func(op durable.Op) error {
		if full && op.Kind.Grows() {
			return syscall.ENOSPC
		}
		return nil
	})
	now, made := noon, 0
	document := func() ([]byte, error) { made++; return fmt.Append(nil, made), nil }
	r := In(fsys, "/state", Tunes, 2).Begin(NewID(noon, 1), func() time.Time { return now })
	for range 100 {
		r.Checkpoint(document)
		now = now.Add(100 * time.Millisecond)
	}
	if made != 5 {
		t.Errorf("%d checkpoints in 10 s", made)
	}
	full = true
	now = now.Add(checkpointEvery)
	r.Checkpoint(document)
	if err := r.Finish(document); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	if b, err := In(mem, "/state", Tunes, 0).Read(r.ID); err != nil || string(b) != "5" {
		t.Errorf("the stored state: %q, %v", b, err)
	}
	full = false
	if err := r.Finish(document); err != nil {
		t.Error(err)
	}
	if b, err := In(mem, "/state", Tunes, 0).Read(r.ID); err != nil || string(b) != fmt.Sprint(made) {
		t.Errorf("the end: %q, %v", b, err)
	}
	broken := errors.New("no document")
	if err := r.Finish(func() ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("a document function that fails: %v", err)
	}
}

// FuzzFind checks that no name leads out of the store or causes a panic, and that every result is
// in the list.
func FuzzFind(f *testing.F) {
	for _, seed := range []string{"last", "", "2026", "20261122-120000-0000", "../x", "20261122-120000-0000.json",
		"\x00", "20261122-12000-"} {
		f.Add(seed)
	}
	mem := durable.NewMem()
	s := In(mem, "/state", Tunes, 0)
	for i := range 3 {
		if err := s.Save(NewID(noon, uint16(i)), []byte("{}")); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, name string) {
		id, err := s.Find(name)
		if err == nil {
			if ids, _ := s.List(); !slices.Contains(ids, id) {
				t.Errorf("%q found %q, which is not stored", name, id)
			}
		}
		if _, err := s.Read(name); err == nil && !Name(name) {
			t.Errorf("%q was read", name)
		}
	})
}
