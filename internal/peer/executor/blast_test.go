package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/order"
)

// These tests are the blast-radius table of docs/design: what each stolen thing can do to a host at
// most. What its subjects on the transport allow is tested there.

// TestStolenHostKey: the key with which a host joins signs no orders, for itself or for others.
func TestStolenHostKey(t *testing.T) {
	h := newHost(t)
	for _, name := range []string{"host-1", "host-2"} {
		o := h.try("o-" + name)
		payload, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for _, claimed := range []string{name, "ann"} { // under its own name, and under a person's
			e := order.Envelope{Payload: payload}
			e.Sign(claimed, private(name))
			data, err := e.Encode()
			if err != nil {
				t.Fatal(err)
			}
			want := order.KeyUnknown
			if claimed == "ann" {
				want = order.BadSignature
			}
			h.deliver(data, want)
		}
	}
	h.holds(rmem, "212992")
}

// TestStolenHub gives an adversary all signed orders of two rollouts, the socket and the time of
// day of delivery, but no key. It alters, repeats, reorders and withholds as it likes. The knob
// only ever holds values that people have signed, no trial outlives its deadline, and after the
// last not-after nothing changes any more.
func TestStolenHub(t *testing.T) {
	committed := 0
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 11))
		h := newHost(t)
		var stolen [][]byte
		for i := range 3 {
			try := h.try(fmt.Sprint("o", i))
			if i == 2 {
				try.Expect, try.To = "4194304", "6291456"
			}
			stolen = append(stolen, sign(t, try, "ann"))
			if seed%2 == 0 { // people sign the commits with the tries, or they wait
				stolen = append(stolen, sign(t, h.about(try, order.Commit), "ann"))
			}
			stolen = append(stolen, sign(t, h.about(try, order.Undo), "ann"))
		}
		var since time.Duration // start of the trial in force
		for n := range 100 {
			// Mostly in order, since a later serial ends the use of all earlier ones.
			data := append([]byte(nil), stolen[min(n/8+rng.IntN(2), len(stolen)-1)]...)
			if rng.IntN(3) == 0 {
				data = append([]byte(nil), stolen[rng.IntN(len(stolen))]...)
				data[rng.IntN(len(data))] ^= byte(1 << rng.IntN(8))
			}
			before := h.knobs.Values()[rmem]
			a := h.executor().Execute(context.Background(), data)
			value := h.knobs.Values()[rmem]
			if value != before && a.Code == order.InTrial {
				since = h.up
			}
			if a.Code == order.Committed {
				committed++
				since = 0
			}
			if value != "212992" && value != "4194304" && value != "6291456" {
				t.Fatalf("seed %d: no person has signed %q: %+v", seed, value, a)
			}
			h.pass(time.Duration(rng.IntN(10)) * time.Second)
			h.recover() // the guard
			if held := h.knobs.Values()[rmem]; since != 0 && seed%2 == 1 && held != "212992" &&
				h.up-since > time.Minute {
				t.Fatalf("seed %d: a trial lasts %v", seed, h.up-since)
			}
		}
		h.pass(2 * time.Hour)
		h.recover()
		last := h.knobs.Values()[rmem]
		for _, data := range stolen {
			if a := h.executor().Execute(context.Background(), data); h.knobs.Values()[rmem] != last {
				t.Fatalf("seed %d: after not-after: %+v", seed, a)
			}
		}
		if seed%2 == 1 && last != "212992" {
			t.Errorf("seed %d: %q stays without a signed commit", seed, last)
		}
	}
	if committed == 0 {
		t.Error("no signed commit was carried out: the test shows nothing")
	}
}

