package journal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

// etc is a host's configuration before anything is persisted, on a disk.
func etc(t testing.TB, disk durable.FS) {
	t.Helper()
	for name, text := range map[string]string{"/etc/sysctl.d/10-theirs.conf": "kernel.x = 1\n",
		"/etc/hosts": "127.0.0.1 localhost\n"} {
		if err := durable.MkdirAll(disk, path.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := durable.Replace(disk, name, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
}

// tree returns names, modes and contents below a directory.
func tree(t testing.TB, disk durable.FS, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	names, err := disk.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		name = path.Join(dir, name)
		info, err := disk.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			found[name] = info.Mode().String()
			for k, v := range tree(t, disk, name) {
				found[k] = v
			}
			continue
		}
		data, err := disk.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = info.Mode().String() + " " + string(data)
	}
	return found
}

// plan returns each change of the tests a file of its own, and those of NICs one in common, in a
// directory that is not there at first.
func plan(c journal.Change) journal.Plan {
	line := fmt.Sprintf("# change %s\n%s = %s\n", c.ID, c.Knob, c.To)
	if c.Knob == rmem {
		return journal.Plan{ID: c.ID,
			Files: []journal.File{{Path: "/etc/sysctl.d/90-linerate-" + c.ID + ".conf", Content: line, Mode: 0o644}}}
	}
	return journal.Plan{ID: c.ID, Files: []journal.File{
		{Path: "/etc/systemd/network/60-linerate-eth0.link", Content: "[Match]\n", Mode: 0o644},
		{Path: "/etc/systemd/network/60-linerate-eth0.link.d/90-linerate-" + c.ID + ".conf", Content: line, Mode: 0o644},
	}}
}

// restart is a host after a restart: the knobs as they were at first, then the files in the order
// of their names.
func restart(t testing.TB, disk durable.FS) *knobs {
	t.Helper()
	k := newHost()
	files := tree(t, disk, "/etc")
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range files {
			if !yield(name) {
				return
			}
		}
	})
	for _, name := range names {
		// What durable.Replace was writing when the power went: sysctl.d(5) and systemd.link(5) read
		// names that end in .conf.
		if strings.HasSuffix(name, ".tmp") {
			continue
		}
		for line := range strings.Lines(files[name]) {
			id, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
			if _, known := k.values[knob.ID(id)]; ok && known {
				k.values[knob.ID(id)] = knob.Value(value)
			}
		}
	}
	return k
}

// keep applies, commits and persists.
func keep(ctx context.Context, j *journal.Journal, pairs ...string) error {
	changes, err := j.Apply(ctx, journal.Request{}, settings(pairs...)...)
	if err != nil {
		return err
	}
	var plans []journal.Plan
	var ids []string
	for _, c := range changes {
		plans, ids = append(plans, plan(c)), append(ids, c.ID)
	}
	if err := j.Commit(ctx, ids...); err != nil {
		return err
	}
	_, err = j.Persist(ctx, "/", plans...)
	return err
}

// persistScript is a life in which files come, lie on top of each other and go.
func persistScript() []func(context.Context, *journal.Journal) error {
	undo := func(ids ...string) func(context.Context, *journal.Journal) error {
		return func(ctx context.Context, j *journal.Journal) error {
			_, err := j.Undo(ctx, ids...)
			return err
		}
	}
	with := func(pairs ...string) func(context.Context, *journal.Journal) error {
		return func(ctx context.Context, j *journal.Journal) error { return keep(ctx, j, pairs...) }
	}
	return []func(context.Context, *journal.Journal) error{
		with(rmem, "B"), with(mtu, "9000", ring, "1000"), with(rmem, "C"), undo("1"), undo("2"), with(mtu, "4000"),
		undo("3"), undo("4", "5"),
	}
}

