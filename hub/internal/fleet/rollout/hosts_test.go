package rollout_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/peer/order"
	"github.com/linerate/linerate/internal/peer/policy"
)

const (
	rmem  = knob.ID("sysctl:net.core.rmem_max")
	small = knob.Value("212992")
	large = knob.Value("4194304")
)

var (
	bob  = ed25519.NewKeyFromSeed([]byte(strings.Repeat("b", ed25519.SeedSize)))
	ann  = ed25519.NewKeyFromSeed([]byte(strings.Repeat("a", ed25519.SeedSize)))
	noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
)

// simHost is a host with a real executor and journal over a disk in memory that can lose power.
type simHost struct {
	id    string
	clock *time.Duration
	disk  *durable.Mem
	hook  func(durable.Op) error // makes operations of the disk fail
	knobs *knob.Memory
	boot  int
	ahead time.Duration // of the host's wall clock
	cut   bool          // no network
	until time.Duration // a trial may be in force until then
	rules policy.Policy
}

func newSimHost(id string, clock *time.Duration, rules policy.Policy) *simHost {
	return &simHost{id: id, clock: clock, rules: rules, disk: durable.NewMem(), boot: 1,
		knobs: knob.NewMemory(map[knob.ID]knob.Value{rmem: small})}
}

func (h *simHost) fs() durable.FS {
	if h.hook != nil {
		return durable.NewFaulty(h.disk, h.hook)
	}
	return h.disk
}

func (h *simHost) journal() (*journal.Journal, error) {
	return journal.Open(journal.Options{Dir: "/s", FS: h.fs(), Backend: h.knobs, Catalog: knob.Catalogue(),
		Mode: journal.Deadline, Unguarded: true, BootID: fmt.Sprint("boot ", h.boot),
		Boottime: func() time.Duration { return time.Hour + *h.clock },
		Now:      func() time.Time { return noon.Add(*h.clock + h.ahead) },
		Identify: func(knob.ID) journal.Identity { return journal.Identity{} }})
}

func (h *simHost) executor() *executor.Executor {
	return executor.New(executor.Config{Host: h.id, State: "/s", FS: h.fs(), Open: h.journal, Read: h.knobs.Read,
		Files: startFile,
		Keys: func() (order.Keys, error) {
			return order.Keys{"ann": ann.Public().(ed25519.PublicKey), "bob": bob.Public().(ed25519.PublicKey)}, nil
		},
		Policy: func() (policy.Policy, error) { return h.rules, nil },
		BootID: func() (string, error) { return fmt.Sprint("boot ", h.boot), nil },
		Now:    func() time.Time { return noon.Add(*h.clock + h.ahead) }})
}

// deliver hands an order to the host. The guard watches a trial from then on.
func (h *simHost) deliver(data []byte) order.Answer {
	h.until = *h.clock + rollout.DefaultTiming().Deadline
	return h.executor().Execute(context.Background(), data)
}

// tick is the guard: it acts at the deadline, without network.
func (h *simHost) tick() error {
	if h.until == 0 || *h.clock < h.until {
		return nil
	}
	if err := h.recover(); err != nil {
		return err // the next time
	}
	h.until = 0
	return nil
}

func (h *simHost) recover() error {
	j, err := h.journal()
	if err != nil {
		return err
	}
	_, err = j.Recover(context.Background())
	return errors.Join(err, j.Close())
}

// kill ends the agent: its locks go, the disk and the knobs stay.
func (h *simHost) kill() { h.disk = h.disk.CrashClone(1, nil) }

// restart cuts the power: the kernel forgets the knob, the disk keeps what it must, and the files
// that orders have persisted set the knob, after recovery has removed those that are half done.
func (h *simHost) restart(rng *rand.Rand) {
	h.disk = h.disk.CrashClone(0.5, rng)
	h.boot++
	h.knobs.Set(rmem, small)
	if h.file() != "" && h.recover() == nil && h.file() != "" {
		h.knobs.Set(rmem, h.file())
	}
}