// ordersFor tries to change every knob of the catalogue with some keys, and returns those that
// the host changed.
func ordersFor(t *testing.T, keys ...string) (changed []knob.ID) {
	values := map[knob.ID]knob.Value{}
	for n, d := range knob.Catalogue().Own() {
		if n%8 != 0 && !strings.HasPrefix(string(d.Pattern), "sysctl:net.core.") &&
			!strings.Contains(string(d.Pattern), "/ring.") {
			continue // every eighth of those that must be refused
		}
		id := knob.ID(strings.ReplaceAll(string(d.Pattern), "*", "eth0"))
		if _, err := knob.ParseID(string(id)); err == nil {
			for _, v := range []knob.Value{"0", "4096", "on"} {
				if _, err := d.Normalize(v); err == nil {
					values[id] = v
				}
			}
		}
	}
	h := newHost(t)
	h.policy = "version: 1\nchanges:\n  allow: [\"sysctl:net.core.*\", \"ethtool:*/ring.rx\"]\n" +
		"  deny: [\"sysctl:net.core.wmem_max\"]\n  max_class: d2\n  max_deadline: 60s\n"
	for id, value := range values {
		h.knobs.Set(id, value)
	}
	serial := uint64(0)
	for id, value := range values {
		serial++
		o := h.try(fmt.Sprint("x", serial))
		o.Knob, o.Expect, o.Serial = id, value, 1
		for _, to := range []knob.Value{"0", "1", "8192", "off"} {
			if to == value {
				continue
			}
			if o.To = to; h.executor().Execute(context.Background(), sign(t, o, keys...)).Code.Acted() {
				changed = append(changed, id)
				h.pass(2 * time.Minute)
				h.recover()
				break
			}
			o.Serial++
			o.ID += "x"
		}
	}
	return changed
}

// TestStolenOrderKey: one key changes knobs of class d0 and d1 on the allow list and no others; two
// keys reach the limit of the policy and no further; no key names a file or a command.
func TestStolenOrderKey(t *testing.T) {
	within := func(changed []knob.ID, most knob.Disturbance) {
		t.Helper()
		for _, id := range changed {
			d, known := knob.Catalogue().Lookup(id)
			listed := strings.HasPrefix(string(id), "sysctl:net.core.") && id != wmem || id.Fits("ethtool:*/ring.rx")
			if !known || !listed || d.Disturbance > most || d.Secret || d.Advise {
				t.Errorf("%s of class %s was changed", id, d.Disturbance)
			}
		}
	}
	one := ordersFor(t, "ann")
	two := ordersFor(t, "ann", "bob")
	within(one, knob.DisturbsNewSockets)
	within(two, knob.DisturbsBriefLoss)
	if len(one) == 0 || len(two) <= len(one) {
		t.Errorf("one key changes %d knobs, two change %d", len(one), len(two))
	}
	t.Logf("one key changes %d knobs and two change %d", len(one), len(two))
	for _, name := range []knob.ID{"/etc/passwd", "sysctl:../../etc/passwd", "sysctl:kernel/core_pattern",
		"run:rm", "file:/etc/x"} {
		h := newHost(t)
		o := h.try("o1")
		o.Knob = name
		if _, err := o.Encode(); err == nil {
			h.deliver(sign(t, o, "ann", "bob"), order.KnobDenied)
		}
	}
}

// FuzzStolenOrderKey lets a thief of one key sign whatever he wants about a host with a kept change
// whose policy lets two people persist. He changes what one person may, and makes nothing
// permanent.
func FuzzStolenOrderKey(f *testing.F) {
	f.Add("o2", "persist", "o1", string(rmem), "212992", "4194304", uint64(5), uint64(9), int64(0), int64(3600), int64(0))
	f.Add("o3", "try", "", string(ring), "256", "512", uint64(5), uint64(9), int64(-60), int64(3600), int64(60))
	f.Add("o4", "try", "", string(rmem), "4194304", "8388608", uint64(6), uint64(9), int64(-60), int64(3600), int64(60))
	f.Add("o5", "undo", "o1", string(rmem), "212992", "4194304", uint64(5), uint64(9), int64(0), int64(3600), int64(0))
	f.Fuzz(func(t *testing.T, id, verb, of, name, expect, to string, epoch, serial uint64, from, until, deadline int64) {
		h, try := persisting(t)
		h.send(h.about(try, order.Commit), order.Committed)
		at := epochStart.Unix()
		o := order.Order{ID: id, Rollout: "r1", Host: "host-1", Verb: order.Verb(verb), Of: of, Epoch: epoch, Serial: serial,
			Knob: knob.ID(name), Expect: knob.Value(expect), To: knob.Value(to), NotBefore: at + from, NotAfter: at + until,
			Deadline: deadline}
		payload, err := json.Marshal(o) // not Encode: a thief need not keep to the form
		if err != nil {
			t.Skip()
		}
		e := order.Envelope{Payload: payload}
		e.Sign("ann", private("ann"))
		data, err := e.Encode()
		if err != nil {
			t.Skip()
		}
		a := h.executor().Execute(t.Context(), data)
		h.files(false)
		h.holds(ring, "256")
		h.holds(wmem, "212992")
		if a.Code == order.Persisted || a.Code == order.InTrial && (deadline > 300 || knob.ID(name) != rmem) {
			t.Errorf("%+v to %+v", a, o)
		}
	})
}
