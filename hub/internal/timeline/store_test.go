package timeline

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// at returns a time some seconds after noon.
func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func event(id string, seconds int) Event {
	return Event{ID: id, Kind: Change, Time: at(seconds), Host: "a", Subject: "eth0", Title: "title of " + id}
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = "/hub/timeline"
	}
	if o.Now == nil {
		o.Now = func() time.Time { return noon }
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func put(t *testing.T, s *Store, e Event, document string) {
	t.Helper()
	var doc []byte
	if document != "" {
		doc = []byte(document)
	}
	if err := s.Put(e, doc); err != nil {
		t.Fatal(err)
	}
}

func ids(events []Event) string {
	var all []string
	for _, e := range events {
		all = append(all, e.ID)
	}
	return strings.Join(all, " ")
}

func TestPutReplaces(t *testing.T) {
	mem := durable.NewMem()
	s := open(t, Options{FS: mem})
	trial := event("0001", 1)
	trial.State = "trial"
	put(t, s, trial, "first")
	put(t, s, event("0002", 2), "")
	committed := trial
	committed.State = "committed"
	put(t, s, committed, "") // keeps its document
	moved := event("0002", 0)
	put(t, s, moved, "second")

	check := func(s *Store) {
		t.Helper()
		committed.Document, moved.Document = true, true
		events, truncated := s.Between(time.Time{}, time.Time{}, Query{})
		if diff := cmp.Diff([]Event{moved, committed}, events); diff != "" || truncated {
			t.Errorf("events: %s, truncated %v", diff, truncated)
		}
		if e, ok := s.Get("0001"); !ok || e != committed {
			t.Errorf("got %+v, %v", e, ok)
		}
		for id, want := range map[string]string{"0001": "first", "0002": "second"} {
			if doc, err := s.Document(id); err != nil || string(doc) != want {
				t.Errorf("document of %s: %q, %v", id, doc, err)
			}
		}
		for _, id := range []string{"", "0003", "../lock", "0001.json", "."} {
			if _, err := s.Document(id); !errors.Is(err, ErrNoDocument) {
				t.Errorf("document %q: %v", id, err)
			}
		}
	}
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check(s) // reading goes on
	if err := s.Put(event("0004", 4), nil); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("put after close: %v", err)
	}
	check(open(t, Options{FS: mem}))
	if _, err := Open(Options{Dir: "/hub/timeline", FS: mem}); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("a second writer: %v", err)
	}
}

func TestRefused(t *testing.T) {
	mem := durable.NewMem()
	s := open(t, Options{FS: mem})
	for _, id := range []string{"", ".", "..", "../x", "a/b", `a\b`, "a b", "ä", "a\x00", strings.Repeat("x", 129),
		".hidden", "C:x"} {
		e := event("x", 0)
		e.ID = id
		if err := s.Put(e, []byte("doc")); !errors.Is(err, ErrBadID) {
			t.Errorf("id %q: %v", id, err)
		}
	}
	for what, e := range map[string]Event{
		"no kind":  {ID: "x", Time: noon},
		"no time":  {ID: "x", Kind: Link},
		"year 0":   {ID: "x", Kind: Link, Time: time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)},
		"far away": {ID: "x", Kind: Link, Time: noon, End: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if err := s.Put(e, nil); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
	if names, err := mem.ReadDir("/hub/timeline"); err != nil || !slices.Equal(names, []string{"documents", "lock"}) {
		t.Errorf("left behind: %q, %v", names, err)
	}
	if err := s.Put(event("big", 0), make([]byte, MaxDocument+1)); !errors.Is(err, ErrDocumentTooLarge) {
		t.Errorf("document too large: %v", err)
	}
	if e, ok := s.Get("big"); !ok || e.Document {
		t.Errorf("the event without it: %+v, %v", e, ok)
	}
	long := event("text", 0)
	long.Title = strings.Repeat("ä", 2*maxText) + "\n\x1b[31m"
	long.Subject = "eth0\n\u2028\x1b[2J\xff"
	long.End, long.Open = at(-5), true
	put(t, s, long, "")
	if e, _ := s.Get("text"); len(e.Title) > maxText || e.Subject != "eth0   [2J\uFFFD" ||
		!e.End.Equal(e.Time) || e.Open {
		t.Errorf("stored as %+v", e)
	}
}

// TestCrash cuts the power before every operation on the file system: every event that was put is
// there, and the one under way is in its old or new state.
func TestCrash(t *testing.T) {
	for _, keep := range []float64{0, 0.3, 1} {
		t.Run(fmt.Sprint("keep ", keep), func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, uint64(keep*10)))
			mem := durable.NewMem()
			// The states that each event may have after a crash now: how often it was put, at least
			// and at most.
			var least, most [12]int
			check := func() {
				clone := mem.CrashClone(keep, random)
				s, err := Open(Options{Dir: "/hub/timeline", FS: clone, MaxBytes: 64 << 10,
					Now: func() time.Time { return noon }})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if w := s.Status().Warnings; len(w) > 0 {
					t.Fatalf("warnings: %q", w)
				}
				for i := range most {
					e, _ := s.Get(fmt.Sprint("e", i))
					n := 0
					_, _ = fmt.Sscan(e.State, &n)
					if n < least[i] || n > most[i] {
						t.Fatalf("event %d was put %d to %d times, is %+v", i, least[i], most[i], e)
					}
					doc, err := s.Document(fmt.Sprint("e", i))
					if least[i] > 0 && (err != nil || len(doc) == 0 ||
						strings.Trim(string(doc), string(doc[0])) != "" || len(doc) < 1000) {
						t.Fatalf("document of event %d, put %d times: %.20q, %v", i, least[i], doc, err)
					}
				}
				if err := s.Put(event("after", 0), nil); err != nil {
					t.Fatal(err)
				}
			}
			operations, compacted := 0, false
			fsys := durable.NewFaulty(mem, func(op durable.Op) error {
				operations++
				compacted = compacted || op.Kind == durable.OpRemove &&
					strings.HasSuffix(op.Path, "events-00000001.log")
				// Every operation at first, then a third: each reopening reads the whole store.
				if operations < 500 || random.IntN(3) == 0 {
					check()
				}
				return nil
			})
			s, err := Open(Options{Dir: "/hub/timeline", FS: fsys, MaxBytes: 64 << 10,
				Now: func() time.Time { return noon }})
			if err != nil {
				t.Fatal(err)
			}
			for range 250 {
				i := random.IntN(len(most))
				most[i]++
				e := event(fmt.Sprint("e", i), i)
				e.State, e.Title = fmt.Sprint(most[i]), strings.Repeat("long enough to spread over sectors ", 20)
				put(t, s, e, strings.Repeat(fmt.Sprint(most[i]%10), 1000+random.IntN(50)))
				least[i] = most[i]
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if !compacted {
				t.Error("no segment was ever removed")
			}
		})
	}
}

