package conduct

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/peer/order"
)

// startFile is what makes a change of a simulated host survive a restart.
const startFile = "/etc/sysctl.d/90-linerate-0001.conf"

// files is how many hosts have one.
func (s *simulated) files() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hosts {
		if _, err := h.disk.ReadFile(startFile); err == nil {
			n++
		}
	}
	return n
}

// TestPersist signs a proven change anew to make it permanent. Hosts whose policy refuses keep it
// until they restart, a hub that dies in the middle leaves the rest to the next signature, and undo
// removes all files.
func TestPersist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts = 4
		s, all := simulate(hosts)
		disk := durable.NewMem()
		c, stop := s.conduct(t, disk)
		d := draft(t, c, all)
		if _, err := c.Again(t.Context(), d.Plan.ID, Persist, time.Hour); !errors.Is(err, ErrNoRollout) {
			t.Errorf("before it has begun: %v", err)
		}
		begin(t, c, d)
		if _, err := c.Again(t.Context(), d.Plan.ID, Persist, time.Hour); !errors.Is(err, ErrNotNow) {
			t.Errorf("in the middle: %v", err)
		}
		until(t, c, d.Plan.ID, "done")
		both := func(e *order.Envelope) { e.Sign("ann", ann); e.Sign("bob", bob) }
		persist := func(sign func(*order.Envelope), left int) {
			t.Helper()
			again, err := c.Again(t.Context(), d.Plan.ID, Persist, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			orders, err := again.Sign(sign)
			if err != nil || len(orders) != left {
				t.Fatalf("%d orders, want %d: %v", len(orders), left, err)
			}
			if err := c.Begin(again, orders, "ann+bob"); err != nil {
				t.Fatal(err)
			}
			until(t, c, d.Plan.ID, "done")
		}
		states := func(want map[string]int) {
			t.Helper()
			doc, err := c.Document(d.Plan.ID)
			if err != nil {
				t.Fatal(err)
			}
			for state, n := range want {
				if doc.States[state] != n {
					t.Errorf("want %d %s, not %v; %+v", n, state, doc.States, doc.Hosts)
				}
			}
		}
		persist(both, hosts) // no policy lets it
		states(map[string]int{"not-persistable": hosts})
		s.mu.Lock()
		s.persist = true
		s.mu.Unlock()
		persist(func(e *order.Envelope) { e.Sign("ann", ann) }, hosts) // the policy wants two
		states(map[string]int{"not-persistable": hosts})
		if n := s.files(); n != 0 {
			t.Errorf("%d files", n)
		}

		// The hub dies while two hosts have not answered.
		s.mu.Lock()
		s.lose = func(host string, _ int) (bool, bool) { return host == "h2" || host == "h3", false }
		s.mu.Unlock()
		again, err := c.Again(t.Context(), d.Plan.ID, Persist, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		orders, err := again.Sign(both)
		if err == nil {
			err = c.Begin(again, orders, "ann+bob")
		}
		if err != nil {
			t.Fatal(err)
		}
		for begun := time.Now(); s.files() < 2; time.Sleep(time.Millisecond) {
			if time.Since(begun) > 2*time.Minute {
				t.Fatalf("%d files", s.files())
			}
		}
		stop()
		s.mu.Lock()
		s.lose = nil
		s.mu.Unlock()
		c, _ = s.conduct(t, disk)
		until(t, c, d.Plan.ID, "done")
		persist(both, 2)
		states(map[string]int{"persisted": hosts})
		if n := s.files(); n != hosts {
			t.Errorf("%d files", n)
		}
		if _, err := c.Again(t.Context(), d.Plan.ID, Persist, time.Hour); !errors.Is(err, ErrNoChange) {
			t.Errorf("nothing is left to persist: %v", err)
		}

		undo, err := c.Again(t.Context(), d.Plan.ID, Undo, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		begin(t, c, undo)
		until(t, c, d.Plan.ID, "done")
		states(map[string]int{"undone": hosts})
		if n := s.files(); n != 0 || s.holding(before) != hosts {
			t.Errorf("%d files, %d hosts hold the value from before", n, s.holding(before))
		}
	})
}
