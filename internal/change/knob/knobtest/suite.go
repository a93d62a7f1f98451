package knobtest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

// Pair is a knob that can be written, with two different values in canonical form.
type Pair struct {
	Knob knob.ID
	A, B knob.Value
}

// Fixture is a host that the suite may change.
//
// ReadOnly, Unsupported, Foreign, Device and Vanish are needed as well: if a fixture could leave a
// check out, no test would notice the hole. Missing, Messy and Invalid may be empty lists.
type Fixture struct {
	Backend  knob.Backend
	Writable []Pair
	// Messy are values in another spelling and how they read back.
	Messy []Messy
	// Invalid are settings of knobs that are there, with values that are refused.
	Invalid []knob.Setting
	// ReadOnly is there and cannot be written.
	ReadOnly knob.Setting
	// Missing are well-formed names of what this host has not.
	Missing []knob.ID
	// Unsupported is of a kind that the backend does not handle.
	Unsupported knob.ID
	// Foreign writes past the backend, as another program would.
	Foreign func(t *testing.T, s knob.Setting)
	// Device is a knob of a device that Vanish takes away.
	Device knob.ID
	Vanish func(t *testing.T)
}

// Messy is a value as a user may spell it, and as it reads back.
type Messy struct {
	Knob     knob.ID
	Text     knob.Value
	ReadBack knob.Value
}

// Suite runs all checks; every check gets a fixture of its own.
//
// A fixture of its own for each check, because several leave the host in another state than they
// found it.
func Suite(t *testing.T, fixture func(t *testing.T) Fixture) {
	checks := []struct {
		name string
		run  func(t *testing.T, f Fixture)
	}{
		{"write then read", writeThenRead},
		{"restore", restore},
		{"spelling", spelling},
		{"invalid value", invalid},
		{"read-only", readOnly},
		{"missing", missing},
		{"unsupported", unsupported},
		{"cancelled", cancelled},
		{"foreign writer", foreign},
		{"concurrent writers of one knob", concurrent},
		{"concurrent writers of all knobs", concurrentAll},
		{"device disappears", disappear},
		{"device disappears while it is written", disappearMidWrite},
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.run(t, fixture(t)) })
	}
}

func read(t *testing.T, f Fixture, id knob.ID) knob.Value {
	t.Helper()
	v, err := f.Backend.Read(t.Context(), id)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return v
}

func write(t *testing.T, f Fixture, id knob.ID, v knob.Value) {
	t.Helper()
	if err := f.Backend.Write(t.Context(), id, v); err != nil {
		t.Fatalf("write %q: %v", v, err)
	}
}

func expect(t *testing.T, f Fixture, id knob.ID, want knob.Value) {
	t.Helper()
	if got := read(t, f, id); got != want {
		t.Errorf("%s reads %q; want %q", id, got, want)
	}
}

// refused checks that an error is of a kind, names operation and knob, and is no other of the three
// answers.
//
// "One of the three answers, and only one" is what callers build on: a missing knob is skipped, a
// forbidden one asks for root, an unsupported one is left out of the experiment.
func refused(t *testing.T, err error, op string, id knob.ID, is error) {
	t.Helper()
	if !errors.Is(err, is) {
		t.Errorf("%s %s: %v; want %v", op, id, err, is)
		return
	}
	var e *knob.Error
	if !errors.As(err, &e) || e.Op != op || e.Knob != id {
		t.Errorf("%s %s: error %#v does not name operation and knob", op, id, err)
	}
	kinds := 0
	for _, k := range []error{fs.ErrNotExist, fs.ErrPermission, knob.ErrNotSupported, knob.ErrInvalid} {
		if errors.Is(err, k) {
			kinds++
		}
	}
	if kinds > 1 {
		t.Errorf("%s %s: %v answers %d things at once", op, id, err, kinds)
	}
}

// The same value twice in a row is a write that changes nothing; backends must not refuse it.
func writeThenRead(t *testing.T, f Fixture) {
	for _, p := range f.Writable {
		for _, v := range []knob.Value{p.A, p.B, p.B, p.A} {
			write(t, f, p.Knob, v)
			expect(t, f, p.Knob, v)
		}
	}
}

