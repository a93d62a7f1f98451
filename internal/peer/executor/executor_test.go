package executor_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/peer/order"
	"github.com/linerate/linerate/internal/peer/policy"
)

const (
	rmem = knob.ID("sysctl:net.core.rmem_max")
	wmem = knob.ID("sysctl:net.core.wmem_max")
	ring = knob.ID("ethtool:eth0/ring.rx")
)

var epochStart = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func private(name string) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte((name + strings.Repeat("-", ed25519.SeedSize))[:ed25519.SeedSize]))
}

// host is a host in memory: its disk, its knobs and its clocks.
type host struct {
	t      testing.TB
	fs     durable.FS
	knobs  *knob.Memory
	policy string
	boot   string
	up     time.Duration // CLOCK_BOOTTIME
	wall   time.Time
	serial uint64
}

func newHost(t testing.TB) *host {
	return &host{t: t, fs: durable.NewMem(), boot: "boot 1", up: time.Hour, wall: epochStart,
		knobs: knob.NewMemory(map[knob.ID]knob.Value{rmem: "212992", wmem: "212992", ring: "256"}),
		policy: "version: 1\nchanges:\n  allow: [\"sysctl:net.core.*\", \"ethtool:*/ring.rx\"]\n" +
			"  deny: [\"sysctl:net.core.wmem_max\"]\n  max_class: d2\n"}
}

func (h *host) journal() (*journal.Journal, error) { return h.journalOf("") }

// journalOf opens the journal for changes of one side.
func (h *host) journalOf(side string) (*journal.Journal, error) {
	return journal.Open(journal.Options{Dir: "/state", FS: h.fs, Backend: h.knobs, Catalog: knob.Catalogue(),
		Side: side, Mode: journal.Deadline, Unguarded: true, BootID: h.boot, Boottime: func() time.Duration { return h.up },
		Now:      func() time.Time { return h.wall },
		Identify: func(knob.ID) journal.Identity { return journal.Identity{} }})
}

func (h *host) executor() *executor.Executor {
	return executor.New(executor.Config{Host: "host-1", State: "/state", FS: h.fs, Open: h.journal, Read: h.knobs.Read,
		Keys: func() (order.Keys, error) {
			return order.Keys{"ann": private("ann").Public().(ed25519.PublicKey),
				"bob": private("bob").Public().(ed25519.PublicKey)}, nil
		},
		Policy: func() (policy.Policy, error) { return policy.Parse([]byte(h.policy)) },
		Files:  fileOf, BootID: func() (string, error) { return h.boot, nil }, Now: func() time.Time { return h.wall }})
}

func (h *host) pass(d time.Duration) { h.up, h.wall = h.up+d, h.wall.Add(d) }

// order returns a try of the next serial.
func (h *host) try(id string) order.Order {
	h.serial++
	return order.Order{ID: id, Rollout: "r1", Host: "host-1", Verb: order.Try, Epoch: 5, Serial: h.serial, Knob: rmem,
		Expect: "212992", To: "4194304", NotBefore: epochStart.Add(-time.Hour).Unix(),
		NotAfter: epochStart.Add(time.Hour).Unix(), Deadline: 60}
}

// about returns an order about a try.
func (h *host) about(o order.Order, verb order.Verb) order.Order {
	h.serial++
	o.Of, o.ID, o.Verb, o.Serial, o.Deadline = o.ID, o.ID+"-"+string(verb), verb, h.serial, 0
	return o
}