const startDir = "/etc/sysctl.d"

// startFile plans the file of a change.
func startFile(c journal.Change) ([]journal.File, error) {
	return []journal.File{{Path: startDir + "/90-linerate-" + c.ID + ".conf", Mode: 0o644, Content: string(c.To)}}, nil
}

// file is the value that a file sets at the next start; empty: none does.
func (h *simHost) file() (v knob.Value) {
	names, err := h.disk.ReadDir(startDir)
	if err != nil {
		return ""
	}
	for _, name := range names {
		if b, err := h.disk.ReadFile(startDir + "/" + name); err == nil && strings.HasSuffix(name, ".conf") {
			v = knob.Value(b)
		}
	}
	return v
}

// simHub is a hub with its machine. The orders of an epoch are signed when it begins.
type simHub struct {
	plan    *rollout.Plan
	m       *rollout.Machine
	epoch   uint64
	signed  time.Duration // when a person signed the orders
	t       testing.TB
	resumed int
	ahead   time.Duration // of the hub's clock
	// of returns the try whose change a host reports in force, as a person's draft has it.
	of func(host int) string
}

// envelope is the order of an action, signed by a person. The hub has no key; this stands for the
// file that the person has made.
func (hub *simHub) envelope(a rollout.Action) []byte {
	id := hub.plan.Hosts[a.Host].ID
	wall := noon.Add(hub.signed)
	o := order.Order{ID: rollout.OrderID(hub.plan.ID, id, a.Verb, a.Attempt), Rollout: hub.plan.ID, Host: id,
		Verb:  a.Verb,
		Epoch: hub.epoch, Serial: rollout.Serial(1, a.Verb, a.Attempt), Knob: rmem, Expect: small, To: large,
		NotBefore: wall.Add(-time.Hour).Unix(), NotAfter: wall.Add(23 * time.Hour).Unix()}
	if a.Verb == order.Try {
		o.Deadline = int64(hub.plan.Timing.Deadline / time.Second)
	} else {
		o.Of = rollout.OrderID(hub.plan.ID, id, order.Try, a.Attempt)
	}
	if of := ""; a.Verb == order.Persist || a.Verb == order.Undo {
		if of = hub.of(a.Host); of != "" {
			o.Of = of
		}
	}
	payload, err := o.Encode()
	if err != nil {
		hub.t.Fatal(err)
	}
	e := order.Envelope{Payload: payload}
	e.Sign("ann", ann)
	if a.Verb == order.Persist {
		e.Sign("bob", bob)
	}
	data, err := e.Encode()
	if err != nil {
		hub.t.Fatal(err)
	}
	return data
}

// fleet is hosts, a network and a clock.
type fleet struct {
	t     testing.TB
	now   time.Duration
	hosts []*simHost
	hub   *simHub
	rng   *rand.Rand
	// before and after run around the delivery of an order. before can lose it, after its answer.
	before, after func(host int, a rollout.Action, data []byte) (lost bool)
	later         []func() // things that happen when their time has come; each returns at once if not
}

func newFleet(t testing.TB, n int, seed uint64) *fleet {
	timing := rollout.DefaultTiming()
	timing.Soak, timing.LongSoak = 10*time.Minute, 10*time.Minute
	p, err := rollout.NewPlan("r1", seed, fleetOf(n), timing)
	if err != nil {
		t.Fatal(err)
	}
	rules := policy.Default()
	rules.Changes.Allow, rules.Changes.Persist = []knob.ID{rmem}, true
	f := &fleet{t: t, rng: rand.New(rand.NewPCG(seed, 5)), hub: &simHub{plan: p, m: rollout.New(p), epoch: 1, t: t}}
	for _, h := range p.Hosts {
		f.hosts = append(f.hosts, newSimHost(h.ID, &f.now, rules))
	}
	f.hub.of = f.inForce
	none := func(int, rollout.Action, []byte) bool { return false }
	f.before, f.after = none, none
	return f
}

