package journal_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
)

// storage is a file system whose faults begin while a trial is in force.
type storage struct {
	durable.FS
	mu     sync.Mutex
	fails  func(durable.Op) error
	frozen bool // writes hang, as after fsfreeze(8)
	silent bool // everything hangs, as with an NFS server that is gone
	thaw   chan struct{}
}

// on puts the storage on top of another file system.
func (s *storage) on(fsys durable.FS) durable.FS {
	s.FS = durable.NewFaulty(fsys, s.hook)
	return s
}

// wait waits for the end of what the file system hangs in.
func (s *storage) wait(writes bool) {
	s.mu.Lock()
	hangs := s.silent || s.frozen && writes
	s.mu.Unlock()
	if hangs {
		<-s.thaw
	}
}

// hang makes the storage hang, with one of its two ways.
func (s *storage) hang(way *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*way = true
}

func (s *storage) Stat(name string) (fs.FileInfo, error) {
	s.wait(false)
	return s.FS.Stat(name)
}

func (s *storage) ReadFile(name string) ([]byte, error) {
	s.wait(false)
	return s.FS.ReadFile(name)
}

func (s *storage) OpenAppend(name string, perm fs.FileMode) (durable.File, error) {
	s.wait(true)
	return s.FS.OpenAppend(name, perm)
}

func (s *storage) SyncDir(name string) error {
	s.wait(true)
	return s.FS.SyncDir(name)
}

// Lock hangs with the lock: flock(2) does not write, and what a holder writes after it does.
func (s *storage) Lock(name string) (io.Closer, error) {
	s.wait(false)
	lock, err := s.FS.Lock(name)
	s.wait(true)
	return lock, err
}

func (s *storage) Remove(name string) error {
	s.wait(true)
	return s.FS.Remove(name)
}

func (s *storage) hook(op durable.Op) error {
	s.mu.Lock()
	fails := s.fails
	s.mu.Unlock()
	if fails == nil {
		return nil
	}
	return fails(op)
}

func (s *storage) set(fails func(durable.Op) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = fails
}

// pipe is the writer's end of the pipe to a guard.
type pipe struct{ *io.PipeWriter }

func (pipe) SetWriteDeadline(time.Time) error { return nil }

