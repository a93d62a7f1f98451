package journal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
)

const (
	scheduler  = knob.ID("block:vda/scheduler")
	requests   = knob.ID("block:vda/nr_requests")
	writeback  = knob.ID("block:vda/wbt_lat_usec")
	dirtyBytes = knob.ID("sysctl:vm.dirty_bytes")
	dirtyRatio = knob.ID("sysctl:vm.dirty_ratio")
)

// coupledHost is a host with a disk and with two settings that exclude each other, as Linux has
// them: a new scheduler gets a queue of its default length (blk_mq_init_sched), bfq switches the
// throttling of writes off, and without a scheduler it is not there in this model. 64 requests
// are the choice of another program. dirty_bytes_handler refuses 0; each of the pair sets the
// other to 0.
func coupledHost() *knobs {
	k := newKnobs(values{scheduler: "mq-deadline", requests: "64", writeback: "75000", dirtyBytes: "0", dirtyRatio: "20"})
	k.coupled = map[knob.ID][]knob.ID{
		scheduler: {requests, writeback}, dirtyBytes: {dirtyRatio}, dirtyRatio: {dirtyBytes},
	}
	k.sets = func(all map[knob.ID]knob.Value, id knob.ID, v knob.Value) error {
		switch {
		case id == scheduler && v == all[id]: // the kernel does nothing
		case id == scheduler:
			all[requests] = map[knob.Value]knob.Value{"mq-deadline": "256", "none": "1023", "bfq": "128"}[v]
			all[writeback] = map[knob.Value]knob.Value{"mq-deadline": "75000", "bfq": "0"}[v]
			if v == "none" {
				delete(all, writeback)
			}
		case id == dirtyBytes && v == "0":
			return syscall.EINVAL
		case id == dirtyBytes:
			all[dirtyRatio] = "0"
		case id == dirtyRatio && v != all[id]:
			all[dirtyBytes] = "0"
		}
		return nil
	}
	return k
}

// coupledScript is a life in which changes set other knobs as well, and are undone in any order.
func coupledScript() []step {
	apply := func(pairs ...string) func(context.Context, *journal.Journal) error {
		return func(ctx context.Context, j *journal.Journal) error {
			_, err := j.Apply(ctx, journal.Request{}, settings(pairs...)...)
			return err
		}
	}
	undo := func(id string) func(context.Context, *journal.Journal) error {
		return func(ctx context.Context, j *journal.Journal) error { _, err := j.Undo(ctx, id); return err }
	}
	commit := func(id string) func(context.Context, *journal.Journal) error {
		return func(ctx context.Context, j *journal.Journal) error { return j.Commit(ctx, id) }
	}
	at := func(s, r, w, bytes, ratio string) values {
		v := values{scheduler: knob.Value(s), requests: knob.Value(r), writeback: knob.Value(w),
			dirtyBytes: knob.Value(bytes), dirtyRatio: knob.Value(ratio)}
		if w == "" {
			delete(v, writeback)
		}
		return v
	}
	first := at("mq-deadline", "64", "75000", "0", "20")
	none := at("none", "1023", "", "0", "20")
	return []step{
		{"another scheduler", apply(string(scheduler), "none"), none, first},
		{"commit it", commit("1"), none, none},
		{"a longer queue", apply(string(requests), "512"), at("none", "512", "", "0", "20"), none},
		{"a third scheduler", apply(string(scheduler), "bfq"), at("bfq", "128", "0", "0", "20"), none},
		{"undo the third", undo("3"), at("none", "512", "", "0", "20"), none},
		{"undo the first below the queue", undo("1"), at("mq-deadline", "512", "75000", "0", "20"), first},
		{"bytes", apply(string(dirtyBytes), "1000000"), at("mq-deadline", "512", "75000", "1000000", "0"), first},
		{"commit bytes", commit("4"), at("mq-deadline", "512", "75000", "1000000", "0"),
			at("mq-deadline", "64", "75000", "1000000", "0")},
		{"the ratio on top", apply(string(dirtyRatio), "10"), at("mq-deadline", "512", "75000", "0", "10"),
			at("mq-deadline", "64", "75000", "1000000", "0")},
		{"undo bytes below it", undo("4"), at("mq-deadline", "512", "75000", "0", "10"), first},
		{"undo all", func(ctx context.Context, j *journal.Journal) error { _, err := j.UndoAll(ctx); return err },
			first, first},
	}
}