// checkFiles recovers what a crash has left. It checks that the files agree with the journal and
// that all of them can be removed again.
//
// Taking out goes on when the journal cannot be written, as putting back does; then the disk may
// have less than the journal says, never more.
func checkFiles(t *testing.T, disk *durable.Mem, k *knobs, boot string, before map[string]string, unwritable ...bool) {
	t.Helper()
	o := options(disk, k, &clock{})
	o.BootID = boot
	j, err := journal.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := j.Recover(t.Context()); err != nil {
		t.Fatalf("recover: %v", err)
	}
	want := map[string]bool{}
	for _, c := range j.Changes() {
		if c.Persisted != (c.State == journal.Persisted) || c.Persisted != (len(c.Files) > 0) {
			t.Fatalf("change %+v", c)
		}
		for _, name := range c.Files {
			want[name] = true
		}
	}
	for name, mode := range tree(t, disk, "/etc") {
		if strings.HasPrefix(mode, "d") || before[name] != "" {
			continue
		}
		if !want[name] {
			t.Fatalf("%s is there after recovery, and no change says so; journal %+v", name, j.Changes())
		}
		delete(want, name)
	}
	if len(want) > 0 && len(unwritable) == 0 {
		t.Fatalf("missing after recovery: %v", want)
	}
	if again, err := j.Recover(t.Context()); err != nil || len(again) > 0 {
		t.Fatalf("second recovery: %+v, %v", again, err)
	}
	if _, err := j.UndoAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, tree(t, disk, "/etc")); diff != "" {
		t.Fatalf("files after undo of all: %s\njournal %+v", diff, j.Changes())
	}
	if diff := cmp.Diff(host().values, k.values); diff != "" {
		t.Fatalf("boot %s: knobs after undo of all: %s\njournal %+v", boot, diff, j.Changes())
	}
}