// TestNothingComesBack checks that an event which ended and was dropped may reappear after power
// loss, but never as an open one.
func TestNothingComesBack(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	mem, now := durable.NewMem(), noon
	o := Options{Dir: "/hub/timeline", MaxBytes: 64 << 10, KeepFor: time.Hour, Now: func() time.Time { return now }}
	ended, removed := false, 0
	o.FS = durable.NewFaulty(mem, func(op durable.Op) error {
		if !ended || op.Kind != durable.OpRemove && op.Kind != durable.OpSyncDir {
			return nil
		}
		removed++
		for range 4 {
			after := o
			after.FS = mem.CrashClone(0.5, random)
			after.KeepFor = 0
			s, err := Open(after)
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := s.Get("x"); ok && e.Open {
				t.Fatal("is open again")
			}
			s.Close()
		}
		return nil
	})
	s := open(t, o)
	x := event("x", 0)
	x.Open = true
	put(t, s, x, "")
	fill := func(from, to int) {
		for i := from; i < to; i++ {
			put(t, s, event(fmt.Sprint("e", i), 7200+i), "")
		}
	}
	fill(0, 100)
	x.End = at(1)
	put(t, s, x, "")
	ended = true
	now = noon.Add(2 * time.Hour)
	fill(100, 500)
	if _, ok := s.Get("x"); ok || removed < 10 {
		t.Errorf("still there: %v; %d removals", ok, removed)
	}
}

