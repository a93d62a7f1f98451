package conduct

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/message"
	"github.com/linerate/linerate/hub/internal/fleet/overview"
	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/peer/order"
	"github.com/linerate/linerate/internal/peer/policy"
	"github.com/linerate/linerate/internal/report"
)

const (
	rmem   = knob.ID("sysctl:net.core.rmem_max")
	before = knob.Value("200000")
	after  = knob.Value("300000")
)

var (
	ann = ed25519.NewKeyFromSeed([]byte(strings.Repeat("a", ed25519.SeedSize)))
	bob = ed25519.NewKeyFromSeed([]byte(strings.Repeat("b", ed25519.SeedSize)))
)

// simulated are hosts with real executors and journals over disks in memory.
type simulated struct {
	mu      sync.Mutex
	hosts   map[string]*simHost
	rng     *rand.Rand
	effect  float64 // on the metric, of the change
	quiet   bool    // no traffic
	persist bool    // hosts let orders persist
	people  int     // whose signatures a host asks for; 0: one
	lose    func(host string, n int) (request, answer bool)
	orders  int
	// noFigure loses the nth reading of a host, which holds a value.
	noFigure func(n int, holds knob.Value) bool
	figures  int
	start    time.Time
	ahead    time.Duration // of the clock of the hosts

	away sync.Mutex
	cut  map[string]bool
	seen func(host string) time.Time // nil: now
	lie  func(host string, r *executor.Report)
}

type simHost struct {
	disk  *durable.Mem
	knobs *knob.Memory
}

func simulate(n int) (*simulated, []Candidate) {
	s := &simulated{hosts: make(map[string]*simHost), rng: rand.New(rand.NewPCG(1, 2)), effect: 1.5,
		start: time.Now()}
	var all []Candidate
	for i := range n {
		id := fmt.Sprintf("h%d", i)
		s.hosts[id] = &simHost{disk: durable.NewMem(), knobs: knob.NewMemory(map[knob.ID]knob.Value{rmem: before})}
		all = append(all, Candidate{Host: rollout.Host{ID: id, Class: "c", Rack: "r-" + id}, Name: id})
	}
	return s, all
}

func (s *simulated) executor(id string) *executor.Executor {
	h := s.hosts[id]
	return executor.New(executor.Config{Host: id, State: "/s", FS: h.disk, Read: h.knobs.Read,
		Keys: func() (order.Keys, error) {
			return order.Keys{"ann": ann.Public().(ed25519.PublicKey),
				"bob": bob.Public().(ed25519.PublicKey)}, nil
		},
		Policy: func() (policy.Policy, error) {
			p := policy.Default()
			p.Changes.Allow, p.Changes.Persist = []knob.ID{rmem}, s.persist
			p.Changes.Signatures = max(s.people, 1)
			return p, nil
		},
		Files: func(c journal.Change) ([]journal.File, error) {
			return []journal.File{{Path: startFile, Content: string(c.To), Mode: 0o644}}, nil
		},
		BootID: func() (string, error) { return "boot", nil },
		Open:   func() (*journal.Journal, error) { return s.journal(id) }})
}

func (s *simulated) journal(id string) (*journal.Journal, error) {
	h := s.hosts[id]
	return journal.Open(journal.Options{Dir: "/s", FS: h.disk, Backend: h.knobs, Catalog: knob.Catalogue(),
		Mode: journal.Deadline, Unguarded: true, BootID: "boot",
		Boottime: func() time.Duration { return time.Hour + time.Since(s.start) + s.ahead },
		Identify: func(knob.ID) journal.Identity { return journal.Identity{} }})
}

var errLost = errors.New("lost")

func (s *simulated) Order(ctx context.Context, host string, envelope []byte) (order.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone(host) {
		return order.Answer{}, errLost
	}
	s.orders++
	var request, answer bool
	if s.lose != nil {
		request, answer = s.lose(host, s.orders)
	}
	if request {
		return order.Answer{}, errLost
	}
	a := s.executor(host).Execute(ctx, envelope)
	if answer {
		return order.Answer{}, errLost
	}
	return a, nil
}