// restore puts back the originals of all knobs after all were changed: what an undo does.
//
// Newest first, as the journal does it: the original of a later write may depend on an earlier one.
func restore(t *testing.T, f Fixture) {
	originals := make(map[knob.ID]knob.Value)
	for _, p := range f.Writable {
		originals[p.Knob] = read(t, f, p.Knob)
		write(t, f, p.Knob, p.B)
	}
	for i := len(f.Writable) - 1; i >= 0; i-- {
		write(t, f, f.Writable[i].Knob, originals[f.Writable[i].Knob])
	}
	for id, v := range originals {
		expect(t, f, id, v)
	}
}

func spelling(t *testing.T, f Fixture) {
	for _, m := range f.Messy {
		write(t, f, m.Knob, m.Text)
		expect(t, f, m.Knob, m.ReadBack)
	}
	// What a backend reads is canonical: the definition has nothing to change about it.
	c := knob.Catalogue()
	for _, p := range f.Writable {
		d, ok := c.Lookup(p.Knob)
		if !ok {
			continue
		}
		v := read(t, f, p.Knob)
		if n, err := d.Canonical(v); err != nil || n != v {
			t.Errorf("%s reads %q, whose canonical form is %q, %v", p.Knob, v, n, err)
		}
	}
}

func invalid(t *testing.T, f Fixture) {
	for _, s := range f.Invalid {
		before := read(t, f, s.Knob)
		refused(t, f.Backend.Write(t.Context(), s.Knob, s.Value), "write", s.Knob, knob.ErrInvalid)
		expect(t, f, s.Knob, before)
	}
}

// Running as root does not help here, so that the plain permission error, whose hint asks for root,
// would be the wrong one.
func readOnly(t *testing.T, f Fixture) {
	if f.ReadOnly.Knob == "" {
		t.Fatal("the fixture names no read-only knob")
	}
	before := read(t, f, f.ReadOnly.Knob)
	err := f.Backend.Write(t.Context(), f.ReadOnly.Knob, f.ReadOnly.Value)
	refused(t, err, "write", f.ReadOnly.Knob, fs.ErrPermission)
	if !errors.Is(err, knob.ErrReadOnly) && !errors.Is(err, knob.ErrGlobal) {
		t.Errorf("%v; want ErrReadOnly or ErrGlobal: a permission alone would not help", err)
	}
	expect(t, f, f.ReadOnly.Knob, before)
}

func missing(t *testing.T, f Fixture) {
	for _, id := range f.Missing {
		_, err := f.Backend.Read(t.Context(), id)
		refused(t, err, "read", id, fs.ErrNotExist)
		refused(t, f.Backend.Write(t.Context(), id, "1"), "write", id, fs.ErrNotExist)
	}
}

func unsupported(t *testing.T, f Fixture) {
	if f.Unsupported == "" {
		t.Fatal("the fixture names no knob that is not supported")
	}
	_, err := f.Backend.Read(t.Context(), f.Unsupported)
	refused(t, err, "read", f.Unsupported, knob.ErrNotSupported)
	refused(t, f.Backend.Write(t.Context(), f.Unsupported, "1"), "write", f.Unsupported, knob.ErrNotSupported)
}

// A write under a context that is over must not reach the kernel at all: the caller has begun to
// take things back.
func cancelled(t *testing.T, f Fixture) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := f.Writable[0]
	before := read(t, f, p.Knob)
	for _, v := range []knob.Value{p.A, p.B} {
		if err := f.Backend.Write(ctx, p.Knob, v); !errors.Is(err, context.Canceled) {
			t.Errorf("write: %v; want context.Canceled", err)
		}
	}
	if _, err := f.Backend.Read(ctx, p.Knob); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v; want context.Canceled", err)
	}
	expect(t, f, p.Knob, before)
}

// It shows that nothing is cached: what another program writes is what the next read gives.
func foreign(t *testing.T, f Fixture) {
	if f.Foreign == nil {
		t.Fatal("the fixture has no foreign writer")
	}
	for _, p := range f.Writable {
		for _, v := range []knob.Value{p.A, p.B} {
			f.Foreign(t, knob.Setting{Knob: p.Knob, Value: v})
			expect(t, f, p.Knob, v)
		}
	}
}