// TestGuardWithoutStorage: a trial goes back at its deadline, whatever happens to the storage of
// the journal while it is in force, and the guard says aloud that the journal failed.
func TestGuardWithoutStorage(t *testing.T) {
	readOnly := func(op durable.Op) error {
		switch op.Kind {
		case durable.OpReadFile, durable.OpStat, durable.OpReadDir:
			return nil
		}
		return syscall.EROFS
	}
	damage := func(change func([]byte) []byte) func(*bench, *storage) {
		return func(b *bench, _ *storage) {
			data, err := b.fsys.ReadFile("/state/journal.log")
			if err != nil {
				b.t.Fatal(err)
			}
			if err := durable.Replace(b.fsys, "/state/journal.log", change(data), 0o644); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	cases := map[string]struct {
		happens func(*bench, *storage)
		quiet   bool // the journal knows of everything in the end
	}{
		"read-only":   {happens: func(_ *bench, s *storage) { s.set(readOnly) }},
		"no input":    {happens: func(_ *bench, s *storage) { s.set(func(durable.Op) error { return syscall.EIO }) }},
		"frozen":      {happens: func(_ *bench, s *storage) { s.hang(&s.frozen) }},
		"silent":      {happens: func(_ *bench, s *storage) { s.hang(&s.silent) }},
		"emptied":     {happens: damage(func([]byte) []byte { return nil })},
		"cut short":   {happens: damage(func(b []byte) []byte { return b[:300] })},
		"one byte":    {happens: damage(func(b []byte) []byte { b = bytes.Clone(b); b[400] ^= 1; return b })},
		"another log": {happens: damage(func(b []byte) []byte { return b[:20] })},
		"log removed": {happens: func(b *bench, _ *storage) { remove(b, "/state/journal.log") }},
		"all removed": {happens: func(b *bench, _ *storage) { removeAll(b, "/state") }},
		"held by others": {quiet: true, happens: func(b *bench, s *storage) {
			holder := open(b.t, b.options(journal.Lease))
			go func() { <-s.thaw; holder.Close() }()
		}},
		"nothing": {quiet: true, happens: func(*bench, *storage) {}},
	}
	for name, test := range cases {
		for _, mode := range []journal.Mode{journal.Deadline, journal.Lease} {
			if name == "held by others" && mode == journal.Lease {
				continue // the writer of a lease has the journal itself
			}
			t.Run(name+" "+string(mode), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &storage{thaw: make(chan struct{})}
					b := newBenchOn(t, mode, time.Minute, s.on)
					b.writer.ReportTo(pipe{b.life})
					request := journal.Request{}
					if mode == journal.Deadline {
						request.For = time.Minute
					}
					// Each trial has its own deadline: those of one command are some time apart.
					apply(t, b.writer, request, rmem, "B")
					time.Sleep(300 * time.Millisecond)
					apply(t, b.writer, request, mtu, "9000")
					if mode == journal.Deadline {
						b.die() // Normally: with the message that lets trials live.
					}
					time.Sleep(10 * time.Second)
					test.happens(b, s)
					time.Sleep(49 * time.Second)
					if !b.running() || b.host.get(mtu) != "9000" || b.host.get(rmem) != "B" {
						t.Fatalf("ended before the deadline: %v\n%s", b.host.clone().values, b.log.String())
					}
					if mode == journal.Lease {
						time.Sleep(2 * time.Second) // The writer lives, and is asked to end.
						go b.writer.Close()
						b.life.Close()
					}
					time.Sleep(4 * time.Second)
					synctest.Wait()
					if b.host.get(mtu) != "1500" || b.host.get(rmem) != "A" {
						t.Errorf("5 s after the deadline: %v", b.host.clone().values)
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					if alarmed := len(b.alarms()) > 0; alarmed == test.quiet {
						t.Errorf("alarms: %q", b.alarms())
					}
					// A command that comes now does not wait for a guard whose storage hangs.
					if lock, err := b.fsys.Lock("/state/lock"); err == nil {
						lock.Close()
					} else if name != "held by others" && !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("the lock: %v", err)
					}
					close(s.thaw)
					if err := <-b.done; (err == nil) != test.quiet {
						t.Errorf("the guard reports %v", err)
					}
					if t.Failed() {
						t.Logf("log of the guard:\n%s", b.log.String())
					}
				})
			})
		}
	}
}

// TestUndoWithoutStorage: undo restores the old values although its record hangs in the storage,
// and the journal is complete after the thaw and a second undo.
func TestUndoWithoutStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storage{thaw: make(chan struct{})}
		mem := durable.NewMem()
		k, c := host(), &clock{}
		o := options(s.on(mem), k, c)
		o.Mode = journal.Deadline
		j := open(t, o)
		changes := apply(t, j, journal.Request{For: time.Hour}, rmem, "B", mtu, "9000")
		if err := j.Commit(t.Context(), changes[0].ID, changes[1].ID); err != nil {
			t.Fatal(err)
		}
		s.set(func(op durable.Op) error {
			if op.Kind.Grows() {
				<-s.thaw
			}
			return nil
		})
		began := time.Now()
		outcomes, err := j.UndoAll(t.Context())
		if !errors.Is(err, journal.ErrSilent) || !errors.Is(err, journal.ErrUnwritable) || len(outcomes) != 2 ||
			!outcomes[0].Restored || !outcomes[1].Restored {
			t.Errorf("undo: %v, %+v", err, outcomes)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("undo took %v", took)
		}
		if k.get(mtu) != "1500" || k.get(rmem) != "A" {
			t.Errorf("after undo: %v", k.clone().values)
		}
		_, err = j.Apply(t.Context(), journal.Request{For: time.Hour}, settings(mtu, "9000")...)
		if !errors.Is(err, journal.ErrSilent) {
			t.Errorf("a change after it: %v", err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		// The lock stays until the record is on disk, or it could damage the log of the next holder.
		if _, err := journal.Open(options(mem, k, c)); !errors.Is(err, journal.ErrLocked) {
			t.Errorf("opened beside a record that is still on its way: %v", err)
		}
		close(s.thaw)
		synctest.Wait()
		j = open(t, o)
		outcomes, err = j.Recover(t.Context())
		if err != nil || len(outcomes) != 1 || outcomes[0].Change.ID != changes[1].ID {
			t.Errorf("recover: %v, %+v", err, outcomes)
		}
		// The other record did not wait in the storage: its change ends when it is undone again.
		if _, err := j.UndoAll(t.Context()); err != nil {
			t.Errorf("a second undo: %v", err)
		}
		for _, change := range j.Changes() {
			if change.State != journal.Undone {
				t.Errorf("%+v", change)
			}
		}
		if k.get(mtu) != "1500" || k.get(rmem) != "A" {
			t.Errorf("in the end: %v", k.clone().values)
		}
	})
}