func (s *simulated) Measure(_ context.Context, host string, _ message.Figure) (float64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone(host) {
		return 0, errLost
	}
	if s.quiet {
		return 0, errors.New("no traffic to judge by")
	}
	s.figures++
	if s.noFigure != nil && s.noFigure(s.figures, s.hosts[host].knobs.Values()[rmem]) {
		return 0, errLost
	}
	v := 1e6 * (1 + 0.01*s.rng.NormFloat64())
	if s.hosts[host].knobs.Values()[rmem] == after {
		v *= s.effect
	}
	return v, nil
}

func (s *simulated) Report(ctx context.Context, host, rollout string) (executor.Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone(host) {
		return executor.Report{}, errLost
	}
	j, err := s.journal(host) // the guard: it takes a trial back at its deadline
	if err == nil {
		_, err = j.Recover(ctx)
		err = errors.Join(err, j.Close())
	}
	if err != nil {
		return executor.Report{}, err
	}
	r, err := s.executor(host).Report(ctx, rollout)
	if s.lie != nil {
		s.lie(host, &r)
	}
	return r, err
}

func (s *simulated) Knob(_ context.Context, hosts []string, id knob.ID) (map[string]Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]Reading)
	for _, h := range hosts {
		if !s.gone(h) {
			all[h] = Reading{Value: s.hosts[h].knobs.Values()[id]}
		}
	}
	return all, nil
}

// holding counts the hosts that hold a value.
func (s *simulated) holding(v knob.Value) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, h := range s.hosts {
		if h.knobs.Values()[rmem] == v {
			n++
		}
	}
	return n
}

// running begins to conduct. stop is what a kill leaves: everything that counts is on the disk.
func (s *simulated) conduct(t *testing.T, disk durable.FS) (c *Conductor, stop func()) {
	t.Helper()
	c, err := Open(Options{Dir: "/rollouts", FS: disk, Hosts: s, Log: slog.New(slog.DiscardHandler),
		Every: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { c.Run(ctx) })
	stop = func() { cancel(); done.Wait() }
	t.Cleanup(stop)
	return c, stop
}

var quick = rollout.Timing{Deadline: 20 * time.Second, Settle: 20 * time.Millisecond, Soak: 10 * time.Millisecond,
	LongSoak: 10 * time.Millisecond, Collect: 300 * time.Millisecond}

func draft(t *testing.T, c *Conductor, all []Candidate) *Draft {
	t.Helper()
	d, err := c.NewDraft(t.Context(), Change{Knob: rmem, To: after, Metric: message.Sent, Window: time.Millisecond,
		Pairs: 4}, quick, time.Hour, all)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func begin(t *testing.T, c *Conductor, d *Draft) {
	t.Helper()
	orders, err := d.Sign(func(e *order.Envelope) { e.Sign("ann", ann) })
	if err == nil {
		err = c.Begin(d, orders, "ann")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// until waits for a phase. Patience only guards against hanging.
func until(t *testing.T, c *Conductor, id, phase string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		doc, err := c.Document(id)
		if err != nil {
			t.Fatal(err)
		}
		if doc.Phase == phase {
			return
		}
		if doc.Phase == "halted" && !doc.Harm || time.Now().After(deadline) {
			t.Fatalf("not %s: %+v", phase, doc)
		}
	}
}

// TestKept: a change that helps reaches every host, although orders and answers are lost; undo
// takes it back, also for a hub that has lost its disk.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := simulate(4)
		s.lose = func(_ string, n int) (bool, bool) { return n%5 == 0, n%7 == 0 }
		disk := durable.NewMem()
		c, stop := s.conduct(t, disk)
		d := draft(t, c, all)
		begin(t, c, d)
		until(t, c, d.Plan.ID, "done")
		if n := s.holding(after); n != 4 {
			t.Errorf("%d hosts hold the new value", n)
		}
		doc, _ := c.Document(d.Plan.ID)
		if !doc.Proven || doc.States["committed"] != 4 || doc.Hosts[0].Experiment == nil {
			t.Errorf("%+v", doc)
		}
		pages := 0
		c.Each(func(d *Draft, begun time.Time, m *rollout.Machine) {
			pages++
			page, err := json.Marshal(overview.Of(d.Plan, m)) // which fails on an infinite number
			if err != nil || begun.IsZero() || !strings.Contains(string(page), `"states":{"committed":4}`) {
				t.Errorf("the page shows %s of %v, %v", page, begun, err)
			}
		})
		if pages != 1 {
			t.Errorf("%d rollouts on the page", pages)
		}
		stop()
		// Another hub, with an empty disk.
		s.lose = nil
		c, _ = s.conduct(t, durable.NewMem())
		if _, err := c.Again(t.Context(), d.Plan.ID, Undo, time.Hour); !errors.Is(err, ErrNoRollout) {
			t.Error(err)
		}
		lost, err := c.UndoLost(t.Context(), d.Plan.ID, all, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		begin(t, c, lost)
		until(t, c, d.Plan.ID, "done")
		if n := s.holding(before); n != 4 {
			t.Errorf("%d hosts hold the old value", n)
		}
	})
}

// TestReadingsLost: a reading that is lost is asked for again, in experiments, before a stage and
// after it: a host that loses its connection for a moment halts nothing.
func TestReadingsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := simulate(30)
		s.noFigure = func(n int, _ knob.Value) bool { return n%7 == 0 }
		c, _ := s.conduct(t, durable.NewMem())
		d := draft(t, c, all)
		begin(t, c, d)
		until(t, c, d.Plan.ID, "done")
		if n := s.holding(after); n != len(all) {
			t.Errorf("%d of %d hosts hold the new value", n, len(all))
		}
	})
}

