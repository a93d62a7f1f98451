package admission

import (
	"net/netip"
	"sync"
)

// Anteroom bounds the connections that have not said yet what they want, and so are nobody's
// [Visit]: each holds a descriptor and a goroutine. A source can take a part of the places only, or
// one that connects and says nothing would keep all others out. A source is what a [Gate] takes for
// one: with the /64 of an IPv6 address all of its addresses are counted. Its methods may be called
// from any goroutine.
type Anteroom struct {
	all, perSource int

	mu      sync.Mutex
	waiting map[source]int
	sum     int // of waiting
}

// NewAnteroom makes one of so many places, of which one source can have perSource.
func NewAnteroom(all, perSource int) *Anteroom {
	return &Anteroom{all: all, perSource: perSource, waiting: make(map[source]int)}
}

// Enter takes a place; ok is false when there is none. leave gives it back, and may be called more
// than once.
func (a *Anteroom) Enter(from netip.Addr) (leave func(), ok bool) {
	key := sourceOf(from)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sum >= a.all || a.waiting[key] >= a.perSource {
		return nil, false
	}
	a.sum++
	a.waiting[key]++
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.sum--
		if a.waiting[key]--; a.waiting[key] == 0 {
			delete(a.waiting, key)
		}
	}), true
}
