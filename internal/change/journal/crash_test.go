package journal_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// values are what the knobs of a host hold.
type values = map[knob.ID]knob.Value

// step is one call of a journal.
type step struct {
	name string
	do   func(context.Context, *journal.Journal) error
	// now is what the knobs hold after the step, safe what they hold once all trials have been
	// taken back.
	now, safe values
}

// script is a life of a journal in which everything happens that can.
func script() []step {
	apply := func(pairs ...string) func(context.Context, *journal.Journal) error {
		return func(ctx context.Context, j *journal.Journal) error {
			_, err := j.Apply(ctx, journal.Request{Reason: strings.Repeat("long enough to spread over sectors ", 20)},
				settings(pairs...)...)
			return err
		}
	}
	undo := func(ids ...string) func(context.Context, *journal.Journal) error {
		return func(ctx context.Context, j *journal.Journal) error {
			_, err := j.Undo(ctx, ids...)
			return err
		}
	}
	commit := func(ids ...string) func(context.Context, *journal.Journal) error {
		return func(ctx context.Context, j *journal.Journal) error { return j.Commit(ctx, ids...) }
	}
	at := func(r, m, g string) values {
		return values{rmem: knob.Value(r), mtu: knob.Value(m), ring: knob.Value(g)}
	}
	return []step{
		{"apply two", apply(rmem, "B", mtu, "9000"), at("B", "9000", "256"), at("A", "1500", "256")},
		{"apply on top", apply(rmem, "C"), at("C", "9000", "256"), at("A", "1500", "256")},
		{"commit the lower", commit("1"), at("C", "9000", "256"), at("B", "1500", "256")},
		{"undo the upper", undo("3"), at("B", "9000", "256"), at("B", "1500", "256")},
		{"apply rounded", apply(ring, "1000"), at("B", "9000", "1024"), at("B", "1500", "256")},
		{"commit two", commit("2", "4"), at("B", "9000", "1024"), at("B", "9000", "1024")},
		{"undo committed", undo("1", "4"), at("A", "9000", "256"), at("A", "9000", "256")},
		{"stack one", apply(rmem, "D"), at("D", "9000", "256"), at("A", "9000", "256")},
		{"stack two", apply(rmem, "E"), at("E", "9000", "256"), at("A", "9000", "256")},
		{"undo from the middle", undo("5"), at("E", "9000", "256"), at("A", "9000", "256")},
		{"undo all", func(ctx context.Context, j *journal.Journal) error {
			_, err := j.UndoAll(ctx)
			return err
		}, at("A", "1500", "256"), at("A", "1500", "256")},
	}
}

// life is a script and the host on which it is played.
type life struct {
	host   func() *knobs
	script func() []step
}

// lifes are all that the tests of crashes play.
func lifes() map[string]life {
	return map[string]life{"apart": {newHost, script}, "coupled": {coupledHost, coupledScript}}
}

// newHost is a host whose ring rounds.
func newHost() *knobs {
	k := host()
	k.round = func(id knob.ID, v knob.Value) knob.Value {
		if id == ring && v == "1000" {
			return "1024"
		}
		return v
	}
	return k
}

// crashes remembers which states after a crash a test has checked. Many crash points leave the same
// disk and the same knobs, and recovery of the same state does the same.
type crashes map[[sha256.Size]byte]bool

// first reports whether a state is new: the disk, the knobs, and the conditions of the check.
func (c crashes) first(t *testing.T, disk *durable.Mem, k *knobs, conditions ...any) bool {
	t.Helper()
	key := sha256.Sum256(fmt.Append(nil, tree(t, disk, "/"), k.values, conditions))
	if c[key] {
		return false
	}
	c[key] = true
	return true
}