// TestReadingWithinTrial: a reading with the change is asked for again only while the trial lasts,
// and one that comes later is none: it may be of the old value.
func TestReadingWithinTrial(t *testing.T) {
	for name, late := range map[string]bool{"lost": false, "late": true} {
		synctest.Test(t, func(t *testing.T) {
			s, all := simulate(1)
			var ordered time.Time
			var asked []time.Duration // since the try
			s.lose = func(string, int) (bool, bool) { ordered = time.Now(); return false, false }
			s.noFigure = func(_ int, holds knob.Value) bool {
				if holds != after {
					return false
				}
				asked = append(asked, time.Since(ordered))
				if late {
					time.Sleep(quick.Deadline + time.Second)
				}
				return !late
			}
			c, _ := s.conduct(t, durable.NewMem())
			d := draft(t, c, all)
			begin(t, c, d)
			doc, err := c.Document(d.Plan.ID)
			for end := time.Now().Add(time.Hour); err == nil && doc.Phase != "halted" && time.Now().Before(end); {
				time.Sleep(time.Second)
				doc, err = c.Document(d.Plan.ID)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if err != nil || !strings.Contains(doc.Halted, "has no result") || len(asked) == 0 ||
				!late && len(asked) < 4 || asked[len(asked)-1] > quick.Deadline {
				t.Errorf("%s: asked %d times, at last %v: %+v, %v", name, len(asked), asked, doc, err)
			}
		})
	}
}

// TestHarm: a change that does harm stays on no host.
func TestHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := simulate(4)
		s.effect = 0.7
		c, _ := s.conduct(t, durable.NewMem())
		d := draft(t, c, all)
		begin(t, c, d)
		until(t, c, d.Plan.ID, "done")
		doc, _ := c.Document(d.Plan.ID)
		if n := s.holding(before); n != 4 || !doc.Harm || !strings.Contains(doc.Halted, "shows harm") {
			t.Errorf("%d hosts hold the old value: %+v", n, doc)
		}
	})
}

