package peer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func at(n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), 32)
}

// play queues tests in the order of their names, each after the previous one is queued. Every test
// runs for a second. play returns the order in which they started; tests that started at the same
// moment are joined by "+".
func play(t *testing.T, places int, arrivals ...string) string {
	t.Helper()
	q := newQueue(places)
	var (
		mu      sync.Mutex
		started []string
		when    []time.Time
		all     sync.WaitGroup
	)
	for _, name := range arrivals {
		// The letter is the source; a star needs the host to itself, a dot is light.
		w := heavy
		switch {
		case strings.HasSuffix(name, "*"):
			w = alone
		case strings.HasSuffix(name, "."):
			w = light
		}
		all.Go(func() {
			leave, err := q.enter(t.Context(), at(int(name[0])), w, func(int) {})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			started, when = append(started, name), append(when, time.Now())
			mu.Unlock()
			time.Sleep(time.Second)
			leave()
			leave() // repeated calls count nothing
		})
		synctest.Wait()
	}
	all.Wait()
	if q.heavies != 0 || q.lights != 0 || q.alone || len(q.tags) != 0 || len(q.waiting) != 0 {
		t.Errorf("left behind: %+v", q)
	}
	var groups [][]string
	for i, name := range started {
		if i == 0 || when[i].After(when[i-1]) {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], name)
	}
	var order []string
	for _, g := range groups {
		slices.Sort(g)
		order = append(order, strings.Join(g, "+"))
	}
	return strings.Join(order, " ")
}

func TestQueueOrder(t *testing.T) {
	for name, c := range map[string]struct {
		places   int
		arrivals string
		want     string
	}{
		"first come, first served":                   {1, "a b c d", "a b c d"},
		"a source waits once per test":               {1, "a1 a2 a3 a4 b c", "a1 b c a2 a3 a4"},
		"several places":                             {2, "a b c d e", "a+b c+d e"},
		"places are shared among sources":            {2, "a1 a2 a3 a4 b1 b2", "a1+a2 a3+b1 a4+b2"},
		"light ones run beside":                      {1, "a b. c. d", "a+b.+c. d"},
		"one that needs the host to itself":          {2, "a b* c d. e", "a b* c+d.+e"},
		"which no test passes, not even another one": {2, "a* b* c.", "a* b* c."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := play(t, c.places, strings.Fields(c.arrivals)...); got != c.want {
					t.Errorf("ran as %q, want %q", got, c.want)
				}
			})
		})
	}
}

func TestQueueTellsWhereOneStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		var leaves []func()
		for i := range 3 { // one that runs, and two that wait
			entered := make(chan func(), 1)
			go func() {
				leave, _ := q.enter(t.Context(), at(i), heavy, func(int) {})
				entered <- leave
			}()
			synctest.Wait()
			leaves = append(leaves, func() { (<-entered)(); synctest.Wait() })
		}
		var positions []int
		done := make(chan func(), 1)
		go func() {
			leave, err := q.enter(t.Context(), at(9), heavy, func(before int) { positions = append(positions, before) })
			if err != nil {
				t.Error(err)
			}
			done <- leave
		}()
		time.Sleep(time.Second)
		leaves[0]()
		leaves[1]()
		time.Sleep(2*retellEvery + time.Second) // repeated, so that the client sees that the far side is alive
		leaves[2]()
		(<-done)()
		if diff := cmp.Diff([]int{3, 2, 1, 1, 1}, positions); diff != "" {
			t.Error(diff)
		}
	})
}

func TestQueueEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		leave, err := q.enter(t.Context(), at(1), heavy, func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.enter(t.Context(), at(2), heavy, func(int) {}); !errors.Is(err, ErrBusy) {
			t.Errorf("after %v: %v", admissionWait, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.enter(ctx, at(2), heavy, func(int) {}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("given up: %v", err)
		}
		leave()
		if leave, err = q.enter(t.Context(), at(3), alone, func(int) { t.Error("a notice to wait") }); err != nil {
			t.Fatal(err)
		}
		leave()
	})
}

// TestQueueManyGiveUp has clients enter and give up at once in all ways; in the end every place
// must be free.
func TestQueueManyGiveUp(t *testing.T) {
	q := newQueue(3)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*time.Millisecond)
			defer cancel()
			if leave, err := q.enter(ctx, at(i%5), weight(i%3), func(int) {}); err == nil {
				leave()
			}
		})
	}
	all.Wait()
	if got := fmt.Sprint(q.heavies, q.lights, q.alone, len(q.tags), len(q.waiting)); got != "0 0 false 0 0" {
		t.Errorf("left behind: %s", got)
	}
}
