package journal_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

func TestRecover(t *testing.T) {
	setUp := func(t *testing.T, mode journal.Mode) (*durable.Mem, *knobs, *clock) {
		fsys, k, c := durable.NewMem(), host(), &clock{}
		o := options(fsys, k, c)
		o.Mode = mode
		j := open(t, o)
		apply(t, j, journal.Request{For: time.Minute}, rmem, "B", mtu, "9000")
		if err := j.Commit(t.Context(), "2"); err != nil {
			t.Fatal(err)
		}
		if out, err := j.Recover(t.Context()); err != nil || len(out) != 0 {
			t.Fatalf("recovery under a living writer: %+v, %v", out, err)
		}
		j.Close()
		return fsys, k, c
	}
	// recover recovers twice, and returns the notes of the first time.
	recoverTwice := func(t *testing.T, o journal.Options) []string {
		j := open(t, o)
		defer j.Close()
		outcomes, err := j.Recover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if again, err := j.Recover(t.Context()); err != nil || len(again) != 0 {
			t.Fatalf("second recovery: %+v, %v", again, err)
		}
		notes := []string{}
		for _, o := range outcomes {
			notes = append(notes, o.Change.ID+" "+o.Change.Note)
		}
		return notes
	}
	check := func(t *testing.T, notes []string, k *knobs, wantRmem, wantMTU knob.Value, want ...string) {
		t.Helper()
		if diff := cmp.Diff(append([]string{}, want...), notes); diff != "" {
			t.Error(diff)
		}
		if k.values[rmem] != wantRmem || k.values[mtu] != wantMTU {
			t.Error(k.values)
		}
	}
	t.Run("lease without owner", func(t *testing.T) {
		fsys, k, c := setUp(t, journal.Lease)
		check(t, recoverTwice(t, options(fsys, k, c)), k, "A", "9000", "0001 undone by recovery: writer died")
	})
	t.Run("before the deadline", func(t *testing.T) {
		fsys, k, c := setUp(t, journal.Deadline)
		c.advance(time.Minute - 1)
		check(t, recoverTwice(t, options(fsys, k, c)), k, "B", "9000")
	})
	t.Run("after the deadline", func(t *testing.T) {
		fsys, k, c := setUp(t, journal.Deadline)
		c.advance(time.Minute)
		j := open(t, options(fsys, k, c))
		if err := j.Commit(t.Context(), "1"); !errors.Is(err, journal.ErrExpired) {
			t.Errorf("commit: %v", err)
		}
		j.Close()
		check(t, recoverTwice(t, options(fsys, k, c)), k, "A", "9000", "0001 undone by recovery: deadline passed")
	})
	t.Run("another boot", func(t *testing.T) {
		fsys, k, c := setUp(t, journal.Lease)
		k.set(rmem, "boot default")
		o := options(fsys, k, c)
		o.BootID = "boot-2"
		writes := k.writes
		const note = "the host was restarted, which put the old value back"
		check(t, recoverTwice(t, o), k, "boot default", "9000", "0002 "+note, "0001 "+note)
		if k.writes != writes {
			t.Error("a knob was written")
		}
	})
	t.Run("knob is gone", func(t *testing.T) {
		fsys, k, c := setUp(t, journal.Lease)
		delete(k.values, rmem)
		notes := recoverTwice(t, options(fsys, k, c))
		if diff := cmp.Diff([]string{"0001 undone by recovery: writer died; the knob no longer exists"},
			notes); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("no permission", func(t *testing.T) {
		fsys, k, c := setUp(t, journal.Lease)
		k.before = func(op string, _ knobID) error {
			if op == "write" {
				return fs.ErrPermission
			}
			return nil
		}
		j := open(t, options(fsys, k, c))
		outcomes, err := j.Recover(t.Context())
		if !errors.Is(err, fs.ErrPermission) || len(outcomes) != 1 || outcomes[0].Error == "" ||
			outcomes[0].Change.State != journal.Trial {
			t.Errorf("%+v, %v", outcomes, err)
		}
		j.Close()
		k.before = nil // As root, next time.
		check(t, recoverTwice(t, options(fsys, k, c)), k, "A", "9000",
			"0001 undone by recovery: writer died; finished by recovery")
	})
}

// TestInterruptedWrite: between the intent and its end only the knob can show what happened.
func TestInterruptedWrite(t *testing.T) {
	for name, test := range map[string]struct {
		holds   knob.Value
		after   time.Duration
		want    knob.Value
		foreign knob.Value
		note    string
	}{
		"not written": {"256", time.Hour, "256", "", "undone by recovery: interrupted half way"},
		"written":     {"1000", time.Hour, "256", "", "undone by recovery: interrupted half way"},
		"rounded": {"1024", time.Second, "256", "",
			"undone by recovery: interrupted half way; it held 1024, neither 256 nor 1000, and was treated as " +
				"the driver's rounding of our write"},
		"of another clock": {"1024", -time.Minute, "1024", "1024",
			"undone by recovery: interrupted half way; changed by another program to 1024 and left alone"},
		"by whom, so late": {"1024", time.Hour, "1024", "1024",
			"undone by recovery: interrupted half way; changed by another program to 1024 and left alone"},
	} {
		t.Run(name, func(t *testing.T) {
			mem, k, c := durable.NewMem(), host(), &clock{}
			var crashed *durable.Mem
			k.before = func(op string, _ knobID) error {
				if op == "write" {
					crashed = mem.CrashClone(1, nil)
				}
				return nil
			}
			apply(t, open(t, options(mem, k, c)), journal.Request{}, ring, "1000")
			k.before = nil
			k.set(ring, test.holds)
			c.advance(test.after)
			j := open(t, options(crashed, k, c))
			if _, err := j.Apply(t.Context(), journal.Request{}, settings(ring, "512")...); !errors.Is(err,
				journal.ErrNeedsRecovery) {
				t.Errorf("apply before recovery: %v", err)
			}
			outcomes, err := j.Recover(t.Context())
			if err != nil || len(outcomes) != 1 || outcomes[0].Foreign != test.foreign ||
				outcomes[0].Change.Note != test.note {
				t.Errorf("%+v, %v", outcomes, err)
			}
			if k.values[ring] != test.want {
				t.Errorf("holds %s", k.values[ring])
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	here := journal.Identity{Namespace: "net:[1]", Device: "2"}
	for name, test := range map[string]struct {
		now      journal.Identity
		restored bool
		note     string
		err      error
	}{
		"same":      {here, true, "undone", nil},
		"not known": {journal.Identity{}, true, "undone", nil},
		"other interface": {journal.Identity{Namespace: "net:[1]", Device: "7"}, false,
			"undone; the interface is gone and another one has its name: left alone", nil},
		"other namespace":  {journal.Identity{Namespace: "net:[9]", Device: "2"}, false, "", journal.ErrOtherNamespace},
		"interface is not": {journal.Identity{Namespace: "net:[1]"}, true, "undone", nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := host()
			o := options(durable.NewMem(), k, &clock{})
			found := here
			o.Identify = func(knob.ID) journal.Identity { return found }
			j := open(t, o)
			apply(t, j, journal.Request{}, mtu, "9000")
			found = test.now
			out, err := j.Undo(t.Context(), "1")
			if !errors.Is(err, test.err) || out[0].Restored != test.restored || out[0].Change.Note != test.note {
				t.Errorf("%+v, %v", out, err)
			}
			if (k.values[mtu] == "1500") != test.restored {
				t.Error(k.values)
			}
		})
	}
}

// TestOneNameManyKnobs: the same name in two network namespaces, and on an interface that came
// after another, are different knobs.
func TestOneNameManyKnobs(t *testing.T) {
	mem := durable.NewMem()
	at := func(k *knobs, here journal.Identity) *journal.Journal {
		o := options(mem, k, &clock{})
		o.Identify = func(knob.ID) journal.Identity { return here }
		return open(t, o)
	}
	inside, outside := host(), host()
	outside.values[mtu] = "1400"
	a, b := journal.Identity{Namespace: "net:[1]", Device: "2"}, journal.Identity{Namespace: "net:[2]", Device: "2"}
	j := at(inside, a)
	apply(t, j, journal.Request{}, mtu, "9000")
	j.Close()

	j = at(outside, b)
	if out, err := j.Recover(t.Context()); err != nil || len(out) != 0 {
		t.Errorf("recovery elsewhere: %+v, %v", out, err)
	}
	if c := apply(t, j, journal.Request{}, mtu, "8000")[0]; c.Original != "1400" || j.Originals()[mtu] != "1400" {
		t.Errorf("%+v, %v", c, j.Originals())
	}
	if out, err := j.Undo(t.Context(), "1"); !errors.Is(err, journal.ErrOtherNamespace) ||
		outside.values[mtu] != "8000" {
		t.Errorf("%+v, %v", out, err)
	}
	j.Close()

	j = at(inside, a)
	if out, err := j.Recover(t.Context()); err != nil || len(out) != 1 || inside.values[mtu] != "1500" ||
		!out[0].Restored {
		t.Errorf("%+v, %v", out, err)
	}
	// The interface is replaced by another of its name while a change stands.
	apply(t, j, journal.Request{}, mtu, "9000")
	j.Close()
	inside.set(mtu, "1500")
	a.Device = "7"
	j = at(inside, a)
	apply(t, j, journal.Request{}, mtu, "3000")
	out, err := j.Undo(t.Context(), "3")
	if err != nil || out[0].Restored || inside.values[mtu] != "3000" ||
		!strings.Contains(out[0].Change.Note, "another one has its name") {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := j.Undo(t.Context(), "4"); err != nil || !out[0].Restored || inside.values[mtu] != "1500" {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestNamespaceIsDestroyed: what was changed in a network namespace that is gone is over, committed
// or not; nothing is written for it.
func TestNamespaceIsDestroyed(t *testing.T) {
	mem, k := durable.NewMem(), host()
	o := options(mem, k, &clock{})
	here, gone := journal.Identity{Namespace: "net:[1]", Device: "2"}, false
	o.Identify = func(id knob.ID) journal.Identity {
		if id == rmem {
			return journal.Identity{Namespace: here.Namespace}
		}
		return here
	}
	o.NamespaceGone = func(name string) bool { return gone && name == "net:[1]" }
	j := open(t, o)
	apply(t, j, journal.Request{}, mtu, "9000", rmem, "B", ring, "512")
	if err := j.Commit(t.Context(), "2"); err != nil {
		t.Fatal(err)
	}
	j.Close()
	here.Namespace = "net:[2]"
	j = open(t, o)
	if out, err := j.Recover(t.Context()); err != nil || len(out) != 0 {
		t.Errorf("while a process is inside: %+v, %v", out, err)
	}
	if _, err := j.UndoAll(t.Context()); !errors.Is(err, journal.ErrOtherNamespace) {
		t.Errorf("undo while a process is inside: %v", err)
	}
	gone = true
	writes := k.writes
	out, err := j.Recover(t.Context())
	if err != nil || len(out) != 3 || k.writes != writes {
		t.Errorf("%+v, %v, %d writes", out, err, k.writes-writes)
	}
	for _, o := range out {
		if o.Restored || o.Change.State != journal.Undone ||
			!strings.HasPrefix(o.Change.Note, "the network namespace is gone, and the setting with it") ||
			strings.Contains(o.Change.Note, "where the card is now") != (o.Change.Knob != rmem) {
			t.Errorf("%+v", o)
		}
	}
	if out, err := j.UndoAll(t.Context()); err != nil || len(out) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestCommitNoticesForeignValues: a trial whose knob another program has set since is not
// committed, and none of those with it.
func TestCommitNoticesForeignValues(t *testing.T) {
	mem, k := durable.NewMem(), host()
	j := open(t, options(mem, k, &clock{}))
	apply(t, j, journal.Request{}, rmem, "B", mtu, "9000")
	k.set(mtu, "1400")
	err := j.Commit(t.Context(), "1", "2")
	if !errors.Is(err, journal.ErrForeign) ||
		err.Error() != "commit change 0002 of link:eth0/mtu: nothing was committed: changed by another program since: "+
			"it holds 1400, not 9000" {
		t.Error(err)
	}
	for _, c := range j.Changes() {
		if c.State != journal.Trial {
			t.Errorf("%+v", c)
		}
	}
	if err := j.Commit(t.Context(), "1"); err != nil {
		t.Errorf("the other one: %v", err)
	}
	// A change on top hides what is below it, and is our own.
	apply(t, j, journal.Request{}, rmem, "C")
	apply(t, j, journal.Request{}, rmem, "D")
	if err := j.Commit(t.Context(), "3"); err != nil {
		t.Errorf("below another: %v", err)
	}
	out, err := j.UndoAll(t.Context())
	if err != nil || len(out) != 4 || k.values[rmem] != "A" || k.values[mtu] != "1400" {
		t.Errorf("%+v, %v, %v", out, err, k.values)
	}
	// The interface is gone: it cannot be known what would stay.
	apply(t, j, journal.Request{}, ring, "512")
	delete(k.values, ring)
	if err := j.Commit(t.Context(), "5"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a knob that is gone: %v", err)
	}
}

// TestWallClockJumps: deadlines are those of CLOCK_BOOTTIME. Setting the date ten years on or back
// neither ends nor lengthens a trial.
func TestWallClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"on": 87660 * time.Hour, "back": -87660 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			mem, k, c, now := durable.NewMem(), host(), &clock{}, dayOne()
			o := options(mem, k, c)
			o.Mode, o.Now = journal.Deadline, func() time.Time { return now }
			j := open(t, o)
			apply(t, j, journal.Request{For: time.Minute}, rmem, "B", mtu, "9000")
			now = now.Add(jump)
			c.advance(time.Minute - 1)
			if out, err := j.Recover(t.Context()); err != nil || len(out) != 0 {
				t.Errorf("ended by the date: %+v, %v", out, err)
			}
			if err := j.Commit(t.Context(), "1"); err != nil {
				t.Errorf("commit in time: %v", err)
			}
			c.advance(1)
			if out, err := j.Recover(t.Context()); err != nil || len(out) != 1 || k.values[mtu] != "1500" ||
				k.values[rmem] != "B" {
				t.Errorf("not ended in spite of its deadline: %+v, %v, %v", out, err, k.values)
			}
		})
	}
}

func TestCorruptJournalStops(t *testing.T) {
	good := durable.NewMem()
	k := host()
	j := open(t, options(good, k, &clock{}))
	apply(t, j, journal.Request{}, rmem, "B")
	j.Close()
	records, _, err := durable.ReadMarkedLog(good, "/state/journal.log")
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][][]byte{
		"not JSON":         {[]byte("hello")},
		"newer version":    {[]byte(`{"kind":"teleport","id":"0001"}`)},
		"without its past": records[1:],
		"twice":            append(slices.Clone(records), records...),
		"without change":   {[]byte(`{"kind":"intent"}`)},
		"odd id":           {[]byte(`{"kind":"intent","entry":{"id":"1"}}`)},
		"commit of none":   {[]byte(`{"kind":"commit","ids":["0001"]}`)},
		"odd heir":         append(slices.Clone(records), []byte(`{"kind":"undone","id":"0001","heir":"0001"}`)),
	} {
		t.Run(name, func(t *testing.T) {
			fsys := durable.NewMem()
			if err := durable.MkdirAll(fsys, "/state", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := durable.RewriteMarkedLog(fsys, "/state/journal.log", bad); err != nil {
				t.Fatal(err)
			}
			_, openErr := journal.Open(options(fsys, k, &clock{}))
			_, historyErr := journal.History(fsys, "/state")
			for _, err := range []error{openErr, historyErr} {
				var format *journal.FormatError
				if !errors.Is(err, journal.ErrCorrupt) || !errors.As(err, &format) ||
					format.Path != filepath.Join("/state", "journal.log") {
					t.Error(err)
				}
			}
			lock, err := fsys.Lock("/state/lock")
			if err != nil {
				t.Fatalf("lock was kept: %v", err)
			}
			lock.Close()
		})
	}
}

// TestGrowthIsBounded: an old journal is rewritten at Open, and forgets only what is over.
func TestGrowthIsBounded(t *testing.T) {
	fsys, k, c := durable.NewMem(), host(), &clock{}
	j := open(t, options(fsys, k, c))
	kept := apply(t, j, journal.Request{Reason: "first"}, mtu, "9000")[0]
	if err := j.Commit(t.Context(), kept.ID); err != nil {
		t.Fatal(err)
	}
	apply(t, j, journal.Request{}, ring, "512")
	if _, err := j.Undo(t.Context(), "2"); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("because ", 200)
	size := func() int64 {
		info, err := fsys.Stat("/state/journal.log")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	biggest := int64(0)
	for range 4 {
		for range 150 {
			change := apply(t, j, journal.Request{Reason: long}, rmem, "B")[0]
			if _, err := j.Undo(t.Context(), change.ID); err != nil {
				t.Fatal(err)
			}
		}
		biggest = max(biggest, size())
		j.Close()
		j = open(t, options(fsys, k, c))
	}
	if size() > 512<<10 || biggest > 1<<20 {
		t.Errorf("%d bytes, at most %d", size(), biggest)
	}
	changes := j.Changes()
	if len(changes) < 100 || changes[0].ID != kept.ID || changes[0].State != journal.Committed ||
		changes[0].Reason != "first" {
		t.Fatalf("%d changes, first %+v", len(changes), changes[0])
	}
	next := apply(t, j, journal.Request{}, rmem, "C")[0]
	if next.ID != "0603" || next.Original != "A" {
		t.Errorf("%+v", next)
	}
	k.set(ring, "300")
	if c := apply(t, j, journal.Request{}, ring, "512")[0]; c.Original != "256" || c.From != "300" {
		t.Errorf("%+v", c) // Its first change was forgotten long ago.
	}
	if _, err := j.UndoAll(t.Context()); err != nil || k.values[mtu] != "1500" {
		t.Errorf("%v, %v", k.values, err)
	}
}
