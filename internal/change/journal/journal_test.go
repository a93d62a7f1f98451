package journal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

const (
	rmem = "sysctl:net.ipv4.tcp_rmem"
	mtu  = "link:eth0/mtu"
	ring = "ethtool:eth0/ring.rx"
)

func host() *knobs { return newKnobs(map[knob.ID]knob.Value{rmem: "A", mtu: "1500", ring: "256"}) }

func TestApplyCommitUndo(t *testing.T) {
	fsys, k := durable.NewMem(), host()
	j := open(t, options(fsys, k, &clock{}))
	changes := apply(t, j, journal.Request{Reason: "because"}, rmem, "B", mtu, "9000")
	want := []journal.Change{
		{ID: "0001", Time: dayOne(), Knob: rmem, Side: "near", From: "A", To: "B", Original: "A", State: journal.Trial,
			Reason: "because", BootID: "boot-1"},
		{ID: "0002", Time: dayOne(), Knob: mtu, Side: "near", From: "1500", To: "9000", Original: "1500",
			State: journal.Trial, Reason: "because", BootID: "boot-1"},
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Fatal(diff)
	}
	if err := j.Commit(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	if err := j.Commit(t.Context(), "0001"); err != nil {
		t.Fatalf("second commit: %v", err)
	}
	outcomes, err := j.Undo(t.Context(), "2", "1")
	if err != nil {
		t.Fatal(err)
	}
	if len(outcomes) != 2 || outcomes[0].Change.ID != "0002" || !outcomes[0].Restored || !outcomes[1].Restored {
		t.Fatalf("outcomes %+v", outcomes)
	}
	if diff := cmp.Diff(host().values, k.values); diff != "" {
		t.Fatal(diff)
	}
	live := j.Changes()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	stored, err := journal.History(fsys, "/state")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(live, stored); diff != "" {
		t.Fatalf("memory and disk disagree: %s", diff)
	}
	for _, c := range stored {
		if c.State != journal.Undone || c.Note != "undone" {
			t.Errorf("change %+v", c)
		}
	}
}

func TestApplyWhatIsInForceChangesNothing(t *testing.T) {
	k := host()
	k.values[rmem] = "4096\t131072\t6291456"
	j := open(t, options(durable.NewMem(), k, &clock{}))
	if changes := apply(t, j, journal.Request{}, rmem, " 4096 131072  6291456"); len(changes) != 0 || k.writes != 0 {
		t.Errorf("%+v, %d writes", changes, k.writes)
	}
}

func TestUndoTwiceAndUnknown(t *testing.T) {
	k := host()
	j := open(t, options(durable.NewMem(), k, &clock{}))
	apply(t, j, journal.Request{}, rmem, "B")
	for range 2 {
		outcomes, err := j.Undo(t.Context(), "1", "0001")
		if err != nil || len(outcomes) != 1 || outcomes[0].Change.State != journal.Undone {
			t.Fatalf("%+v, %v", outcomes, err)
		}
	}
	if k.writes != 2 {
		t.Errorf("%d writes", k.writes)
	}
	for _, id := range []string{"2", "", "x", "-1"} {
		if _, err := j.Undo(t.Context(), id); !errors.Is(err, journal.ErrUnknownChange) {
			t.Errorf("undo %q: %v", id, err)
		}
		if err := j.Commit(t.Context(), id); !errors.Is(err, journal.ErrUnknownChange) {
			t.Errorf("commit %q: %v", id, err)
		}
	}
	if err := j.Commit(t.Context(), "1"); !errors.Is(err, journal.ErrNotTrial) {
		t.Errorf("commit of an undone change: %v", err)
	}
}

// TestErrorsOfTheBackend: what the system says stays visible, and nothing is changed.
func TestErrorsOfTheBackend(t *testing.T) {
	for name, test := range map[string]struct {
		op   string
		err  error
		knob string
	}{
		"read-only":   {"write", fs.ErrPermission, mtu},
		"no right":    {"read", fs.ErrPermission, mtu},
		"not there":   {"", fs.ErrNotExist, "sysctl:net.ipv4.no_such"},
		"unsupported": {"write", syscall.EOPNOTSUPP, mtu},
		"busy":        {"write", errBusy, mtu},
	} {
		t.Run(name, func(t *testing.T) {
			fsys, k := durable.NewMem(), host()
			j := open(t, options(fsys, k, &clock{}))
			k.before = func(op string, id knobID) error {
				if op == test.op && string(id) == test.knob {
					return test.err
				}
				return nil
			}
			_, err := j.Apply(t.Context(), journal.Request{}, settings(rmem, "B", test.knob, "1400")...)
			if !errors.Is(err, test.err) || !strings.HasPrefix(err.Error(), "apply "+test.knob+": nothing changed: ") {
				t.Errorf("%v", err)
			}
			if diff := cmp.Diff(host().values, k.values); diff != "" {
				t.Error(diff)
			}
			for _, c := range j.Changes() {
				if c.State != journal.Undone || c.Note == "" {
					t.Errorf("left %+v", c)
				}
			}
			k.before = nil
			apply(t, j, journal.Request{}, rmem, "B", mtu, "1400") // The journal is none the worse for it.
		})
	}
}

func TestNormalizeRefuses(t *testing.T) {
	k := host()
	o := options(durable.NewMem(), k, &clock{})
	refusal := errors.New("68 to 65535")
	o.Normalize = func(id knob.ID, v knob.Value) (knob.Value, error) {
		if id == mtu && v == "1" {
			return "", refusal
		}
		return v, nil
	}
	j := open(t, o)
	if _, err := j.Apply(t.Context(), journal.Request{}, settings(rmem, "B", mtu, "1")...); !errors.Is(err, refusal) ||
		k.writes != 0 {
		t.Errorf("%v, %d writes", err, k.writes)
	}
	if _, err := j.Apply(t.Context(), journal.Request{}, settings(rmem, "B", rmem, "C")...); err == nil ||
		k.writes != 0 {
		t.Errorf("one knob twice: %v, %d writes", err, k.writes)
	}
}

func TestDriverRounds(t *testing.T) {
	k := host()
	k.round = func(id knob.ID, v knob.Value) knob.Value {
		if id == ring && v == "1000" {
			return "1024"
		}
		return v
	}
	j := open(t, options(durable.NewMem(), k, &clock{}))
	c := apply(t, j, journal.Request{}, ring, "1000")[0]
	if c.To != "1024" || c.Asked != "1000" || c.From != "256" || c.Note != "requested 1000, the system set 1024" {
		t.Errorf("%+v", c)
	}
	if out, err := j.Undo(t.Context(), c.ID); err != nil || !out[0].Restored || k.values[ring] != "256" {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestSilentRefusal(t *testing.T) {
	k := host()
	k.round = func(knob.ID, knob.Value) knob.Value { return "256" }
	j := open(t, options(durable.NewMem(), k, &clock{}))
	if _, err := j.Apply(t.Context(), journal.Request{}, settings(ring, "1000")...); !errors.Is(err,
		journal.ErrNoEffect) {
		t.Error(err)
	}
	if c := j.Changes()[0]; c.State != journal.Undone {
		t.Errorf("%+v", c)
	}
}

// TestStack: several changes of one knob come off in any order, and the knob ends where it began.
func TestStack(t *testing.T) {
	for _, order := range [][]string{{"3", "2", "1"}, {"1", "2", "3"}, {"2", "3", "1"}, {"2", "1", "3"},
		{"1", "3", "2"}, {"3", "1", "2"}} {
		for _, together := range []bool{true, false} {
			fsys, k := durable.NewMem(), host()
			j := open(t, options(fsys, k, &clock{}))
			for _, v := range []string{"B", "C", "D"} {
				apply(t, j, journal.Request{}, rmem, v)
			}
			if together {
				outcomes, err := j.Undo(t.Context(), order...)
				if err != nil || len(outcomes) != 3 || outcomes[0].Change.ID != "0003" {
					t.Fatalf("%+v, %v", outcomes, err)
				}
			} else {
				for i, id := range order {
					if _, err := j.Undo(t.Context(), id); err != nil {
						t.Fatal(err)
					}
					// What stands is the value of the newest change that is left.
					want := knob.Value("A")
					for n, v := range []knob.Value{"B", "C", "D"} {
						if slices.Contains(order[i+1:], fmt.Sprint(n+1)) {
							want = v
						}
					}
					if k.values[rmem] != want {
						t.Fatalf("order %v, after %s: %s, want %s", order, id, k.values[rmem], want)
					}
				}
			}
			if k.values[rmem] != "A" {
				t.Errorf("order %v: %s", order, k.values[rmem])
			}
			stored, err := journal.History(fsys, "/state")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(j.Changes(), stored); diff != "" {
				t.Errorf("memory and disk disagree: %s", diff)
			}
		}
	}
}

func TestUndoLeavesForeignValuesAlone(t *testing.T) {
	k := host()
	j := open(t, options(durable.NewMem(), k, &clock{}))
	apply(t, j, journal.Request{}, rmem, "B", mtu, "9000")
	apply(t, j, journal.Request{}, rmem, "C")
	k.set(rmem, "X")
	outcomes, err := j.UndoAll(t.Context())
	if err != nil || len(outcomes) != 3 {
		t.Fatalf("%+v, %v", outcomes, err)
	}
	for _, o := range outcomes {
		foreign := o.Change.Knob == rmem
		if foreign != (o.Foreign == "X") || foreign == o.Restored || o.Change.State != journal.Undone {
			t.Errorf("%+v", o)
		}
		if foreign && o.Change.Note != "undone; changed by another program to X and left alone" {
			t.Error(o.Change.Note)
		}
	}
	if k.values[rmem] != "X" || k.values[mtu] != "1500" {
		t.Error(k.values)
	}
	if again, err := j.Recover(t.Context()); err != nil || len(again) != 0 {
		t.Errorf("%+v, %v", again, err)
	}
	// another program may also have put the old value back.
	apply(t, j, journal.Request{}, mtu, "9000")
	k.set(mtu, "1500")
	writes := k.writes
	if out, err := j.UndoAll(t.Context()); err != nil || !out[0].Restored || k.writes != writes {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestOriginalIsNeverATunedValue: a second run over what a first one left, with and without
// recovery, still knows the first value.
func TestOriginalIsNeverATunedValue(t *testing.T) {
	fsys, k := durable.NewMem(), host()
	for round, v := range []string{"B", "C", "D"} {
		j := open(t, options(fsys, k, &clock{}))
		c := apply(t, j, journal.Request{}, rmem, v)[0]
		if c.Original != "A" || j.Originals()[rmem] != "A" {
			t.Fatalf("round %d: %+v", round, c)
		}
		if round == 1 {
			if err := j.Commit(t.Context(), c.ID); err != nil {
				t.Fatal(err)
			}
		}
		j.Close()
	}
	j := open(t, options(fsys, k, &clock{}))
	if _, err := j.UndoAll(t.Context()); err != nil || k.values[rmem] != "A" {
		t.Errorf("%v, %v", k.values, err)
	}
	// Another boot begins again.
	j.Close()
	k.set(rmem, "Z")
	o := options(fsys, k, &clock{})
	o.BootID = "boot-2"
	j = open(t, o)
	if c := apply(t, j, journal.Request{}, rmem, "B")[0]; c.Original != "Z" {
		t.Errorf("%+v", c)
	}
}

func TestOnlyOneHasTheJournal(t *testing.T) {
	o := options(durable.OS(), host(), &clock{})
	o.Dir = filepath.Join(t.TempDir(), "var", "state")
	j := open(t, o)
	_, err := journal.Open(o)
	var locked *journal.LockedError
	if !errors.Is(err, journal.ErrLocked) || !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Fatal(err)
	}
	if !strings.Contains(err.Error(), fmt.Sprintf("(pid %d)", os.Getpid())) {
		t.Error(err)
	}
	apply(t, j, journal.Request{}, rmem, "B")
	if changes, err := journal.History(o.FS, o.Dir); err != nil || len(changes) != 1 {
		t.Errorf("history needs no lock: %+v, %v", changes, err)
	}
	j.Close()
	if err := open(t, o).Close(); err != nil {
		t.Error(err)
	}
}

func TestClosed(t *testing.T) {
	j := open(t, options(durable.NewMem(), host(), &clock{}))
	j.Close()
	_, applyErr := j.Apply(t.Context(), journal.Request{}, settings(rmem, "B")...)
	_, undoErr := j.UndoAll(t.Context())
	_, recoverErr := j.Recover(t.Context())
	for _, err := range []error{applyErr, undoErr, recoverErr, j.Commit(t.Context(), "1")} {
		if !errors.Is(err, fs.ErrClosed) {
			t.Error(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func TestHistoryWritesNothing(t *testing.T) {
	mem := durable.NewMem()
	if changes, err := journal.History(mem, "/nowhere"); err != nil || len(changes) != 0 {
		t.Errorf("%+v, %v", changes, err)
	}
	j := open(t, options(mem, host(), &clock{}))
	apply(t, j, journal.Request{}, rmem, "B")
	readOnly := durable.NewFaulty(mem, func(op durable.Op) error {
		if op.Kind != durable.OpReadFile {
			return fs.ErrPermission
		}
		return nil
	})
	if changes, err := journal.History(readOnly, "/state"); err != nil || len(changes) != 1 {
		t.Errorf("%+v, %v", changes, err)
	}
	_, err := journal.Open(options(readOnly, host(), &clock{}))
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("open without rights: %v", err)
	}
}

func TestTrialNeedsAGuard(t *testing.T) {
	k := host()
	o := options(durable.NewMem(), k, &clock{})
	o.Unguarded = false
	j := open(t, o)
	if _, err := j.Apply(t.Context(), journal.Request{}, settings(rmem, "B")...); !errors.Is(err,
		journal.ErrUnguarded) || k.writes != 0 {
		t.Errorf("%v, %d writes", err, k.writes)
	}
	if len(j.Changes()) != 0 {
		t.Errorf("%+v", j.Changes())
	}
}

func TestInterrupt(t *testing.T) {
	fsys, k := durable.NewMem(), host()
	j := open(t, options(fsys, k, &clock{}))
	ctx, cancel := context.WithCancel(t.Context())
	k.before = func(op string, _ knobID) error {
		if op == "write" {
			cancel() // Ctrl-C while the first knob is being written.
		}
		return nil
	}
	_, err := j.Apply(ctx, journal.Request{}, settings(rmem, "B", mtu, "9000")...)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if diff := cmp.Diff(host().values, k.values); diff != "" {
		t.Error(diff)
	}
	if c := j.Changes(); len(c) != 1 || c[0].State != journal.Undone ||
		c[0].Note != "another setting of the same request failed" {
		t.Errorf("%+v", c)
	}
}

// TestUndoTrials: an interrupted command takes back its own trials, and nothing else.
func TestUndoTrials(t *testing.T) {
	fsys, k, c := durable.NewMem(), host(), &clock{}
	o := options(fsys, k, c)
	o.Mode = journal.Deadline
	other := open(t, o)
	apply(t, other, journal.Request{}, ring, "512")
	other.Close()
	j := open(t, options(fsys, k, c))
	apply(t, j, journal.Request{}, rmem, "B", mtu, "9000")
	apply(t, j, journal.Request{}, rmem, "C")
	if err := j.Commit(t.Context(), "2"); err != nil {
		t.Fatal(err)
	}
	outcomes, err := j.UndoTrials(t.Context())
	if err != nil || len(outcomes) != 2 {
		t.Fatalf("%+v, %v", outcomes, err)
	}
	if diff := cmp.Diff(map[knob.ID]knob.Value{rmem: "B", mtu: "1500", ring: "512"}, k.values); diff != "" {
		t.Error(diff)
	}
}

// TestNothingCanBePutBack: the journal fails after the write, and so does putting back. Once the
// knob obeys again, Undo knows what it held, however late.
func TestNothingCanBePutBack(t *testing.T) {
	mem, k, c := durable.NewMem(), newHost(), &clock{}
	syncs, writes := 0, 0
	fsys := durable.NewFaulty(mem, func(op durable.Op) error {
		if op.Kind == durable.OpSync && op.Path == "/state/journal.log" {
			if syncs++; syncs > 1 {
				return syscall.EIO // At the record that the change is applied.
			}
		}
		return nil
	})
	j := open(t, options(fsys, k, c))
	k.before = func(op string, _ knobID) error {
		if op == "write" {
			if writes++; writes > 1 {
				return errBusy
			}
		}
		return nil
	}
	_, err := j.Apply(t.Context(), journal.Request{}, settings(ring, "1000")...)
	if !errors.Is(err, journal.ErrUnwritable) || !errors.Is(err, syscall.EIO) || !errors.Is(err, errBusy) ||
		!strings.Contains(err.Error(), `it holds "1024"`) {
		t.Fatal(err)
	}
	k.before = nil
	c.advance(time.Hour)
	outcomes, err := j.UndoAll(t.Context())
	if !errors.Is(err, journal.ErrUnwritable) || len(outcomes) != 1 || !outcomes[0].Restored ||
		k.values[ring] != "256" {
		t.Errorf("%+v, %v", outcomes, err)
	}
}

// displacing is a host on which a write of one knob creates eth1 anew.
type displacing struct{ *knobs }

func (displacing) Displaces(id knob.ID) []string {
	if id == "module:e1000/RxIntDelay" {
		return []string{"eth1"}
	}
	return nil
}

// TestDisplacedInterface: a change that creates an interface anew and a change on that interface
// exclude each other, because the journal knows an interface by its index.
func TestDisplacedInterface(t *testing.T) {
	k := newKnobs(map[knob.ID]knob.Value{"module:e1000/RxIntDelay": "absent", "link:eth1/mtu": "1500",
		"link:eth2/mtu": "1500"})
	j := open(t, options(durable.NewMem(), displacing{k}, &clock{}))
	apply(t, j, journal.Request{}, "link:eth2/mtu", "9000")
	on := apply(t, j, journal.Request{}, "link:eth1/mtu", "9000")
	reload := settings("module:e1000/RxIntDelay", "0")
	if _, err := j.Apply(t.Context(), journal.Request{}, reload...); !errors.Is(err, journal.ErrDisplaces) {
		t.Errorf("over a change on eth1: %v", err)
	}
	if _, err := j.Undo(t.Context(), on[0].ID); err != nil {
		t.Fatal(err)
	}
	anew := apply(t, j, journal.Request{}, "module:e1000/RxIntDelay", "0")
	if _, err := j.Apply(t.Context(), journal.Request{}, settings("link:eth1/mtu", "9000")...); !errors.Is(err,
		journal.ErrDisplaces) {
		t.Errorf("under a trial that ends with eth1 anew: %v", err)
	}
	if err := j.Commit(t.Context(), anew[0].ID); err != nil {
		t.Fatal(err)
	}
	apply(t, j, journal.Request{}, "link:eth1/mtu", "9000")
}
