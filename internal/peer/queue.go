package peer

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/wire"
)

const (
	// admissionWait is how long a client waits for other clients' tests to end: some dozens of the
	// default ten seconds. People do not wait in the dark for it: they are told how many are before
	// them.
	admissionWait = 5 * time.Minute
	// retellEvery is how often a client that waits hears of it although nothing has changed, so
	// that it knows that the far side has not forgotten it.
	retellEvery = 10 * time.Second
	// tellAfter is how long a client waits before it hears of it at all: the end of the last test
	// and the beginning of the next one of the same user overlap by some milliseconds, which is not
	// worth a word.
	tellAfter = 250 * time.Millisecond
	// maxLight is how many light tests may run at once. Each is some dozens of packets a second, so
	// the bound is against mistakes.
	maxLight = 64
)

// weight is how much of a host a test takes.
type weight int

const (
	light weight = iota // some packets; may run beside others: ping, mtu
	heavy               // fills a link or a processor: takes one of the places
	// needs the listening port to itself, because its options hold for every connection that is
	// accepted meanwhile
	alone
)

// queue admits tests in turn. Two heavy tests at once measure each other, so there is one place
// unless the user of this host asked for more.
//
// Whose turn it is: sources share the places evenly, and first come is first served within that.
// This is start-time fair queueing (Goyal, Vin and Cheng, 1996) with every test of weight one: a
// test gets as its tag the number of its source's last tag plus one, or the tag of the test that
// was started last if that is more, and the lowest tag goes first. So a source that opens many
// connections waits once for each of its tests while others pass between them, and nobody waits for
// ever. A source is an address, or the /64 of an IPv6 one: whoever has one address of a /64 has
// them all.
type queue struct {
	places int // for heavy tests

	mu      sync.Mutex
	tags    map[netip.Prefix]int // the next tag of sources that had a test, until nobody is here any more
	started int                  // tag of the test that was started last
	heavies int                  // that run, alone or not
	lights  int                  // that run
	alone   bool                 // the one that runs needs the host to itself
	waiting []*ticket            // in order of arrival
}

// ticket is one test that waits.
type ticket struct {
	source netip.Prefix
	weight weight
	tag    int           // the lowest goes first
	turn   chan struct{} // closed when it may run
	moved  chan struct{} // one place: before has changed
	before int           // tests that run or come first; under the queue's lock
}

func newQueue(places int) *queue {
	return &queue{places: max(places, 1), tags: make(map[netip.Prefix]int)}
}

// enter waits for a place, for admissionWait at most, and gives what leaves it again, which counts
// once. tell hears how many tests come first, soon if there are any and whenever that changes; it
// may block, which holds up nobody else. Errors are ErrBusy or the context's.
func (q *queue) enter(ctx context.Context, source netip.Prefix, w weight, tell func(before int)) (leave func(),
	err error) {
	t := &ticket{source: source, weight: w, turn: make(chan struct{}), moved: make(chan struct{}, 1)}
	q.mu.Lock()
	t.tag = q.started
	if w != light { // a light one takes nothing that its source would have to account for
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
	told := false
	for {
		select {
		case <-t.turn:
			return leave, nil
		case <-t.moved:
			if told {
				tell(q.ahead(t))
			}
		case <-again.C:
			if !told {
				told = true
				again.Reset(retellEvery)
			}
			tell(q.ahead(t))
		case <-bound.C:
			return nil, q.giveUp(t, fmt.Errorf("%w: other tests were running there for %s", ErrBusy, admissionWait))
		case <-ctx.Done():
			return nil, q.giveUp(t, fmt.Errorf("wait for other tests to end: %w", ctx.Err()))
		}
	}
}

// giveUp takes a ticket out, or frees its place if its turn has come meanwhile.
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

// advance starts whoever may start now, and tells the others where they stand. The caller holds the
// lock.
func (q *queue) advance() {
	for {
		order := q.order()
		next := slices.IndexFunc(order, q.fits)
		// Nobody passes a test that needs the host to itself, or it would never find it empty.
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
	// Whoever comes to an empty host is equal to all others.
	if q.heavies == 0 && len(q.waiting) == 0 {
		clear(q.tags)
		q.started = 0
	}
}

// fits tells whether a test may start beside those that run.
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

// order gives those who wait in the order of their turns.
func (q *queue) order() []*ticket {
	order := slices.Clone(q.waiting)
	slices.SortStableFunc(order, func(a, b *ticket) int { return a.tag - b.tag })
	return order
}

// place notes how many come before each one that waits.
func (q *queue) place(order []*ticket) {
	running := q.heavies
	for i, t := range order {
		if before := running + i; before != t.before {
			t.before = before
			select {
			case t.moved <- struct{}{}:
			default: // it has not looked yet, and will find this
			}
		}
	}
}

// ahead gives how many tests come before one that waits.
func (q *queue) ahead(t *ticket) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return t.before
}

// sourceOf is the source that a client at an address belongs to; clients whose address is not known
// are one source.
func sourceOf(ip string) netip.Prefix {
	a, _ := netip.ParseAddr(ip) // the zero address otherwise
	return wire.Source(a)
}