// TestNoTraffic: without a measurement there is no result, and nothing is kept.
func TestNoTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := simulate(4)
		s.quiet = true
		c, _ := s.conduct(t, durable.NewMem())
		d := draft(t, c, all)
		begin(t, c, d)
		until2 := time.Now().Add(2 * time.Minute)
		for {
			doc, err := c.Document(d.Plan.ID)
			if err != nil || time.Now().After(until2) {
				t.Fatal(doc, err)
			}
			if doc.Phase == "halted" {
				if !strings.Contains(doc.Halted, "no traffic to judge by") || doc.Harm || s.holding(after) != 0 {
					t.Errorf("%+v", doc)
				}
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}

// TestRestarts kills the hub after each order that a rollout sends. It is halted then, says what
// each host has, and an undo by a person leaves no host with the change.
func TestRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kill := 1; kill <= 28; kill += 3 {
			s, all := simulate(3)
			disk := durable.NewMem()
			c, stop := s.conduct(t, disk)
			d := draft(t, c, all)
			killed := make(chan struct{})
			s.lose = func(_ string, n int) (bool, bool) {
				if n == kill {
					close(killed)
				}
				return false, n >= kill // what the hub hears after its death counts for nothing
			}
			begin(t, c, d)
			<-killed
			stop()
			s.mu.Lock()
			s.lose, s.ahead = nil, time.Hour // the deadlines pass
			s.mu.Unlock()
			c, stop = s.conduct(t, disk.CrashClone(0, rand.New(rand.NewPCG(uint64(kill), 3))))
			doc, err := c.Document(d.Plan.ID)
			if err != nil || doc.Phase != "halted" || doc.Halted != "the hub has started again" {
				t.Fatalf("kill %d: %+v, %v", kill, doc, err)
			}
			if _, err := c.Again(t.Context(), d.Plan.ID, Resume, time.Hour); !errors.Is(err, ErrNotNow) {
				t.Errorf("kill %d: resumed at once: %v", kill, err)
			}
			undo, err := c.Again(t.Context(), d.Plan.ID, Undo, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			plan := undo.Describe()
			for i, h := range undo.Plan.Hosts {
				listed := slices.ContainsFunc(plan.Hosts, func(l report.FleetPlanHost) bool { return l.ID == MemberOf(h.ID) })
				if orders := undo.Orders(i); listed != (len(orders) > 0) {
					t.Errorf("kill %d: host %s has %d orders; the undo lists it: %v", kill, h.ID, len(orders), listed)
				}
			}
			begin(t, c, undo)
			until(t, c, d.Plan.ID, "done")
			for id, h := range s.hosts {
				changes, err := journal.History(h.disk, "/s")
				if err != nil {
					t.Fatal(err)
				}
				for _, change := range changes {
					if change.State == journal.Committed {
						t.Errorf("kill %d: host %s keeps %+v", kill, id, change)
					}
				}
			}
			stop()
		}
	})
}