func sign(t testing.TB, o order.Order, names ...string) []byte {
	t.Helper()
	payload, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	e := order.Envelope{Payload: payload}
	for _, n := range names {
		e.Sign(n, private(n))
	}
	b, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// send delivers an order of ann and checks the answer.
func (h *host) send(o order.Order, want order.Code) order.Answer {
	h.t.Helper()
	return h.deliver(sign(h.t, o, "ann"), want)
}

func (h *host) deliver(data []byte, want order.Code) order.Answer {
	h.t.Helper()
	a := h.executor().Execute(context.Background(), data)
	if a.Code != want {
		h.t.Errorf("answer %+v, want %s", a, want)
	}
	return a
}

func (h *host) holds(id knob.ID, want knob.Value) {
	h.t.Helper()
	if got := h.knobs.Values()[id]; got != want {
		h.t.Errorf("%s is %q, want %q", id, got, want)
	}
}

// recover is what the guard does at the deadline, or the next start.
func (h *host) recover() {
	h.t.Helper()
	j, err := h.journal()
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := j.Recover(context.Background()); err != nil {
		h.t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		h.t.Fatal(err)
	}
}

func TestTryCommitUndo(t *testing.T) {
	h := newHost(t)
	try := h.try("o1")
	h.send(try, order.InTrial)
	h.holds(rmem, "4194304")
	commit := h.about(try, order.Commit)
	h.send(commit, order.Committed)
	h.pass(time.Hour / 2)
	h.recover()
	h.holds(rmem, "4194304")
	h.knobs.Set(rmem, "1000000")
	if report, err := h.executor().Report(t.Context(), ""); err != nil ||
		report.Orders[1].Answer.Code != order.Foreign ||
		report.Orders[1].Answer.Value != "1000000" {
		t.Errorf("drift: %+v, %v", report, err)
	}
	h.knobs.Set(rmem, "4194304")
	undo := h.about(try, order.Undo)
	h.send(undo, order.Undone)
	h.holds(rmem, "212992")
	h.send(undo, order.Undone)
	h.send(try, order.Reverted)
}

// TestEachAnswer delivers orders that a host must refuse, and none of them changes anything.
func TestEachAnswer(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*host, *order.Order)
		keys   string
		want   order.Code
	}{
		"other host":    {func(_ *host, o *order.Order) { o.Host = "host-2" }, "ann", order.OtherHost},
		"unknown key":   {nil, "eve", order.KeyUnknown},
		"no key":        {nil, "", order.TooFewKeys},
		"a year behind": {func(h *host, _ *order.Order) { h.wall = h.wall.AddDate(1, 0, 0) }, "ann", order.TooLate},
		"a year ahead":  {func(h *host, _ *order.Order) { h.wall = h.wall.AddDate(-1, 0, 0) }, "ann", order.TooEarly},
		"denied":        {func(_ *host, o *order.Order) { o.Knob = wmem }, "ann,bob", order.KnobDenied},
		"not allowed": {func(_ *host, o *order.Order) { o.Knob = "sysctl:net.ipv4.tcp_sack" }, "ann,bob",
			order.KnobDenied},
		"no such knob": {func(_ *host, o *order.Order) { o.Knob = "sysctl:net.core.nosuch" }, "ann,bob",
			order.KnobDenied},
		"outside sysctl": {func(_ *host, o *order.Order) { o.Knob = "sysctl:kernel.core_pattern" }, "ann,bob",
			order.KnobDenied},
		"one for d2": {func(_ *host, o *order.Order) { o.Knob, o.Expect, o.To = ring, "256", "512" },
			"ann", order.TooFewKeys},
		"one twice": {func(_ *host, o *order.Order) { o.Knob, o.Expect, o.To = ring, "256", "512" },
			"ann,ann", order.TooFewKeys},
		"class": {func(h *host, o *order.Order) {
			h.policy = strings.Replace(h.policy, "d2", "d1",
				1)
			o.Knob = ring
		}, "ann,bob", order.ClassDenied},
		"kill switch": {func(h *host, _ *order.Order) { h.policy = "version: 1\nkill_switch: on\n" },
			"ann,bob", order.SwitchedOff},
		"no policy":     {func(h *host, _ *order.Order) { h.policy = "version: 1\n" }, "ann,bob", order.KnobDenied},
		"broken policy": {func(h *host, _ *order.Order) { h.policy = "version: 3\n" }, "ann,bob", order.Failed},
		"hours": {func(h *host, _ *order.Order) { h.policy += "  hours: 01:00-02:00\n" }, "ann",
			order.HoursDenied},
		"long trial":  {func(_ *host, o *order.Order) { o.Deadline = 301 }, "ann", order.TrialTooLong},
		"other value": {func(_ *host, o *order.Order) { o.Expect = "1" }, "ann", order.ValueDiffers},
		"range":       {func(_ *host, o *order.Order) { o.To = "-5" }, "ann", order.ValueRefused},
		"no word":     {func(_ *host, o *order.Order) { o.To = "much" }, "ann", order.ValueRefused},
		"commit of none": {func(_ *host, o *order.Order) { o.Verb, o.Of, o.Deadline = order.Commit, "o0", 0 },
			"ann", order.NoTrial},
		"undo of none": {func(_ *host, o *order.Order) { o.Verb, o.Of, o.Deadline = order.Undo, "o0", 0 },
			"ann", order.NoTrial},
		"rounded":   {func(h *host, _ *order.Order) { h.knobs.OnWrite = rounds }, "ann", order.ReadBack},
		"no effect": {func(h *host, _ *order.Order) { h.knobs.OnWrite = ignores }, "ann", order.ReadBack},
		"kernel refuses": {func(h *host, _ *order.Order) { h.knobs.SetReadOnly(rmem, true) }, "ann",
			order.ValueRefused},
		"disk is full": {func(h *host, _ *order.Order) {
			h.fs = durable.NewFaulty(h.fs,
				durable.FullFrom(0))
		}, "ann", order.Failed},
		"journal is busy": {func(h *host, _ *order.Order) { _, err := h.journal(); must(h.t, err) }, "ann", order.Busy},
	} {
		t.Run(what, func(t *testing.T) {
			h := newHost(t)
			o := h.try("o1")
			if c.change != nil {
				c.change(h, &o)
			}
			before := maps.Clone(h.knobs.Values())
			var keys []string
			if c.keys != "" {
				keys = strings.Split(c.keys, ",")
			}
			a := h.deliver(sign(t, o, keys...), c.want)
			if !maps.Equal(before, h.knobs.Values()) {
				t.Errorf("it changed something: %v", h.knobs.Values())
			}
			if a.Text == "" {
				t.Error("the answer does not say why")
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func rounds(_ context.Context, id knob.ID, v knob.Value) (knob.Value, error) {
	if v == "4194304" {
		return "4194303", nil
	}
	return v, nil
}

func ignores(context.Context, knob.ID, knob.Value) (knob.Value, error) { return "212992", nil }

// TestReplayLateReordered is the table of faults of a network: each has an answer of its own.
func TestReplayLateReordered(t *testing.T) {
	h := newHost(t)
	old := h.try("o0")
	try := h.try("o1")
	h.send(try, order.InTrial)
	h.send(old, order.OldSerial) // reordered
	h.send(try, order.InTrial)   // duplicate: the same answer, and no longer trial
	h.pass(50 * time.Second)
	h.send(try, order.InTrial)
	second := h.try("o2")
	second.Expect, second.To = "4194304", "8388608"
	h.send(second, order.OnTrial)
	changed := try
	changed.To = "8388608"
	h.send(changed, order.IDReused)
	h.pass(11 * time.Second)
	h.recover() // as the guard does
	h.holds(rmem, "212992")
	h.send(try, order.Reverted) // a replay
	commit := h.about(try, order.Commit)
	commit.Serial = 100
	h.send(commit, order.Reverted) // too late for the trial
	h.holds(rmem, "212992")
	earlier := h.try("o3")
	earlier.Epoch, earlier.Serial = 4, 101
	h.send(earlier, order.OldEpoch) // another hub, from before
	late := h.try("o4")
	late.Serial = 102
	h.pass(2 * time.Hour)
	h.send(late, order.TooLate)
	h.holds(rmem, "212992")
}

// TestUnconfirmedEnds: no order makes a trial longer than its deadline.
func TestUnconfirmedEnds(t *testing.T) {
	h := newHost(t)
	try := h.try("o1")
	h.send(try, order.InTrial)
	for i := range 5 {
		h.pass(10 * time.Second)
		h.send(try, order.InTrial)
		other := h.about(try, order.Commit)
		other.ID += fmt.Sprint(i)
		other.To = "8388608" // not the change that is on trial
		h.send(other, order.NoTrial)
	}
	h.pass(10 * time.Second)
	h.send(h.about(try, order.Commit), order.Reverted) // no guard came, and it is too late all the same
	h.holds(rmem, "212992")
}

func TestForeignValue(t *testing.T) {
	h := newHost(t)
	try := h.try("o1")
	h.send(try, order.InTrial)
	h.knobs.Set(rmem, "1000000")
	h.send(h.about(try, order.Commit), order.Foreign)
	if a := h.send(h.about(try, order.Undo), order.Foreign); a.Value != "1000000" {
		t.Errorf("%+v", a)
	}
	h.holds(rmem, "1000000")
}

// TestRestartAndReinstall: a restart ends a kept change, and a new disk knows nothing.
func TestRestartAndReinstall(t *testing.T) {
	h := newHost(t)
	try := h.try("o1")
	h.send(try, order.InTrial)
	h.send(h.about(try, order.Commit), order.Committed)
	h.boot, h.up = "boot 2", time.Minute
	h.knobs.Set(rmem, "212992")
	report, err := h.executor().Report(t.Context(), "r1")
	if err != nil || len(report.Orders) != 2 || report.Orders[0].Answer.Code != order.NotPersisted ||
		report.Orders[1].Answer.Code != order.NotPersisted || report.Epoch != 5 {
		t.Errorf("%+v, %v", report, err)
	}
	h.fs = durable.NewMem()
	if report, err = h.executor().Report(t.Context(), ""); err != nil || report.Epoch != 0 || len(report.Orders) != 0 {
		t.Errorf("reinstalled: %+v, %v", report, err)
	}
	h.send(h.about(try, order.Commit), order.NoTrial)
}

// TestCrashAtEveryStep stops the agent before each access to disk and knobs, once as kill -9 and
// once as a power cut, and delivers everything again. Nothing is in trial at the end, the report
// accounts for each order, and the knob holds what the report says.
func TestCrashAtEveryStep(t *testing.T) {
	for _, power := range []bool{false, true} {
		for n := 0; ; n += testenv.Sample(1, 5) {
			h := newHost(t)
			disk := h.fs.(*durable.Mem)
			try := h.try("o1")
			orders := []order.Order{try, h.about(try, order.Commit)}
			crashed := errors.New("crashed")
			left := n
			step := func() error {
				if left--; left < 0 {
					return crashed
				}
				return nil
			}
			h.fs = durable.NewFaulty(disk, func(durable.Op) error { return step() })
			h.knobs.OnWrite = func(_ context.Context, _ knob.ID, v knob.Value) (knob.Value, error) { return v, step() }
			e := h.executor()
			for _, o := range orders {
				e.Execute(t.Context(), sign(t, o, "ann"))
			}
			through := left >= 0
			h.knobs.OnWrite = nil
			h.fs = disk.CrashClone(1, nil) // a killed process loses its locks and nothing else
			if power {
				h.fs = disk.CrashClone(0.5, rand.New(rand.NewPCG(7, uint64(n))))
				h.boot, h.up = "boot 2", time.Minute
				h.knobs.Set(rmem, "212992")
			}
			what := fmt.Sprintf("step %d, power cut %v", n, power)
			for range 2 {
				for _, o := range orders {
					if a := h.executor().Execute(t.Context(), sign(t, o, "ann")); a.Code == order.Failed ||
						a.Code == order.Busy {
						t.Fatalf("%s: %+v", what, a)
					}
				}
			}
			h.pass(2 * time.Minute)
			h.recover()
			report, err := h.executor().Report(t.Context(), "r1")
			if err != nil || len(report.Orders) == 0 {
				t.Fatalf("%s: %+v, %v", what, report, err)
			}
			want := knob.Value("212992")
			for _, s := range report.Orders {
				switch s.Answer.Code {
				case order.InTrial:
					t.Errorf("%s: still in trial: %+v", what, s)
				case order.Committed:
					want = "4194304"
				}
			}
			h.holds(rmem, want)
			undo := h.about(try, order.Undo)
			undo.Serial = 50
			h.executor().Execute(t.Context(), sign(t, undo, "bob"))
			h.holds(rmem, "212992")
			if t.Failed() {
				t.Fatalf("%s: %+v", what, report)
			}
			if through {
				if n < 40 {
					t.Errorf("only %d steps", n)
				}
				t.Logf("power cut %v: %d steps", power, n)
				break
			}
		}
	}
}

// FuzzExecute delivers bytes of strangers: none of them changes anything.
func FuzzExecute(f *testing.F) {
	h := newHost(f)
	o := h.try("o1")
	f.Add(sign(f, o, "eve"))
	f.Add(sign(f, o))
	f.Fuzz(func(t *testing.T, data []byte) {
		h := newHost(t)
		before := h.knobs.Values()
		if a := h.executor().Execute(t.Context(), data); a.Code.Acted() || !maps.Equal(before, h.knobs.Values()) {
			t.Errorf("%+v, %v", a, h.knobs.Values())
		}
	})
}
