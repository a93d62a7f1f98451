package admission

import (
	"net/netip"
	"sync"
)

// Anteroom bounds the connections that have not said yet what they want, and so belong to no
// [Visit]: each holds a descriptor and a goroutine. A source can take only a part of the places;
// otherwise one that connects and says nothing would exclude all other sources. Sources are those
// of a [Gate]: all addresses of an IPv6 /64 count together. Any goroutine may call its methods.
type Anteroom struct {
	all, perSource int

	mu      sync.Mutex
	waiting map[source]int
	sum     int // of waiting
}

// NewAnteroom makes one with places places, of which one source can have perSource.
func NewAnteroom(all, perSource int) *Anteroom {
	return &Anteroom{all: all, perSource: perSource, waiting: make(map[source]int)}
}

// Enter takes a place; ok is false when none is free. leave gives it back, and may be called more
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
