package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/order"
)

const startFile = "/etc/sysctl.d/90-linerate-0001.conf"

// fileOf plans the file of a change, as package persist does for a sysctl.
func fileOf(c journal.Change) ([]journal.File, error) {
	return []journal.File{{Path: "/etc/sysctl.d/90-linerate-" + c.ID + ".conf", Mode: 0o644,
		Content: c.Knob.Attribute() + " = " + string(c.To) + "\n"}}, nil
}

// start is a start of the host: the kernel has its defaults, the unit of recovery runs, and then
// the files set the knobs.
func (h *host) start() {
	h.t.Helper()
	h.boot, h.up = h.boot+"+", time.Minute
	h.knobs.Set(rmem, "212992")
	h.recover()
	if b, err := h.fs.ReadFile(startFile); err == nil {
		_, value, _ := strings.Cut(strings.TrimSpace(string(b)), " = ")
		h.knobs.Set(rmem, knob.Value(value))
	}
}

// persisting returns a host that lets orders persist, with a kept change, and the try.
func persisting(t testing.TB) (*host, order.Order) {
	h := newHost(t)
	h.policy += "  persist: on\n"
	if err := durable.MkdirAll(h.fs, "/etc/sysctl.d", 0o755); err != nil {
		t.Fatal(err)
	}
	try := h.try("o1")
	h.send(try, order.InTrial)
	return h, try
}

func (h *host) files(want bool) {
	h.t.Helper()
	if _, err := h.fs.ReadFile(startFile); (err == nil) != want {
		h.t.Errorf("%s: %v, want it there: %v", startFile, err, want)
	}
}

// TestPersist makes a kept change survive a restart, and takes it back after the restart: the file
// is gone with it.
func TestPersist(t *testing.T) {
	h, try := persisting(t)
	h.send(h.about(try, order.Commit), order.Committed)
	persist := sign(t, h.about(try, order.Persist), "ann", "bob")
	h.deliver(persist, order.Persisted)
	h.files(true)
	h.start()
	h.holds(rmem, "4194304")
	h.deliver(persist, order.Persisted)
	report, err := h.executor().Report(t.Context(), "r1")
	if err != nil || len(report.Orders) != 3 || report.Orders[0].Answer.Code != order.Committed ||
		report.Orders[2].Answer.Code != order.Persisted {
		t.Errorf("%+v, %v", report, err)
	}
	h.send(h.about(try, order.Undo), order.Undone)
	h.files(false)
	h.start()
	h.holds(rmem, "212992")
	h.deliver(persist, order.Reverted)
	h.files(false)
}

// TestPersistRefused: each reason for which a host persists nothing has its answer, and no file is
// written.
func TestPersistRefused(t *testing.T) {
	for what, c := range map[string]struct {
		before func(h *host, try order.Order)
		keys   string
		want   order.Code
	}{
		"one key":    {nil, "ann", order.TooFewKeys},
		"one twice":  {nil, "ann,ann", order.TooFewKeys},
		"an unknown": {nil, "ann,eve", order.KeyUnknown},
		"policy": {func(h *host, _ order.Order) { h.policy = strings.Replace(h.policy, "persist: on", "persist: off", 1) },
			"ann,bob", order.PersistDenied},
		"kill switch": {func(h *host, _ order.Order) { h.policy = "version: 1\nkill_switch: on\n" }, "ann,bob",
			order.SwitchedOff},
		"undone": {func(h *host, try order.Order) { h.send(h.about(try, order.Undo), order.Undone) }, "ann,bob",
			order.Reverted},
		"restarted": {func(h *host, _ order.Order) { h.start() }, "ann,bob", order.Reverted},
		"foreign":   {func(h *host, _ order.Order) { h.knobs.Set(rmem, "1000000") }, "ann,bob", order.Foreign},
		"a file in the way": {func(h *host, _ order.Order) {
			must(h.t, durable.Replace(h.fs, startFile, []byte("theirs"), 0o644))
		}, "ann,bob", order.NoFile},
		"the disk is full": {func(h *host, _ order.Order) { h.fs = durable.NewFaulty(h.fs, durable.FullFrom(0)) },
			"ann,bob", order.Failed},
	} {
		t.Run(what, func(t *testing.T) {
			h, try := persisting(t)
			h.send(h.about(try, order.Commit), order.Committed)
			if c.before != nil {
				c.before(h, try)
			}
			a := h.deliver(sign(t, h.about(try, order.Persist), strings.Split(c.keys, ",")...), c.want)
			if a.Text == "" {
				t.Error("the answer does not say why")
			}
			if b, err := h.fs.ReadFile(startFile); err == nil && string(b) != "theirs" {
				t.Errorf("a file was written: %s", b)
			}
		})
	}
	h, try := persisting(t)
	persist := h.about(try, order.Persist)
	h.deliver(sign(t, persist, "ann", "bob"), order.NoTrial) // a trial has proven nothing yet
	h.files(false)
}