// rounds is how often every writer writes. Writers overlap from the first round on; a guest without
// hardware acceleration needs a second for each further one.
const rounds = 4

// concurrent lets several writers fight over one knob: every number that is read is one that a
// writer wrote.
//
// It is no claim about who wins, nor about several numbers together: the kernel writes the three of
// a setting such as tcp_rmem one after the other (proc_dointvec_minmax) and locks out no reader
// meanwhile, which two CPUs show once in a while.
func concurrent(t *testing.T, f Fixture) {
	p := f.Writable[0]
	write(t, f, p.Knob, p.A)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			v := p.A
			if i%2 == 1 {
				v = p.B
			}
			for range rounds {
				if err := f.Backend.Write(t.Context(), p.Knob, v); err != nil {
					t.Error(err)
				}
				got, err := f.Backend.Read(t.Context(), p.Knob)
				if err != nil || !composed(got, p.A, p.B) {
					t.Errorf("read %q, %v; written were %q and %q", got, err, p.A, p.B)
				}
			}
		})
	}
	wg.Wait()
}

// composed reports whether every field of a value is that of a or that of b at its place.
func composed(got, a, b knob.Value) bool {
	fields, as, bs := strings.Fields(string(got)), strings.Fields(string(a)), strings.Fields(string(b))
	if len(as) != len(bs) || len(fields) != len(as) {
		return got == a || got == b
	}
	for i, f := range fields {
		if f != as[i] && f != bs[i] {
			return false
		}
	}
	return true
}

// concurrentAll returns every knob a writer of its own: none may undo the work of another, although
// some live in one kernel object (the metrics of a route).
func concurrentAll(t *testing.T, f Fixture) {
	var wg sync.WaitGroup
	for _, p := range f.Writable {
		wg.Go(func() {
			for range rounds {
				for _, v := range []knob.Value{p.A, p.B} {
					if err := f.Backend.Write(t.Context(), p.Knob, v); err != nil {
						t.Error(err)
						return
					}
					got, err := f.Backend.Read(t.Context(), p.Knob)
					if err != nil || got != v {
						t.Errorf("%s reads %q, %v; its only writer wrote %q", p.Knob, got, err, v)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	for _, p := range f.Writable {
		expect(t, f, p.Knob, p.B)
	}
}

// A hot-unplugged NIC must be "not there" and neither a permission nor a crash, so that an undo can
// say that nothing is left to restore.
func disappear(t *testing.T, f Fixture) {
	if f.Vanish == nil {
		t.Fatal("the fixture has no device to take away")
	}
	before := read(t, f, f.Device)
	f.Vanish(t)
	_, err := f.Backend.Read(t.Context(), f.Device)
	refused(t, err, "read", f.Device, fs.ErrNotExist)
	refused(t, f.Backend.Write(t.Context(), f.Device, before), "write", f.Device, fs.ErrNotExist)
}

// disappearMidWrite takes the device away under a writer that never stops. The moment may be
// between a read and a write, or between the parts of one write. The only answer the writer may get
// is that the device does not exist.
//
// It is one writer, because of two each might read back the number of the other, which looks as if
// the driver had not taken its own.
func disappearMidWrite(t *testing.T, f Fixture) {
	now := read(t, f, f.Device)
	p := Pair{Knob: f.Device, A: now, B: now}
	for _, w := range f.Writable {
		if w.Knob == f.Device {
			p = w
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writer sync.WaitGroup
	begun := make(chan struct{})
	writer.Go(func() {
		started := sync.OnceFunc(func() { close(begun) })
		defer started()
		for values := []knob.Value{p.A, p.B}; ctx.Err() == nil; slices.Reverse(values) {
			err := f.Backend.Write(ctx, p.Knob, values[0])
			started()
			if err != nil {
				if ctx.Err() == nil {
					refused(t, err, "write", p.Knob, fs.ErrNotExist)
				}
				return
			}
		}
	})
	<-begun
	f.Vanish(t)
	_, err := f.Backend.Read(t.Context(), p.Knob)
	refused(t, err, "read", p.Knob, fs.ErrNotExist)
	refused(t, f.Backend.Write(t.Context(), p.Knob, p.A), "write", p.Knob, fs.ErrNotExist)
	stop()
	writer.Wait()
}