// TestFullDisk checks that Put reports what the disk refuses, that the event stays in memory and
// reaches the disk when there is room, and that nothing is damaged in between.
func TestFullDisk(t *testing.T) {
	for _, fail := range []struct {
		name string
		err  error
		when func(durable.Op) bool
	}{
		{"full", syscall.ENOSPC, func(op durable.Op) bool { return op.Kind.Grows() }},
		{"no room to write", syscall.ENOSPC, func(op durable.Op) bool { return op.Kind == durable.OpWrite }},
		{"sync fails", syscall.EIO, func(op durable.Op) bool { return op.Kind == durable.OpSync }},
		{"read only", syscall.EROFS,
			func(op durable.Op) bool { return op.Kind != durable.OpReadFile && op.Kind != durable.OpStat }},
	} {
		t.Run(fail.name, func(t *testing.T) {
			mem := durable.NewMem()
			failing := false
			fsys := durable.NewFaulty(mem, func(op durable.Op) error {
				if failing && fail.when(op) {
					return fail.err
				}
				return nil
			})
			s := open(t, Options{FS: fsys})
			const maxWaiting = 100
			s.maxWaiting = maxWaiting
			for i := range 10 {
				put(t, s, event(fmt.Sprint("before", i), i), "document")
			}
			changed := event("before3", 3)
			failing = true
			changed.State = "undone"
			if err := s.Put(changed, []byte("another document")); !errors.Is(err, fail.err) {
				t.Errorf("put: %v", err)
			}
			for i := range maxWaiting + 20 {
				if err := s.Put(event(fmt.Sprint("during", i), 100+i), []byte("document")); !errors.Is(err, fail.err) {
					t.Fatalf("put: %v", err)
				}
			}
			if st := s.Status(); st.Waiting != maxWaiting || st.Err == nil || st.Events != 10+maxWaiting-1 {
				t.Errorf("status %+v", st)
			}
			if e, _ := s.Get("before3"); e.State != "undone" || !e.Document {
				t.Errorf("what was changed: %+v", e)
			}
			if e, ok := s.Get("during119"); !ok || e.Document {
				t.Errorf("the newest: %+v, %v", e, ok)
			}
			if _, ok := s.Get("during19"); ok {
				t.Error("the oldest that waits is still there")
			}
			// Power loss now: the earlier events are still there.
			after := open(t, Options{FS: mem.CrashClone(0.5, rand.New(rand.NewPCG(1, 1)))})
			for i := range 10 {
				id := fmt.Sprint("before", i)
				if doc, err := after.Document(id); err != nil || string(doc) != "document" {
					t.Errorf("%s: %q, %v", id, doc, err)
				}
			}
			failing = false
			put(t, s, event("end", 5000), "document")
			if st := s.Status(); st.Waiting != 0 || st.Err != nil {
				t.Errorf("status %+v", st)
			}
			want, _ := s.Between(time.Time{}, time.Time{}, Query{Limit: MaxLimit})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again := open(t, Options{FS: mem})
			got, _ := again.Between(time.Time{}, time.Time{}, Query{Limit: MaxLimit})
			if diff := cmp.Diff(want, got); diff != "" || len(again.Status().Warnings) > 0 {
				t.Errorf("read again: %s, %q", diff, again.Status().Warnings)
			}
			names, err := mem.ReadDir("/hub/timeline")
			if err != nil || len(names) > 6 {
				t.Errorf("a disk that refuses again and again has collected %d files, %v", len(names), err)
			}
		})
	}
}