// TestCrashWhilePersisting cuts the power before every operation of a life with files, and at every
// operation of the recovery from half of them.
func TestCrashWhilePersisting(t *testing.T) {
	t.Parallel()
	for _, keep := range []float64{0, 0.5, 1} {
		stillClock(t, fmt.Sprintf("keep %v", keep), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(23, uint64(keep*10)))
			mem, k := durable.NewMem(), newHost()
			etc(t, mem)
			before := tree(t, mem, "/etc")
			points, checked, recovered := 0, crashes{}, crashes{}
			check := func(disk *durable.Mem, k *knobs, boot string) {
				if checked.first(t, disk, k, boot) {
					checkFiles(t, disk, k, boot, before)
				}
			}
			crash := func() {
				if points++; points%testenv.Sample(1, 4) != testenv.Sample(0, 1) {
					return
				}
				check(mem.CrashClone(keep, rng), k.cloneLocked(), "boot-1")
				disk := mem.CrashClone(keep, rng)
				check(disk, restart(t, disk), "boot-2")
				// Every second point also crashes while recovering.
				if points%testenv.Sample(2, 32) != 1 {
					return
				}
				disk = mem.CrashClone(keep, rng)
				machine := restart(t, disk)
				if keep != 0.5 && !recovered.first(t, disk, machine) {
					return
				}
				again := func() {
					half := disk.CrashClone(keep, rng)
					check(half, machine.cloneLocked(), "boot-2")
					half = disk.CrashClone(keep, rng)
					check(half, restart(t, half), "boot-3")
				}
				machine.before = func(string, knobID) error { again(); return nil }
				o := options(durable.NewFaulty(disk, func(durable.Op) error { again(); return nil }), machine, &clock{})
				o.BootID = "boot-2"
				j, err := journal.Open(o)
				if err != nil {
					t.Fatal(err)
				}
				defer j.Close()
				if _, err := j.Recover(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := j.UndoAll(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			k.before = func(string, knobID) error { crash(); return nil }
			j := open(t, options(durable.NewFaulty(mem, func(durable.Op) error { crash(); return nil }), k, &clock{}))
			for i, do := range persistScript() {
				if err := do(t.Context(), j); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				crash()
			}
			if points < 100 {
				t.Errorf("only %d crash points", points)
			}
			t.Logf("%d crash points, %d different states", points, len(checked))
		})
	}
}

// TestFaultWhilePersisting lets each operation of the disk fail, once or from then on: a persist
// that fails leaves no file.
func TestFaultWhilePersisting(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(n int) func(durable.Op) error{
		"EIO once":       func(n int) func(durable.Op) error { return durable.FailAt(n, syscall.EIO) },
		"read-only once": func(n int) func(durable.Op) error { return durable.FailAt(n, syscall.EROFS) },
		"full disk":      durable.FullFrom,
	} {
		t.Run(name, func(t *testing.T) {
			for n := 0; ; n += testenv.Sample(1, 5) {
				mem, k := durable.NewMem(), newHost()
				etc(t, mem)
				before := tree(t, mem, "/etc")
				fsys := durable.NewFaulty(mem, fault(n))
				j, err := journal.Open(options(fsys, k, &clock{}))
				for i := 0; err == nil && i < len(persistScript()); i++ {
					err = persistScript()[i](t.Context(), j)
				}
				if j != nil {
					j.Close()
				}
				checkFiles(t, mem.CrashClone(0, nil), k.clone(), "boot-1", before, true)
				disk := mem.CrashClone(1, nil)
				checkFiles(t, disk, restart(t, disk), "boot-2", before, true)
				if fsys.Operations() <= n {
					if n < 100 {
						t.Errorf("only %d operations", n)
					}
					return
				}
			}
		})
	}
}

// TestUndoWhereFilesAreReadOnly: the value in force goes back although the files cannot be removed.
// The change stays open, and is reported, until they can.
func TestUndoWhereFilesAreReadOnly(t *testing.T) {
	for name, finish := range map[string]func(*journal.Journal) ([]journal.Outcome, error){
		"undone again": func(j *journal.Journal) ([]journal.Outcome, error) { return j.UndoAll(t.Context()) },
		"recovered":    func(j *journal.Journal) ([]journal.Outcome, error) { return j.Recover(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			mem, k := durable.NewMem(), newHost()
			etc(t, mem)
			before := tree(t, mem, "/etc")
			readOnly := false
			fsys := durable.NewFaulty(mem, func(op durable.Op) error {
				if readOnly && strings.HasPrefix(op.Path, "/etc/") && (op.Kind.Grows() || op.Kind == durable.OpRemove ||
					op.Kind == durable.OpRename) {
					return syscall.EROFS
				}
				return nil
			})
			j := open(t, options(fsys, k, &clock{}))
			if err := keep(t.Context(), j, rmem, "B", mtu, "9000"); err != nil {
				t.Fatal(err)
			}
			readOnly = true
			for range 2 {
				outcomes, err := j.UndoAll(t.Context())
				if !errors.Is(err, syscall.EROFS) || len(outcomes) != 2 {
					t.Fatalf("%+v, %v", outcomes, err)
				}
				for _, o := range outcomes {
					if !o.Restored || !strings.Contains(o.Error, "/etc/") || o.Change.State == journal.Undone ||
						len(o.Change.Files) == 0 {
						t.Errorf("%+v", o)
					}
				}
				if diff := cmp.Diff(host().values, k.values); diff != "" {
					t.Fatalf("knobs: %s", diff)
				}
			}
			// The host starts again, and reads the files that are still there.
			j.Close()
			k = restart(t, mem)
			o := options(fsys, k, &clock{})
			o.BootID = "boot-2"
			j = open(t, o)
			if outcomes, err := j.Recover(t.Context()); !errors.Is(err, syscall.EROFS) || len(outcomes) != 2 {
				t.Errorf("%+v, %v", outcomes, err)
			}
			if diff := cmp.Diff(host().values, k.values); diff != "" {
				t.Fatalf("knobs in the next boot: %s", diff)
			}
			readOnly = false
			outcomes, err := finish(j)
			if err != nil || len(outcomes) != 2 {
				t.Fatalf("%+v, %v", outcomes, err)
			}
			for _, c := range j.Changes() {
				if c.State != journal.Undone || c.Persisted || len(c.Files) > 0 {
					t.Errorf("%+v", c)
				}
			}
			if diff := cmp.Diff(before, tree(t, mem, "/etc")); diff != "" {
				t.Errorf("files: %s", diff)
			}
			if diff := cmp.Diff(host().values, k.values); diff != "" {
				t.Errorf("knobs: %s", diff)
			}
		})
	}
}

// TestPersistUndoProperty persists and undoes changes in random order, over restarts: the tree ends
// as it began.
func TestPersistUndoProperty(t *testing.T) {
	t.Parallel()
	for seed := range lives() {
		rng := rand.New(rand.NewPCG(seed, 99))
		mem, k := durable.NewMem(), newHost()
		etc(t, mem)
		before := tree(t, mem, "/etc")
		boot := 1
		j := open(t, options(mem, k, &clock{}))
		for step := range 40 {
			var err error
			switch rng.IntN(6) {
			case 0, 1:
				err = keep(t.Context(), j, rmem, fmt.Sprint("v", step))
			case 2:
				err = keep(t.Context(), j, mtu, fmt.Sprint(1501+step), ring, fmt.Sprint(300+step))
			case 3, 4:
				if changes := j.Changes(); len(changes) > 0 {
					_, err = j.Undo(t.Context(), changes[rng.IntN(len(changes))].ID)
				}
			case 5:
				j.Close()
				boot++
				k = restart(t, mem)
				o := options(mem, k, &clock{})
				o.BootID = fmt.Sprint("boot-", boot)
				j = open(t, o)
				_, err = j.Recover(t.Context())
			}
			if err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
		if _, err := j.UndoAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, tree(t, mem, "/etc")); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if diff := cmp.Diff(host().values, k.values); diff != "" {
			t.Fatalf("seed %d: %s\n%+v", seed, diff, j.Changes())
		}
		j.Close()
	}
}

// A user's own lines in one of our files survive. A line of ours that the user changed is the
// user's.
func TestUndoOfEditedFiles(t *testing.T) {
	mem, k := durable.NewMem(), newHost()
	etc(t, mem)
	j := open(t, options(mem, k, &clock{}))
	if err := keep(t.Context(), j, rmem, "B", mtu, "9000"); err != nil {
		t.Fatal(err)
	}
	ours := j.Changes()[0].Files[0]
	text, err := mem.ReadFile(ours)
	if err != nil {
		t.Fatal(err)
	}
	if err := durable.Replace(mem, ours, []byte("kernel.y = 2\n"+string(text)+"kernel.z = 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := j.Changes()[1].Files[1]
	if err := durable.Replace(mem, link, []byte("mtu = 5000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	outcomes, err := j.UndoAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left := slices.Concat(outcomes[0].FilesLeft, outcomes[1].FilesLeft)
	if !slices.Equal(left, []string{link}) || !strings.Contains(j.Changes()[1].Note, link) {
		t.Errorf("left %v, note %q", left, j.Changes()[1].Note)
	}
	rest, err := mem.ReadFile(ours)
	info, statErr := mem.Stat(ours)
	if err != nil || statErr != nil || string(rest) != "kernel.y = 2\nkernel.z = 3\n" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, %v", rest, info.Mode(), err)
	}
	if got, _ := mem.ReadFile(link); string(got) != "mtu = 5000\n" {
		t.Errorf("%s: %q", link, got)
	}
}

// What cannot be persisted is refused before anything is written.
func TestPersistRefuses(t *testing.T) {
	mem, k := durable.NewMem(), newHost()
	etc(t, mem)
	before := tree(t, mem, "/etc")
	j := open(t, options(mem, k, &clock{}))
	c := apply(t, j, journal.Request{}, rmem, "B")[0]
	taken := journal.Plan{ID: c.ID, Files: []journal.File{{Path: "/etc/hosts", Content: "x\n", Mode: 0o644}}}
	refused := func(name string, want error, plans ...journal.Plan) {
		t.Helper()
		if _, err := j.Persist(t.Context(), "/", plans...); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	refused("a trial", journal.ErrNotCommitted, plan(c))
	if err := j.Commit(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	refused("no such change", journal.ErrUnknownChange, journal.Plan{ID: "7", Files: plan(c).Files})
	refused("a user's file", journal.ErrInTheWay, taken)
	refused("no file", nil, journal.Plan{ID: c.ID})
	refused("twice", nil, plan(c), plan(c))
	k.before = func(string, knobID) error { return fs.ErrPermission }
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Persist(cancelled, "/", plan(c)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	k.before = nil
	if diff := cmp.Diff(before, tree(t, mem, "/etc")); diff != "" {
		t.Fatal(diff)
	}
	if _, err := j.Persist(t.Context(), "/", plan(c)); err != nil {
		t.Fatal(err)
	}
	refused("persisted already", journal.ErrNotCommitted, plan(c))
	if _, err := j.Undo(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	refused("undone", journal.ErrNotCommitted, plan(c))
}
