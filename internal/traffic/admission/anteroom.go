package admission

import (
	"net/netip"
	"sync"
)

// Anteroom bounds the connections that have not said yet what they want, and so belong to no
// [Visit]: each holds a descriptor and a goroutine. When all places are taken, the source with the
// most of them loses its oldest to the newcomer. A client says what it wants within some round
// trips, so silent connections keep it out neither by their number nor by the number of their
// sources. Sources are those of a [Gate]. Any goroutine may call its methods.
type Anteroom struct {
	all, perSource int

	mu      sync.Mutex
	waiting []*waiter // oldest first
	count   map[source]int
}

// waiter is one connection.
type waiter struct {
	key  source
	drop func()
}

// NewAnteroom makes one with all places, of which one source can have perSource.
func NewAnteroom(all, perSource int) *Anteroom {
	return &Anteroom{all: all, perSource: perSource, count: make(map[source]int)}
}

// Enter takes a place; ok is false when the source has all of its own. drop is called, by another
// goroutine and once at most, when the place goes to another connection: it closes this one. leave
// gives the place back, and may be called more than once.
func (a *Anteroom) Enter(from netip.Addr, drop func()) (leave func(), ok bool) {
	w := &waiter{sourceOf(from), drop}
	a.mu.Lock()
	if a.count[w.key] >= a.perSource {
		a.mu.Unlock()
		return nil, false
	}
	var victim *waiter
	if len(a.waiting) >= a.all {
		victim = a.crowd()
		a.remove(victim)
	}
	a.waiting = append(a.waiting, w)
	a.count[w.key]++
	a.mu.Unlock()
	if victim != nil {
		victim.drop() // without the lock, because it calls code of a server
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.remove(w)
	}, true
}

// crowd returns the oldest connection of the source with the most. The caller holds the lock.
func (a *Anteroom) crowd() (victim *waiter) {
	for _, w := range a.waiting {
		if victim == nil || a.count[w.key] > a.count[victim.key] {
			victim = w
		}
	}
	return victim
}

// remove gives a place back, if it is still taken. The caller holds the lock.
func (a *Anteroom) remove(w *waiter) {
	for i, o := range a.waiting {
		if o != w {
			continue
		}
		a.waiting = append(a.waiting[:i], a.waiting[i+1:]...)
		if a.count[w.key]--; a.count[w.key] == 0 {
			delete(a.count, w.key)
		}
		return
	}
}