// TestCrashWhilePersistingByOrder stops the agent before each access to disk and knobs while it
// persists and then undoes, once as kill -9 and once as a power cut, and delivers the orders again.
// The host then holds what its report says, also after one more start.
func TestCrashWhilePersistingByOrder(t *testing.T) {
	for _, verbs := range [][]order.Verb{{order.Persist}, {order.Persist, order.Undo}} {
		for _, power := range []bool{false, true} {
			for n := 0; ; n += testenv.Sample(1, 5) {
				h, try := persisting(t)
				h.send(h.about(try, order.Commit), order.Committed)
				disk := h.fs.(*durable.Mem)
				var orders [][]byte
				for _, v := range verbs {
					orders = append(orders, sign(t, h.about(try, v), "ann", "bob"))
				}
				left := n
				step := func() error {
					if left--; left < 0 {
						return errors.New("crashed")
					}
					return nil
				}
				h.fs = durable.NewFaulty(disk, func(durable.Op) error { return step() })
				h.knobs.OnWrite = func(_ context.Context, _ knob.ID, v knob.Value) (knob.Value, error) { return v, step() }
				for _, o := range orders {
					h.executor().Execute(t.Context(), o)
				}
				through := left >= 0
				h.knobs.OnWrite = nil
				h.fs = disk.CrashClone(1, nil)
				if power {
					h.fs = disk.CrashClone(0.5, rand.New(rand.NewPCG(11, uint64(n))))
					h.start()
				}
				what := fmt.Sprintf("%v, step %d, power cut %v", verbs, n, power)
				for _, o := range orders {
					if a := h.executor().Execute(t.Context(), o); a.Code == order.Busy {
						t.Fatalf("%s: %+v", what, a)
					}
				}
				for range 2 {
					report, err := h.executor().Report(t.Context(), "r1")
					if err != nil || len(report.Orders) < 2 {
						t.Fatalf("%s: %+v, %v", what, report, err)
					}
					want, file := knob.Value("212992"), false
					switch first := report.Orders[0].Answer.Code; first {
					case order.Committed:
						want = "4194304"
					case order.Reverted, order.Undone, order.NotPersisted:
					default:
						t.Errorf("%s: %s", what, first)
					}
					for _, s := range report.Orders {
						file = file || s.Answer.Code == order.Persisted
					}
					h.holds(rmem, want)
					h.files(file)
					if t.Failed() {
						t.Fatalf("%s: %+v", what, report)
					}
					h.start()
				}
				if through {
					t.Logf("%v, power cut %v: %d steps", verbs, power, n)
					if n < 15 {
						t.Errorf("only %d steps", n)
					}
					break
				}
			}
		}
	}
}

// TestPersistTakesNoChangeOfAClient has a client of serve, which may choose the reason of its own
// changes, name a kept order in one: the fleet's next orders about it must not make the client's
// value survive a restart, nor take it for what people signed.
func TestPersistTakesNoChangeOfAClient(t *testing.T) {
	for _, of := range []knob.ID{wmem, rmem} {
		h, try := persisting(t)
		h.send(h.about(try, order.Commit), order.Committed)
		j, err := h.journalOf("far")
		if err != nil {
			t.Fatal(err)
		}
		changes, err := j.Apply(t.Context(), journal.Request{Reason: "fleet order " + try.ID, For: time.Minute},
			knob.Setting{Knob: of, Value: "999424"})
		if err == nil {
			err = j.Commit(t.Context(), changes[0].ID)
		}
		if err = errors.Join(err, j.Close()); err != nil {
			t.Fatal(err)
		}
		want := order.Persisted
		if of == rmem {
			want = order.Foreign
		}
		h.deliver(sign(t, h.about(try, order.Persist), "ann", "bob"), want)
		entries, err := h.fs.ReadDir("/etc/sysctl.d")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if b, err := h.fs.ReadFile("/etc/sysctl.d/" + e); err != nil || strings.Contains(string(b), "999424") {
				t.Errorf("%s: %s, %v", e, b, err)
			}
		}
		report, err := h.executor().Report(t.Context(), "r1")
		if err != nil || report.Orders[0].Answer.Change != "0001" {
			t.Errorf("%+v, %v", report, err)
		}
	}
}