// clock is the hub's.
func (f *fleet) clock() time.Duration { return f.now + f.hub.ahead }

// step lets the hub act once, and a minute pass.
func (f *fleet) step() {
	m := f.hub.m
	for _, a := range m.Next() {
		i := a.Host
		switch {
		case a.Experiment:
			m.Apply(rollout.Event{At: f.clock(), Kind: rollout.Asked, Host: i})
			m.Apply(rollout.Event{At: f.clock(), Kind: rollout.Measured, Host: i, Effect: 0.03, Error: 0.007})
		case a.Verb == "":
			if f.hosts[i].cut {
				continue
			}
			effect := 0.001 * f.rng.NormFloat64()
			if m.State(i) == rollout.Committed {
				effect += 0.03
			}
			m.Apply(rollout.Event{At: f.clock(), Kind: rollout.Measured, Host: i, Effect: effect})
		default:
			m.Apply(rollout.Event{At: f.clock(), Kind: rollout.Sent, Host: i, Verb: a.Verb})
			data := f.hub.envelope(a)
			if f.before(i, a, data) || f.hosts[i].cut {
				continue
			}
			answer := f.hosts[i].deliver(data)
			if f.after(i, a, data) || f.hosts[i].cut || f.hub.m != m {
				continue
			}
			m.Apply(rollout.Event{At: f.clock(), Kind: rollout.Answered, Host: i, Verb: a.Verb, Code: answer.Code})
		}
		if f.hub.m != m {
			return // the hub has died
		}
	}
	f.now += f.hub.plan.Timing.Settle
	for i, h := range f.hosts {
		if err := h.tick(); err != nil && h.hook == nil {
			f.t.Fatalf("guard of %s: %v", h.id, err)
		}
		if s := m.State(i); !h.cut && s != rollout.Pending {
			m.Apply(rollout.Event{At: f.clock(), Kind: rollout.Alive, Host: i})
		}
	}
	for _, do := range f.later {
		do()
	}
	m.Apply(rollout.Event{At: f.clock(), Kind: rollout.Ticked})
}

// reports asks every host that can be reached.
func (f *fleet) reports() map[string]executor.Report {
	all := make(map[string]executor.Report)
	for _, h := range f.hosts {
		if h.cut {
			continue
		}
		if r, err := h.executor().Report(context.Background(), f.hub.plan.ID); err == nil {
			all[h.id] = r
		}
	}
	return all
}

// killHub ends the hub with all it knows, and rebuilds it from the hosts. A person signs orders of
// a new epoch before the rollout goes on.
func (f *fleet) killHub() {
	old := f.hub
	f.hub = &simHub{plan: old.plan, m: rollout.Rebuild(old.plan, f.reports()), epoch: old.epoch + 1,
		signed: f.now, t: f.t,
		resumed: old.resumed, ahead: old.ahead, of: f.inForce}
	f.hub.m.Apply(rollout.Event{At: f.clock(), Kind: rollout.Started})
}

// inForce returns the try whose change a host reports in force; empty: none.
func (f *fleet) inForce(host int) (of string) {
	r, err := f.hosts[host].executor().Report(context.Background(), f.hub.plan.ID)
	if err != nil {
		return ""
	}
	for _, s := range r.Orders {
		switch {
		case s.Verb == order.Try && (s.Answer.Code == order.Committed || s.Answer.Code == order.InTrial):
			of = s.Order
		case s.Answer.Code == order.Persisted:
			of = s.Of
		}
	}
	return of
}