// TestAppendsRefused uses a disk that creates files but refuses to append: the store writes whole
// files, and collects no empty ones.
func TestAppendsRefused(t *testing.T) {
	mem := durable.NewMem()
	s := open(t, Options{FS: durable.NewFaulty(mem, func(op durable.Op) error {
		if op.Kind == durable.OpWrite && strings.HasSuffix(op.Path, ".log") {
			return syscall.ENOSPC
		}
		return nil
	})})
	for i := range maxAppended {
		if err := s.Put(event(fmt.Sprint("e", i), i), nil); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	if names, err := mem.ReadDir("/hub/timeline"); err != nil || len(names) > 2 {
		t.Errorf("collected: %q, %v", names, err)
	}
	put(t, s, event("more", 100), "")
	if got, _ := open(t, Options{FS: mem.CrashClone(0, nil)}).Between(time.Time{}, time.Time{},
		Query{}); len(got) != maxAppended+1 {
		t.Errorf("%d events after power loss", len(got))
	}
}

// TestBounds checks the bounds of age, bytes and number, and that open events are dropped last.
func TestBounds(t *testing.T) {
	t.Run("age", func(t *testing.T) {
		mem, now := durable.NewMem(), noon
		s := open(t, Options{FS: mem, KeepFor: 24 * time.Hour, Now: func() time.Time { return now }})
		old, lasting, long := event("old", -80_000), event("lasting", -80_000), event("long", -80_000)
		lasting.Open, long.End = true, at(0)
		for _, e := range []Event{old, lasting, long} {
			put(t, s, e, "document")
		}
		now = noon.Add(2 * time.Hour)
		put(t, s, event("new", 7200), "")
		want := "lasting long new"
		if got, _ := s.Between(time.Time{}, time.Time{}, Query{}); ids(got) != want {
			t.Errorf("left: %s", ids(got))
		}
		if names, err := mem.ReadDir("/hub/timeline/documents"); err != nil ||
			!slices.Equal(names, []string{"lasting.json", "long.json"}) {
			t.Errorf("documents left: %q, %v", names, err)
		}
		s.Close()
		if got, _ := open(t, Options{FS: mem, KeepFor: 24 * time.Hour, Now: func() time.Time { return now }}).Between(
			time.Time{}, time.Time{}, Query{}); ids(got) != want {
			t.Errorf("left after a restart: %s", ids(got))
		}
	})
	t.Run("a clock ten years ahead", func(t *testing.T) {
		now := noon
		s := open(t, Options{FS: durable.NewMem(), KeepFor: 24 * time.Hour, Now: func() time.Time { return now }})
		for i := range 20 {
			put(t, s, event(fmt.Sprint("e", i), i), "")
		}
		now = noon.AddDate(10, 0, 0)
		put(t, s, event("gap", 20), "")
		late := event("late", 0)
		late.Time = now
		put(t, s, late, "")
		if n := s.Status().Events; n < 21 {
			t.Errorf("%d events are left", n)
		}
	})
	t.Run("number", func(t *testing.T) {
		s := open(t, Options{FS: durable.NewMem()})
		s.maxEvents = 100
		for i := range 1000 {
			e := event(fmt.Sprint("e", i), i)
			e.Open = i == 3
			put(t, s, e, "")
			if n := s.Status().Events; n > 100 || i >= 100 && n < 98 {
				t.Fatalf("%d events after %d", n, i)
			}
		}
		if got, _ := s.Between(time.Time{}, time.Time{}, Query{}); got[0].ID != "e3" || got[len(got)-1].ID != "e999" {
			t.Errorf("left: %s", ids(got))
		}
	})
	t.Run("bytes", func(t *testing.T) {
		mem := durable.NewMem()
		const most = 256 << 10
		s := open(t, Options{FS: mem, MaxBytes: most})
		random := rand.New(rand.NewPCG(5, 5))
		size := func() (n int64) {
			for _, dir := range []string{"/hub/timeline", "/hub/timeline/documents"} {
				names, err := mem.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range names {
					info, err := mem.Stat(filepath.Join(dir, name))
					if err != nil {
						t.Fatal(err)
					}
					if !info.IsDir() && name != "lock" {
						n += info.Size()
					}
				}
			}
			return n
		}
		for i := range 3000 {
			e := event(fmt.Sprint("e", i), i)
			if random.IntN(2) == 0 {
				e.ID, e.Time, e.Open = "flickers", noon, true
			}
			document := ""
			if random.IntN(10) == 0 {
				document = strings.Repeat("d", random.IntN(20_000))
			}
			put(t, s, e, document)
			if n := size(); n > most || n != s.Status().Bytes {
				t.Fatalf("%d bytes on disk after %d events, %d counted, %d allowed", n, i, s.Status().Bytes, most)
			}
		}
		got, _ := s.Between(time.Time{}, time.Time{}, Query{})
		if len(got) < 100 || got[0].ID != "flickers" || !strings.HasPrefix(got[len(got)-1].ID, "e29") {
			t.Errorf("left: %d, %s", len(got), ids(got))
		}
	})
}

// TestDamaged checks that a segment with damage that no crash explains loses only its own events,
// and is kept for inspection.
func TestDamaged(t *testing.T) {
	mem := durable.NewMem()
	s := open(t, Options{FS: mem, MaxBytes: 64 << 10})
	for i := range 100 {
		put(t, s, event(fmt.Sprintf("e%03d", i), i), "")
	}
	s.Close()
	path := "/hub/timeline/events-00000001.log"
	data, err := mem.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := durable.Replace(mem, path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, Options{FS: mem, MaxBytes: 64 << 10})
	got, _ := s.Between(time.Time{}, time.Time{}, Query{})
	if w := s.Status().Warnings; len(w) != 1 || !strings.Contains(w[0], "damaged-00000001.log") {
		t.Errorf("warnings: %q", w)
	}
	if len(got) < 20 || len(got) >= 100 || got[len(got)-1].ID != "e099" {
		t.Errorf("left: %s", ids(got))
	}
	if aside, err := mem.ReadFile("/hub/timeline/damaged-00000001.log"); err != nil || !bytes.Equal(aside, data) {
		t.Errorf("put aside: %d bytes, %v", len(aside), err)
	}
	put(t, s, event("e100", 100), "")
}

// TestReadersAndWriter runs them together: every reader finds a whole state that was put.
func TestReadersAndWriter(t *testing.T) {
	s := open(t, Options{FS: durable.NewMem(), MaxBytes: 64 << 10})
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				events, _ := s.Between(time.Time{}, time.Time{}, Query{})
				for _, e := range events {
					if e.State != e.Subject {
						t.Errorf("half an event: %+v", e)
					}
				}
				_ = s.Status()
				if doc, err := s.Document("e1"); err != nil && !errors.Is(err, ErrNoDocument) || err == nil &&
					strings.Trim(string(doc), string(doc[:1])) != "" {
					t.Errorf("document %.20q, %v", doc, err)
				}
			}
		})
	}
	for i := range 2000 {
		e := event(fmt.Sprint("e", i%50), i)
		e.State, e.Subject = fmt.Sprint(i), fmt.Sprint(i)
		put(t, s, e, strings.Repeat(fmt.Sprint(i%10), 100))
	}
	close(done)
	readers.Wait()
}
