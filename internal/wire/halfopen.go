package wire

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// Everything up to authentication is open to strangers, so it is bounded here. A connection that
// has said nothing costs a descriptor and a small goroutine; one that shakes hands costs some 60
// KiB and a processor for half a millisecond. So there may be many of the first kind and few of the
// second, and in both a source that has more gives way to one that has less: a stranger can slow
// others of its own network down, and keep a host that has the key out only by having as many
// addresses as there are places.
const (
	// maxHalfOpen bounds the connections that have not yet shown what they are, beside the data
	// connections that are expected. Over it, the source with the most of them loses one: the
	// oldest that has said nothing, else the oldest.
	maxHalfOpen = 1024
	// maxHandshakes bounds the TLS handshakes at once; the others wait for their turn with what
	// they have said in the kernel's buffer.
	maxHandshakes = 32
	// handshakePatience is how long a handshake may hold a place that another waits for: an honest
	// peer is through within some round trips.
	handshakePatience = time.Second
)

// errCrowded is the end of a connection that gave way.
var errCrowded = errors.New("gave way: too many connections that have not shown what they are")

// stage is how far a half-open connection has come.
type stage int

const (
	silent  stage = iota // nothing was said
	waiting              // wants to shake hands
	shaking              // shakes hands
)

// halfOpen is one connection of which nothing is known yet. All but the first three belong to the
// listener's lock.
type halfOpen struct {
	conn    *net.TCPConn
	remote  netip.AddrPort
	source  netip.Prefix
	stage   stage
	since   time.Time     // when its handshake began
	turn    chan struct{} // closed when a waiting one may go on, or has to go
	dropped bool          // it gave way to another
}

// Source is whom a connection is accounted to: an IPv4 address or the /64 of an IPv6 one, since
// whoever has one address of a /64 has them all.
func Source(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // the zero prefix for the zero address, else it cannot fail
	return p
}

// enter notes a half-open connection, counts its goroutine, and drops another one if there are too
// many.
func (l *Listener) enter(h *halfOpen) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	if len(l.half) >= maxHalfOpen+l.expected {
		crowd := l.largest(func(*halfOpen) bool { return true })
		victim := slices.IndexFunc(l.half, func(o *halfOpen) bool { return o.source == crowd && o.stage == silent })
		if victim < 0 {
			victim = slices.IndexFunc(l.half, func(o *halfOpen) bool { return o.source == crowd })
		}
		l.drop(victim)
	}
	l.half = append(l.half, h)
	l.group.Add(1)
	return true
}

// largest is the source with the most half-open connections of a kind. The caller holds the lock.
func (l *Listener) largest(kind func(*halfOpen) bool) netip.Prefix {
	var most netip.Prefix
	n := 0
	count := make(map[netip.Prefix]int)
	for _, h := range l.half {
		if !kind(h) {
			continue
		}
		if count[h.source]++; count[h.source] > n {
			most, n = h.source, count[h.source]
		}
	}
	return most
}

// drop makes one half-open connection give way; its goroutine reports it. The caller holds the
// lock.
func (l *Listener) drop(i int) {
	h := l.half[i]
	h.dropped = true
	_ = h.conn.Close() // ends what its goroutine reads or writes
	l.remove(i)
}

// remove takes a connection out, and lets the next one shake hands if it did. The caller holds the
// lock.
func (l *Listener) remove(i int) {
	h := l.half[i]
	l.half = slices.Delete(l.half, i, i+1)
	switch h.stage {
	case waiting:
		close(h.turn)
	case shaking:
		l.shaking--
		l.nextHandshake()
	}
}

// leave ends the half-open state. It is false if the connection was dropped meanwhile.
func (l *Listener) leave(h *halfOpen) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.half, h)
	if i >= 0 {
		l.remove(i)
	}
	return i >= 0
}

// awaitHandshake returns when a connection may shake hands, or with the reason why it may not.
func (l *Listener) awaitHandshake(h *halfOpen) error {
	l.mu.Lock()
	if slices.Index(l.half, h) < 0 {
		l.mu.Unlock()
		return errCrowded
	}
	h.stage, h.turn = waiting, make(chan struct{})
	l.nextHandshake()
	turn := h.turn
	l.mu.Unlock()
	deadline := time.NewTimer(handshakeTimeout)
	defer deadline.Stop()
	impatient := time.NewTicker(handshakePatience)
	defer impatient.Stop()
	for {
		select {
		case <-turn:
			l.mu.Lock()
			defer l.mu.Unlock()
			if h.dropped {
				return errCrowded
			}
			return nil
		case <-impatient.C:
			l.hurry()
		case <-deadline.C:
			return fmt.Errorf("no turn for a handshake within %s", handshakeTimeout)
		case <-l.closed:
			return net.ErrClosed
		}
	}
}

// nextHandshake lets connections shake hands while there are places: of those that wait, one of the
// source that has the fewest at it, the oldest first. The caller holds the lock.
func (l *Listener) nextHandshake() {
	for l.shaking < maxHandshakes {
		busy := make(map[netip.Prefix]int)
		for _, h := range l.half {
			if h.stage == shaking {
				busy[h.source]++
			}
		}
		var next *halfOpen
		for _, h := range l.half {
			if h.stage == waiting && (next == nil || busy[h.source] < busy[next.source]) {
				next = h
			}
		}
		if next == nil {
			return
		}
		next.stage, next.since = shaking, time.Now()
		l.shaking++
		close(next.turn)
	}
}

// hurry drops one handshake that others have waited for long enough: the oldest of the source that
// has the most.
func (l *Listener) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	slow := func(h *halfOpen) bool { return h.stage == shaking && time.Since(h.since) > handshakePatience }
	crowd := l.largest(slow)
	if i := slices.IndexFunc(l.half, func(h *halfOpen) bool { return slow(h) && h.source == crowd }); i >= 0 {
		l.drop(i)
	}
}