// persist asks the hosts for their reports and signs orders to persist, as a person does with what
// conduct drafts. It reports whether a host is left that keeps the change until its restart.
func (f *fleet) persist() bool {
	if !f.hub.m.CanPersist() {
		return false
	}
	reports := f.reports()
	for i, h := range f.hub.plan.Hosts {
		if r, ok := reports[h.ID]; ok {
			f.hub.m.Reported(i, r)
		}
	}
	n := f.hub.m.Counts()
	if n[rollout.Committed]+n[rollout.NotPersistable] == 0 {
		return false
	}
	f.hub.signed = f.now
	f.hub.m.Apply(rollout.Event{At: f.clock(), Kind: rollout.PersistAll, By: "ann+bob"})
	for i, h := range f.hub.plan.Hosts {
		if _, ok := reports[h.ID]; !ok {
			f.hub.m.Apply(rollout.Event{At: f.clock(), Kind: rollout.Unsigned, Host: i})
		}
	}
	return true
}

// run plays until the rollout is done and persisted, with a person who resumes after each halt.
func (f *fleet) run() {
	signatures := 0
	for range 5000 {
		f.step()
		switch {
		case f.hub.m.Phase() == rollout.Done:
			if signatures++; signatures > 4 || !f.persist() {
				for range 25 { // what comes later
					f.step()
				}
				return
			}
		case f.hub.m.CanResume():
			if f.hub.resumed++; f.hub.resumed > 12 {
				return
			}
			reports := f.reports()
			for i, h := range f.hub.plan.Hosts {
				if r, ok := reports[h.ID]; ok {
					f.hub.m.Reported(i, r)
				}
			}
			f.hub.m.Apply(rollout.Event{At: f.clock(), Kind: rollout.Resumed, By: "ann"})
		}
	}
	f.t.Errorf("the rollout does not end: %s in %s, %s", f.hub.m.Phase(), rollout.StageNames[f.hub.m.Stage()],
		f.hub.m.Reason())
}

// undo takes the change back everywhere, with a person who begins again after each halt, or while a
// host that answers keeps the change.
func (f *fleet) undo() {
	for range 4 {
		reports, kept := f.reports(), 0
		for i, h := range f.hub.plan.Hosts {
			if r, ok := reports[h.ID]; ok {
				f.hub.m.Reported(i, r)
				if f.hub.m.State(i).Kept() {
					kept++
				}
			}
		}
		if kept == 0 {
			break
		}
		f.hub.signed = f.now
		f.hub.m.Apply(rollout.Event{At: f.clock(), Kind: rollout.UndoAll, By: "ann"})
		for range 2000 {
			if f.step(); f.hub.m.Phase() != rollout.Unwinding {
				break
			}
		}
		if f.hub.m.Phase() == rollout.Unwinding {
			f.t.Errorf("the undo does not end: %v", f.hub.m.Counts())
		}
	}
	for range 25 { // what comes later
		f.step()
	}
}

// account brings every host back, lets every deadline pass, and compares what the hub knows with
// what is true on each host. It returns how many hosts are not accounted for, and how many are in
// trial.
func (f *fleet) account() (unaccounted, stuck int) {
	for _, h := range f.hosts {
		h.cut, h.hook, h.ahead = false, nil, 0
	}
	f.now += 2 * f.hub.plan.Timing.Deadline
	for _, h := range f.hosts {
		if err := h.tick(); err != nil {
			f.t.Fatal(err)
		}
	}
	for i, h := range f.hosts {
		r, err := h.executor().Report(context.Background(), f.hub.plan.ID)
		if err != nil {
			f.t.Fatal(err)
		}
		f.hub.m.Reported(i, r)
		changes, err := journal.History(h.disk, "/s")
		if err != nil {
			f.t.Fatal(err)
		}
		for _, c := range changes {
			if c.State == journal.Trial {
				stuck++
			}
		}
		value := h.knobs.Values()[rmem]
		if state := f.hub.m.State(i); (value == large) != state.Kept() || state == rollout.Lost ||
			state != rollout.Drifted && (h.file() != "") != (state == rollout.Persisted) {
			f.t.Logf("host %s: %s, and holds %s; %+v", h.id, state, value, r)
			unaccounted++
		}
	}
	return unaccounted, stuck
}