// checkRecovery recovers what a crash has left, and checks the promises. Each knob must then hold
// its value in one of the allowed hosts.
func checkRecovery(t *testing.T, first values, crashed *durable.Mem, k *knobs, bootID string, allowed ...values) {
	t.Helper()
	o := options(crashed, k, &clock{})
	o.BootID = bootID
	j, err := journal.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	writes := k.writes
	if _, err := j.Recover(t.Context()); err != nil {
		t.Fatalf("recover: %v", err)
	}
	for id, v := range k.values {
		ok := false
		for _, a := range allowed {
			ok = ok || a[id] == v
		}
		if !ok {
			t.Fatalf("%s holds %q after recovery, allowed %v; journal %+v", id, v, allowed, j.Changes())
		}
	}
	if bootID != "boot-1" && k.writes != writes {
		t.Fatal("recovery after a restart wrote a knob")
	}
	// No original was lost, and none is a tuned value.
	for id, v := range j.Originals() {
		if v != first[id] {
			t.Fatalf("original of %s is %q", id, v)
		}
	}
	// Once is enough: a second recovery touches neither knob nor disk.
	writes = k.writes
	before, err := crashed.ReadFile("/state/journal.log")
	if err != nil {
		t.Fatal(err)
	}
	again, err := j.Recover(t.Context())
	after, readErr := crashed.ReadFile("/state/journal.log")
	if err != nil || readErr != nil || len(again) != 0 || k.writes != writes || string(before) != string(after) {
		t.Fatalf("second recovery: %+v, %v, %v, %d writes", again, err, readErr, k.writes-writes)
	}
	// What is not as it was at first is explained by changes, which can all be undone.
	if _, err := j.UndoAll(t.Context()); err != nil {
		t.Fatalf("undo all: %v", err)
	}
	if diff := cmp.Diff(first, k.values); diff != "" && bootID == "boot-1" {
		t.Fatalf("undo all after recovery: %s\njournal %+v", diff, j.Changes())
	}
}

// TestCrashAtEveryOperation cuts the power before every operation on the file system and on the
// knobs.
func TestCrashAtEveryOperation(t *testing.T) {
	t.Parallel()
	for name, life := range lifes() {
		for _, keep := range []float64{0, 0.5, 1} {
			stillClock(t, fmt.Sprintf("%s, keep %v", name, keep), func(t *testing.T) {
				crashAtEveryOperation(t, life, keep)
			})
		}
	}
}

func crashAtEveryOperation(t *testing.T, life life, keep float64) {
	first := life.host().values
	rng := rand.New(rand.NewPCG(11, uint64(keep*10)))
	mem, k := durable.NewMem(), life.host()
	if err := mem.Mkdir("/state", 0o755); err != nil { // Without a sync: it may be gone after the crash.
		t.Fatal(err)
	}
	points, checked := 0, crashes{}
	allowed := []values{first}
	check := func(disk *durable.Mem, k *knobs, bootID string, allowed ...values) {
		if checked.first(t, disk, k, bootID, allowed) {
			checkRecovery(t, first, disk, k, bootID, allowed...)
		}
	}
	crash := func() {
		points++
		repeat := 1
		if keep > 0 && keep < 1 {
			repeat = 4
		}
		for range repeat {
			// The process died, the kernel and its knobs live on. Or only the disk lost
			// power, as that of a virtual machine may.
			check(mem.CrashClone(keep, rng), k.cloneLocked(), "boot-1", allowed...)
		}
		// The host restarted, so the knobs are as they were at first.
		restarted := life.host()
		check(mem.CrashClone(keep, rng), restarted, "boot-2", first)
	}
	k.before = func(string, knobID) error { crash(); return nil }
	fsys := durable.NewFaulty(mem, func(durable.Op) error { crash(); return nil })
	j := open(t, options(fsys, k, &clock{}))
	safe := first
	for _, s := range life.script() {
		allowed = []values{safe, s.safe}
		if err := s.do(t.Context(), j); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		allowed, safe = []values{s.safe}, s.safe
		if diff := cmp.Diff(s.now, k.values); diff != "" {
			t.Fatalf("%s: %s", s.name, diff)
		}
		crash() // What has returned is as safe as it will be.
	}
	if points < 100 {
		t.Errorf("only %d crash points", points)
	}
	t.Logf("%d crash points, %d different states", points, len(checked))
}

// cloneLocked is clone for a hook, which runs while the host is locked; from elsewhere nothing else
// uses the host at that moment.
func (k *knobs) cloneLocked() *knobs {
	return &knobs{values: maps.Clone(k.values), round: k.round, sets: k.sets, coupled: k.coupled}
}