// A change says what it set as well, and its end brings that back, but nothing that another program
// has set since.
func TestSideEffects(t *testing.T) {
	for name, test := range map[string]struct {
		other map[knob.ID]knob.Value // what another program sets while the change is in force
		fail  knob.ID                // the knob whose writes fail after the change
		want  values                 // after the undo, where it is not as it was
		note  string
		err   string
	}{
		"alone":           {note: "undone; put back as well: block:vda/nr_requests"},
		"foreign queue":   {other: values{requests: "32"}, want: values{requests: "32"}},
		"foreign default": {other: values{requests: "64"}, note: "undone; put back as well: block:vda/nr_requests"},
		"foreign scheduler": {other: values{scheduler: "kyber"},
			want: values{scheduler: "kyber", requests: "128", writeback: "0"}},
		"undone by hand": {other: values{scheduler: "mq-deadline", requests: "256", writeback: "75000"},
			want: values{requests: "256"}},
		"removed in between":  {other: values{writeback: ""}},
		"refused by the disk": {fail: requests, want: values{requests: "256"}, err: "put back 64 of block:vda/nr_requests"},
	} {
		t.Run(name, func(t *testing.T) {
			k := coupledHost()
			j := open(t, options(durable.NewMem(), k, &clock{}))
			c := apply(t, j, journal.Request{}, string(scheduler), "bfq")[0]
			if diff := cmp.Diff([]journal.SideEffect{{Knob: requests, From: "64", To: "128"},
				{Knob: writeback, From: "75000", To: "0"}}, c.SideEffects); diff != "" {
				t.Fatal(diff)
			}
			for id, v := range test.other {
				k.set(id, v)
				if v == "" {
					delete(k.values, id)
				}
			}
			k.before = func(op string, id knob.ID) error {
				if op == "write" && id == test.fail {
					return syscall.EBUSY
				}
				return nil
			}
			outcomes, err := j.Undo(t.Context(), c.ID)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Fatalf("undo: %v", err)
			}
			if test.note != "" && outcomes[0].Change.Note != test.note {
				t.Errorf("note %q", outcomes[0].Change.Note)
			}
			want := coupledHost().values
			for id, v := range test.want {
				want[id] = v
			}
			if diff := cmp.Diff(want, k.values); diff != "" {
				t.Error(diff)
			}
			if test.err == "" {
				return
			}
			// A change stays open after the first failure; the next attempt ends it, and names what is
			// missing.
			outcomes, err = j.Undo(t.Context(), c.ID)
			if len(outcomes) != 1 || outcomes[0].Change.State != journal.Undone ||
				!strings.Contains(fmt.Sprint(outcomes[0].Change.Note, err), test.err) {
				t.Errorf("again: %+v, %v", outcomes, err)
			}
		})
	}
}

// A knob that is busy for a moment is put back by the next attempt.
func TestSideEffectBusyForAMoment(t *testing.T) {
	k := coupledHost()
	j := open(t, options(durable.NewMem(), k, &clock{}))
	c := apply(t, j, journal.Request{}, string(scheduler), "bfq")[0]
	busy := true
	k.before = func(op string, id knob.ID) error {
		if busy && op == "write" && id == requests {
			return syscall.EBUSY
		}
		return nil
	}
	if _, err := j.Undo(t.Context(), c.ID); err == nil {
		t.Fatal("no error")
	}
	busy = false
	outcomes, err := j.Recover(t.Context())
	if err != nil || len(outcomes) != 1 || !outcomes[0].Restored {
		t.Fatalf("%+v, %v", outcomes, err)
	}
	if diff := cmp.Diff(coupledHost().values, k.values); diff != "" {
		t.Error(diff)
	}
}

// A write that is refused after the kernel has set other knobs leaves nothing behind.
func TestSideEffectsOfARefusedWrite(t *testing.T) {
	for _, half := range []bool{false, true} {
		k := coupledHost()
		sets := k.sets
		k.sets = func(all map[knob.ID]knob.Value, id knob.ID, v knob.Value) error {
			err := sets(all, id, v)
			if id == scheduler && v == "bfq" {
				if half {
					all[scheduler] = v
				}
				return syscall.EIO
			}
			return err
		}
		j := open(t, options(durable.NewMem(), k, &clock{}))
		if _, err := j.Apply(t.Context(), journal.Request{}, settings(string(scheduler), "bfq")...); err == nil {
			t.Fatal("no error")
		}
		if diff := cmp.Diff(coupledHost().values, k.values); diff != "" {
			t.Errorf("half done %v: %s", half, diff)
		}
	}
}