// TestTwoPeople: hosts that ask for two signatures refuse the orders of one person, and change once
// another has signed the same orders elsewhere. One person does not count as two, and orders that
// are not those of the plan are not signed.
func TestTwoPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := simulate(6)
		s.people = 2
		c, _ := s.conduct(t, durable.NewMem())
		d := draft(t, c, all)
		one, err := d.Sign(func(e *order.Envelope) { e.Sign("ann", ann) })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Cosign(one, time.Now(), func(e *order.Envelope) { e.Sign("ann", ann) }); err == nil {
			t.Error("ann signs twice, and counts as two people")
		}
		lone, _ := simulate(6)
		lone.people = 2
		if a := lone.executor(d.Plan.Hosts[0].ID).Execute(t.Context(), one[0]); a.Code != order.TooFewKeys {
			t.Errorf("an order of one person: %+v", a)
		}
		byBob := func(e *order.Envelope) { e.Sign("bob", bob) }
		if _, err := d.Cosign(one, time.Now().Add(2*time.Hour), byBob); !errors.Is(err, ErrLate) {
			t.Errorf("signed when the orders have ended: %v", err)
		}
		both, err := d.Cosign(one, time.Now(), byBob)
		if err != nil {
			t.Fatal(err)
		}
		if by, err := d.Signers(both); err != nil || strings.Join(by, " ") != "ann bob" {
			t.Errorf("signed by %v, %v", by, err)
		}
		mixed := append(both[:1:1], one[1:]...)
		if _, err := d.Signers(mixed); !errors.Is(err, ErrUnsigned) {
			t.Errorf("bob has signed one order: %v", err)
		}
		other := *d
		other.To = "400000"
		if _, err := other.Cosign(one, time.Now(), byBob); !errors.Is(err, ErrUnsigned) {
			t.Errorf("the orders of another plan: %v", err)
		}
		if err := c.Begin(d, both, "ann+bob"); err != nil {
			t.Fatal(err)
		}
		until(t, c, d.Plan.ID, "done")
		if n := s.holding(after); n != len(all) {
			t.Errorf("%d of %d hosts hold the change", n, len(all))
		}
		again, err := c.Again(t.Context(), d.Plan.ID, Undo, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if one, err = again.Sign(func(e *order.Envelope) { e.Sign("ann", ann) }); err == nil {
			err = c.Begin(again, one, "ann") // to take back needs one
		}
		if err != nil {
			t.Fatal(err)
		}
		until(t, c, d.Plan.ID, "done")
		if n := s.holding(before); n != len(all) {
			t.Errorf("%d of %d hosts hold the value from before", n, len(all))
		}
	})
}

// TestUnsigned: the hub takes no order but those of the draft.
func TestUnsigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := simulate(3)
		c, _ := s.conduct(t, durable.NewMem())
		d := draft(t, c, all)
		orders, err := d.Sign(func(e *order.Envelope) { e.Sign("ann", ann) })
		if err != nil {
			t.Fatal(err)
		}
		unsigned, err := d.Sign(func(*order.Envelope) {})
		if err != nil {
			t.Fatal(err)
		}
		more := append(orders[:len(orders):len(orders)], orders[0])
		for name, set := range map[string][][]byte{"none": nil, "one missing": orders[1:], "one more": more,
			"unsigned": unsigned} {
			if err := c.Begin(d, set, "ann"); !errors.Is(err, ErrUnsigned) {
				t.Errorf("%s: %v", name, err)
			}
		}
		late := *d
		late.NotAfter = time.Now().Unix() - 1
		late.NotBefore = late.NotAfter - 60
		if old, err := late.Sign(func(e *order.Envelope) { e.Sign("ann", ann) }); err != nil {
			t.Error(err)
		} else if err := c.Begin(&late, old, "ann"); !errors.Is(err, ErrLate) {
			t.Errorf("signatures that have ended: %v", err)
		}
		if len(c.Taken()) > 0 {
			t.Errorf("hosts wait for orders that they would refuse: %v", c.Taken())
		}
		begin(t, c, d)
		r, err := c.find(d.Plan.ID)
		if err != nil {
			t.Fatal(err)
		}
		r.mu.Lock()
		d.NotAfter = late.NotAfter // they end in the middle
		r.mu.Unlock()
		for {
			doc, err := c.Document(d.Plan.ID)
			if err != nil {
				t.Fatal(err)
			}
			if doc.Phase == "halted" {
				if !strings.Contains(doc.Halted, "expired") {
					t.Errorf("%+v", doc)
				}
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if again, err := c.NewDraft(t.Context(), d.Change, quick, time.Hour, all); !errors.Is(err, ErrNothing) ||
			!strings.Contains(again.Missing[0].Reason, "which is not over") {
			t.Errorf("a host in two rollouts: %v", err)
		}
	})
}
