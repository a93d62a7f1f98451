package peer

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/wire"
)

const (
	// admissionWait is how long a client waits for other clients' tests to end: some dozens of the
	// default ten seconds. Meanwhile the client shows how many come first.
	admissionWait = 5 * time.Minute
	// retellEvery is how often a waiting client gets a note although nothing has changed, so that
	// it knows that the far side is alive.
	retellEvery = 10 * time.Second
	// tellAfter is how long a client waits before its first note. The end of one test and the
	// beginning of the same user's next one overlap by some milliseconds, which deserve no note.
	tellAfter = 250 * time.Millisecond
	// maxLight bounds the light tests that run at once. Each sends some dozens of packets a second,
	// so the bound is against mistakes.
	maxLight = 64
)

// weight is how much of a host a test takes.
type weight int

const (
	light weight = iota // some packets; may run beside any other test: ping, mtu
	heavy               // fills a link or a CPU: takes one of the places
	// needs the listening port to itself, because its options apply to every connection that the
	// port accepts meanwhile
	alone
)

// queue admits tests in turn. Two heavy tests at once measure each other, so there is one place
// unless the user of this host asked for more.
//
// Sources share the places evenly; within that, first come, first served. This is start-time fair
// queueing (Goyal, Vin and Cheng, 1996) with every test of weight one: a test's tag is the number
// of its source's last tag plus one, or the tag of the test that started last if that is larger,
// and the lowest tag goes first. So a source that opens many connections waits once for each of its
// tests, others pass between them, and no test waits for ever. A source is an IPv4 address or the
// /64 of an IPv6 address, because a host that has one address of a /64 has them all.
type queue struct {
	places int // for heavy tests

	mu      sync.Mutex
	tags    map[netip.Prefix]int // the next tag of each source that had a test; cleared when the host is idle
	started int                  // tag of the test that was started last
	heavies int                  // running, alone or not
	lights  int                  // running
	alone   bool                 // the running test needs the host to itself
	waiting []*ticket            // in order of arrival
}

// ticket is one waiting test.
type ticket struct {
	source netip.Prefix
	weight weight
	tag    int           // the lowest goes first
	turn   chan struct{} // closed when it may run
	moved  chan struct{} // one place: before has changed
	before int           // tests that run or come first; protected by the queue's lock
}

func newQueue(places int) *queue {
	return &queue{places: max(places, 1), tags: make(map[netip.Prefix]int)}
}

// enter waits for a place, at most admissionWait, and returns a function that frees it, which
// counts once. notify is called with the number of tests that come first, soon if there are any and
// whenever the number changes. It may block without delaying other clients. Errors are ErrBusy or
// the context's.
func (q *queue) enter(ctx context.Context, source netip.Prefix, w weight, notify func(before int)) (leave func(),
	err error) {
	t := &ticket{source: source, weight: w, turn: make(chan struct{}), moved: make(chan struct{}, 1)}
	q.mu.Lock()
	t.tag = q.started
	if w != light { // a light test takes nothing that is accounted to its source
		t.tag = max(t.tag, q.tags[source])
		q.tags[source] = t.tag + 1
	}
	q.waiting = append(q.waiting, t)
	q.advance()
	q.mu.Unlock()
	leave = sync.OnceFunc(func() { q.leave(t) })
	bound, again := time.NewTimer(admissionWait), time.NewTicker(tellAfter)
	defer bound.Stop()
	defer again.Stop()
	notified := false
	for {
		select {
		case <-t.turn:
			return leave, nil
		case <-t.moved:
			if notified {
				notify(q.ahead(t))
			}
		case <-again.C:
			if !notified {
				notified = true
				again.Reset(retellEvery)
			}
			notify(q.ahead(t))
		case <-bound.C:
			return nil, q.giveUp(t, fmt.Errorf("%w: other tests were running there for %s", ErrBusy, admissionWait))
		case <-ctx.Done():
			return nil, q.giveUp(t, fmt.Errorf("wait for other tests to end: %w", ctx.Err()))
		}
	}
}

// giveUp removes a ticket, or frees its place if its turn has come meanwhile.
func (q *queue) giveUp(t *ticket, why error) error {
	q.mu.Lock()
	i := slices.Index(q.waiting, t)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.advance()
	}
	q.mu.Unlock()
	if i < 0 {
		q.leave(t)
	}
	return why
}

// leave frees the place of a test.
func (q *queue) leave(t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.weight == light {
		q.lights--
	} else {
		q.heavies--
		q.alone = q.alone && t.weight != alone
	}
	q.advance()
}

// advance starts every test that may start now, and updates the positions of the others. The caller
// holds the lock.
func (q *queue) advance() {
	for {
		order := q.order()
		next := slices.IndexFunc(order, q.fits)
		// No test passes one that needs the host to itself; otherwise that one would never find the
		// host empty.
		if first := slices.IndexFunc(order, func(t *ticket) bool { return t.weight == alone }); next < 0 ||
			first >= 0 && first < next {
			q.place(order)
			break
		}
		t := order[next]
		q.waiting = slices.DeleteFunc(q.waiting, func(o *ticket) bool { return o == t })
		if t.weight == light {
			q.lights++
		} else {
			q.heavies++
			q.alone = t.weight == alone
			q.started = max(q.started, t.tag)
		}
		close(t.turn)
	}
	// All sources are equal on an empty host.
	if q.heavies == 0 && len(q.waiting) == 0 {
		clear(q.tags)
		q.started = 0
	}
}

// fits reports whether a test may start beside the running ones.
func (q *queue) fits(t *ticket) bool {
	switch {
	case q.alone:
		return false
	case t.weight == light:
		return q.lights < maxLight
	case t.weight == alone:
		return q.heavies == 0 && q.lights == 0
	}
	return q.heavies < q.places
}

// order returns the waiting tests in the order of their turns.
func (q *queue) order() []*ticket {
	order := slices.Clone(q.waiting)
	sorting.StableFunc(order, func(a, b *ticket) int { return a.tag - b.tag })
	return order
}

// place updates how many tests come before each waiting one.
func (q *queue) place(order []*ticket) {
	running := q.heavies
	for i, t := range order {
		if before := running + i; before != t.before {
			t.before = before
			select {
			case t.moved <- struct{}{}:
			default: // the client has not read the last position, and will find this one
			}
		}
	}
}

// ahead returns how many tests come before a waiting one.
func (q *queue) ahead(t *ticket) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return t.before
}

// sourceOf returns the source of a client's address. All clients with unknown addresses are one
// source.
func sourceOf(ip string) netip.Prefix {
	a, _ := netip.ParseAddr(ip) // the zero address otherwise
	return wire.Source(a)
}