// TestOpenWithoutStorage: a command that cannot even read its journal says so, and leaves no lock
// behind when the storage answers at last.
func TestOpenWithoutStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storage{thaw: make(chan struct{})}
		o := options(s.on(durable.NewMem()), host(), &clock{})
		s.hang(&s.silent)
		o.Patience = time.Minute
		if _, err := journal.Open(o); !errors.Is(err, journal.ErrSilent) {
			t.Errorf("opened: %v", err)
		}
		close(s.thaw)
		synctest.Wait()
		open(t, o)
	})
}

// TestGuardMemoryAgrees: what was done without the journal is in the journal once it answers again.
func TestGuardMemoryAgrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storage{}
		b := newBenchOn(t, journal.Deadline, 0, s.on)
		b.writer.ReportTo(pipe{b.life})
		apply(t, b.writer, journal.Request{For: time.Minute}, rmem, "B", mtu, "9000")
		b.die()
		time.Sleep(time.Second)
		s.set(func(op durable.Op) error {
			if op.Kind.Grows() {
				return syscall.ENOSPC
			}
			return nil
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		if b.host.get(mtu) != "1500" || b.host.get(rmem) != "A" {
			t.Errorf("on a full disk: %v", b.host.clone().values)
		}
		s.set(nil)
		b.end("undone by guard: deadline passed", "undone by guard: deadline passed")
	})
}

// TestCommitTooLate: a commit whose record was on disk only after the deadline is none, because the
// guard does not wait for it.
func TestCommitTooLate(t *testing.T) {
	mem, k, c := durable.NewMem(), host(), &clock{}
	fsys := durable.NewFaulty(mem, func(op durable.Op) error {
		if op.Kind == durable.OpSync {
			c.advance(10 * time.Second) // A disk that needs ten seconds for every write.
		}
		return nil
	})
	o := options(fsys, k, c)
	o.Mode = journal.Deadline
	j := open(t, o)
	changes := apply(t, j, journal.Request{For: time.Minute}, rmem, "B")
	c.advance(35 * time.Second)
	if err := j.Commit(t.Context(), changes[0].ID); !errors.Is(err, journal.ErrExpired) ||
		!strings.Contains(err.Error(), "while it was being written") {
		t.Error(err)
	}
	if k.get(rmem) != "A" || j.Changes()[0].State != journal.Undone {
		t.Errorf("%v, %+v", k.values, j.Changes())
	}
}

func remove(b *bench, path string) {
	b.t.Helper()
	if err := b.fsys.Remove(path); err != nil {
		b.t.Fatal(err)
	}
}

func removeAll(b *bench, dir string) {
	b.t.Helper()
	names, err := b.fsys.ReadDir(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, name := range names {
		remove(b, dir+"/"+name)
	}
	remove(b, dir)
}

// TestNoticesAreLines: the next command shows each line once, although a guard left it at each
// attempt, and nothing for the line that a full disk did not take.
func TestNoticesAreLines(t *testing.T) {
	for stored, want := range map[string][]string{
		"":                  nil,
		"\n":                nil,
		"one\ntwo\none\n\n": {"one", "two"},
		"cut":               {"cut"},
	} {
		mem := durable.NewMem()
		open(t, options(mem, host(), &clock{})).Close()
		if err := durable.Replace(mem, "/state/notices", []byte(stored), 0o644); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, journal.TakeNotices(mem, "/state")); diff != "" {
			t.Errorf("%q: %s", stored, diff)
		}
	}
}