// Whatever the order in which coupled changes are made, committed and undone, undo of all of them
// brings the host back.
func TestRandomCoupledLives(t *testing.T) {
	choices := []struct {
		id     knob.ID
		values []string
	}{
		{scheduler, []string{"none", "bfq", "mq-deadline"}}, {requests, []string{"32", "64", "128", "512"}},
		{writeback, []string{"0", "2000"}}, {dirtyBytes, []string{"1000000", "2000000"}}, {dirtyRatio, []string{"5", "20"}},
	}
	for seed := range 20 * lives() {
		rng := rand.New(rand.NewPCG(seed, 7))
		mem, k := durable.NewMem(), coupledHost()
		j := open(t, options(mem, k, &clock{}))
		var done []string
		pending := false // an undo that is not finished; its second failure would be the last
		for range 12 {
			switch c := choices[rng.IntN(len(choices))]; {
			case rng.IntN(3) > 0:
				value := c.values[rng.IntN(len(c.values))]
				changes, err := j.Apply(t.Context(), journal.Request{}, settings(string(c.id), value)...)
				// That one may not be there, and an undo that is not finished must be first.
				if err != nil && c.id != writeback && !errors.Is(err, journal.ErrNeedsRecovery) {
					t.Fatal(err)
				}
				done = append(done, fmt.Sprint(c.id, "=", value))
				_ = changes
			default:
				all := j.Changes()
				if len(all) == 0 {
					continue
				}
				id := all[rng.IntN(len(all))].ID
				// Sometimes the disk is busy, so that the undo is finished later.
				busy := !pending && rng.IntN(4) == 0
				done = append(done, fmt.Sprint("undo ", id, " busy ", busy))
				k.before = func(op string, of knob.ID) error {
					if busy && op == "write" && (of == requests || of == writeback) {
						return syscall.EBUSY
					}
					return nil
				}
				_, err := j.Undo(t.Context(), id)
				if k.before = nil; err != nil && !busy && !errors.Is(err, journal.ErrNeedsRecovery) {
					t.Fatalf("seed %d: %v: undo %s: %v", seed, done, id, err)
				}
				pending = pending || err != nil
				if err != nil && rng.IntN(2) == 0 {
					pending = false
					if _, err := j.Recover(t.Context()); err != nil {
						t.Fatalf("seed %d: %v: recover: %v", seed, done, err)
					}
				}
			}
		}
		if _, err := j.Recover(t.Context()); err != nil {
			t.Fatalf("seed %d: %v: recover: %v", seed, done, err)
		}
		if _, err := j.UndoAll(t.Context()); err != nil {
			t.Fatalf("seed %d: %v: %v", seed, done, err)
		}
		if diff := cmp.Diff(coupledHost().values, k.values); diff != "" {
			t.Fatalf("seed %d: %v: %s\n%+v", seed, done, diff, j.Changes())
		}
	}
}

// An interface that was renamed keeps its side effects, also where the name changes while an undo
// is interrupted.
func TestSideEffectsOfARenamedInterface(t *testing.T) {
	mtuOf := func(name string) knob.ID { return knob.ID("link:" + name + "/mtu") }
	ipv6Of := func(name string) knob.ID { return knob.ID("sysctl:net.ipv6.conf." + name + ".mtu") }
	k := newKnobs(values{mtuOf("eth0"): "1500", ipv6Of("eth0"): "1400"})
	k.coupled = map[knob.ID][]knob.ID{}
	for _, name := range []string{"eth0", "eth1", "eth2"} {
		k.coupled[mtuOf(name)] = []knob.ID{ipv6Of(name)}
	}
	k.sets = func(all map[knob.ID]knob.Value, id knob.ID, v knob.Value) error {
		if id.Kind() == knob.KindLink {
			all[ipv6Of(id.Interface())] = v
		}
		return nil
	}
	name := "eth0"
	rename := func(to string) {
		k.values = values{mtuOf(to): k.values[mtuOf(name)], ipv6Of(to): k.values[ipv6Of(name)]}
		name = to
	}
	o := options(durable.NewMem(), k, &clock{})
	o.Identify = func(id knob.ID) journal.Identity {
		if id.Interface() == name {
			return journal.Identity{Device: "7"}
		}
		return journal.Identity{}
	}
	o.Locate = func(journal.Identity) string { return name }
	j := open(t, o)
	c := apply(t, j, journal.Request{}, string(mtuOf("eth0")), "9000")[0]
	rename("eth1")
	busy := true
	k.before = func(op string, id knob.ID) error {
		if busy && op == "write" && id == ipv6Of("eth1") {
			return syscall.EBUSY
		}
		return nil
	}
	if _, err := j.Undo(t.Context(), c.ID); err == nil {
		t.Fatal("no error")
	}
	busy = false
	rename("eth2")
	if _, err := j.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(values{mtuOf("eth2"): "1500", ipv6Of("eth2"): "1400"}, k.values); diff != "" {
		t.Error(diff)
	}
}