// stillClock runs a test whose hooks do more than a disk does: an undo waits two seconds for its
// storage, and here these are seconds of a clock that stands still while the hooks work.
func stillClock(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// TestCrashWhileRecovering cuts the power at every operation of the recovery from every crash.
func TestCrashWhileRecovering(t *testing.T) {
	t.Parallel()
	for name, life := range lifes() {
		stillClock(t, name, func(t *testing.T) { crashWhileRecovering(t, life) })
	}
}

func crashWhileRecovering(t *testing.T, life life) {
	first := life.host().values
	rng := rand.New(rand.NewPCG(17, 4))
	mem, k := durable.NewMem(), life.host()
	allowed := []values{first}
	points, checked, recovered := 0, crashes{}, crashes{}
	recover := func(keep float64) {
		disk, machine := mem.CrashClone(keep, rng), k.cloneLocked()
		// With half of the unsynced data kept, another draw of the same state shows something new.
		if keep != 0.5 && !recovered.first(t, disk, machine, keep, allowed) {
			return
		}
		again := func() {
			if points++; points%testenv.Sample(1, 4) != 0 {
				return
			}
			crashed, k := disk.CrashClone(keep, rng), machine.cloneLocked()
			if checked.first(t, crashed, k, allowed) {
				checkRecovery(t, first, crashed, k, "boot-1", allowed...)
			}
		}
		machine.before = func(string, knobID) error { again(); return nil }
		fsys := durable.NewFaulty(disk, func(durable.Op) error { again(); return nil })
		j, err := journal.Open(options(fsys, machine, &clock{}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		j.Close()
		again()
	}
	crash := func() {
		for _, keep := range []float64{0, 0.5, 1} {
			recover(keep)
		}
	}
	k.before = func(string, knobID) error { crash(); return nil }
	j := open(t, options(durable.NewFaulty(mem, func(durable.Op) error { crash(); return nil }), k, &clock{}))
	safe := first
	for _, s := range life.script() {
		allowed = []values{safe, s.safe}
		if err := s.do(t.Context(), j); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		allowed, safe = []values{s.safe}, s.safe
	}
	t.Logf("%d crash points, %d different states", points, len(checked))
}

// TestCrashWhileCompacting cuts the power while an old journal is rewritten.
func TestCrashWhileCompacting(t *testing.T) {
	t.Parallel()
	mem, k := durable.NewMem(), newHost()
	j := open(t, options(mem, k, &clock{}))
	committed := apply(t, j, journal.Request{}, mtu, "9000")[0]
	if err := j.Commit(t.Context(), committed.ID); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		apply(t, j, journal.Request{Reason: strings.Repeat("x", 30<<10)}, ring, "512")
		if _, err := j.UndoAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		committed = apply(t, j, journal.Request{}, mtu, "9000")[0]
		if err := j.Commit(t.Context(), committed.ID); err != nil {
			t.Fatal(err)
		}
	}
	apply(t, j, journal.Request{}, rmem, "B") // Left in trial.
	j.Close()
	for _, keep := range []float64{0, 0.5, 1} {
		rng := rand.New(rand.NewPCG(5, uint64(keep*10)))
		disk := mem.CrashClone(0, nil)
		replaced, points, checked := false, 0, crashes{}
		fsys := durable.NewFaulty(disk, func(op durable.Op) error {
			replaced = replaced || op.Kind == durable.OpRename
			if points++; points%testenv.Sample(1, 2) != 0 {
				return nil
			}
			safe := values{rmem: "A", mtu: "9000", ring: "256"}
			if crashed, k := disk.CrashClone(keep, rng), k.clone(); checked.first(t, crashed, k) {
				checkRecovery(t, host().values, crashed, k, "boot-1", safe)
			}
			return nil
		})
		j, err := journal.Open(options(fsys, k.clone(), &clock{}))
		if err != nil {
			t.Fatal(err)
		}
		j.Close()
		if !replaced {
			t.Fatal("nothing was rewritten")
		}
	}
	// Without room for the new log the old one serves on.
	disk := mem.CrashClone(0, nil)
	full := durable.NewFaulty(disk, func(op durable.Op) error {
		if op.Kind == durable.OpCreate || op.Kind == durable.OpMkdir {
			return syscall.ENOSPC
		}
		return nil
	})
	host := k.clone()
	j, err := journal.Open(options(full, host, &clock{}))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := j.Recover(t.Context()); err != nil || len(out) != 1 || host.values[rmem] != "A" {
		t.Errorf("%+v, %v", out, err)
	}
	j.Close()
}

// TestFaultAtEveryOperation lets each operation of the disk fail, once or from then on. A call that
// fails leaves the knobs as they were before it, or as they were to be; the next process, on a disk
// that is well, finds everything it needs.
func TestFaultAtEveryOperation(t *testing.T) {
	t.Parallel()
	faults := map[string]func(n int) func(durable.Op) error{
		"EIO once":    func(n int) func(durable.Op) error { return durable.FailAt(n, syscall.EIO) },
		"ENOSPC once": func(n int) func(durable.Op) error { return durable.FailAt(n, syscall.ENOSPC) },
		"full disk":   durable.FullFrom,
		"dead disk": func(n int) func(durable.Op) error {
			return func(op durable.Op) error {
				if op.N >= n {
					return syscall.EIO
				}
				return nil
			}
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			for n := 0; ; n++ {
				mem, k := durable.NewMem(), newHost()
				fsys := durable.NewFaulty(mem, fault(n))
				failed := runWithFaults(t, fsys, k)
				checkAfterFault(t, mem, k, failed)
				if fsys.Operations() <= n {
					if n < 60 {
						t.Errorf("only %d operations", n)
					}
					return
				}
			}
		})
	}
}

// runWithFaults runs the script until a step fails, and returns what the knobs may hold after
// recovery.
func runWithFaults(t *testing.T, fsys durable.FS, k *knobs) []values {
	t.Helper()
	j, err := journal.Open(options(fsys, k, &clock{}))
	if err != nil {
		if k.writes != 0 {
			t.Fatal("open wrote a knob")
		}
		return []values{host().values}
	}
	defer j.Close()
	now, safe := host().values, host().values
	for _, s := range script() {
		before := k.writes
		err := s.do(t.Context(), j)
		if err == nil {
			now, safe = s.now, s.safe
			continue
		}
		if strings.HasPrefix(s.name, "undo") {
			// Putting back goes on without the journal.
			if diff := cmp.Diff(s.now, k.values); diff != "" {
				t.Fatalf("%s: %v: %s", s.name, err, diff)
			}
		} else if diff := cmp.Diff(now, k.values); diff != "" {
			t.Fatalf("%s: %v: %s", s.name, err, diff)
		}
		if strings.Contains(err.Error(), "nothing changed") && strings.HasPrefix(s.name, "apply r") &&
			k.writes != before {
			t.Fatalf("%s: %v, but a knob was written", s.name, err)
		}
		if !errors.Is(err, journal.ErrUnwritable) {
			t.Fatalf("%s: %v", s.name, err)
		}
		// From here on the journal changes nothing more.
		before = k.writes
		if _, err := j.Apply(t.Context(), journal.Request{}, settings(rmem, "never")...); !errors.Is(err,
			journal.ErrUnwritable) || k.writes != before {
			t.Fatalf("apply after a failure: %v", err)
		}
		if err := j.Commit(t.Context(), "1"); !errors.Is(err, journal.ErrUnwritable) {
			t.Fatalf("commit after a failure: %v", err)
		}
		return []values{safe, s.safe}
	}
	return []values{safe}
}

func checkAfterFault(t *testing.T, mem *durable.Mem, k *knobs, allowed []values) {
	t.Helper()
	checkRecovery(t, host().values, mem.CrashClone(1, nil), k.clone(), "boot-1", allowed...)
	checkRecovery(t, host().values, mem.CrashClone(0, nil), k.clone(), "boot-1", allowed...)
}

// TestKnobFaults lets the system refuse every access to the knobs in turn, for good or once.
func TestKnobFaults(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{errBusy, syscall.EIO, syscall.EPERM, syscall.EOPNOTSUPP, syscall.ENETDOWN} {
		t.Run(fault.Error(), func(t *testing.T) { knobFaults(t, fault) })
	}
}

func knobFaults(t *testing.T, fault error) {
	for _, forGood := range []bool{false, true} {
		for n := 0; ; n++ {
			mem, k := durable.NewMem(), newHost()
			count := 0
			k.before = func(string, knobID) error {
				count++
				if count-1 == n || (forGood && count > n) {
					return fault
				}
				return nil
			}
			j := open(t, options(mem, k, &clock{}))
			safe := host().values
			allowed := []values{safe}
			for _, s := range script() {
				if err := s.do(t.Context(), j); err != nil {
					if !errors.Is(err, fault) {
						t.Fatalf("access %d: %s: %v", n, s.name, err)
					}
					allowed = []values{safe, s.safe}
					break
				}
				safe = s.safe
				allowed = []values{safe}
			}
			j.Close()
			k.before = nil
			checkRecovery(t, host().values, mem.CrashClone(0, nil), k.clone(), "boot-1", allowed...)
			if count <= n {
				if n < 35 {
					t.Errorf("only %d accesses", n)
				}
				break
			}
		}
	}
}
