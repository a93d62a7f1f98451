package wire

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Any host can open a connection before authentication, so all resources used until then are
// limited. A connection that has sent nothing costs a descriptor and a small goroutine; a handshake
// costs some 60 KiB and half a millisecond of CPU time. So there may be many of the first kind and
// few of the second. In both, the source with the most connections loses one first: an attacker can
// slow down other hosts of its own network, but can lock out a host with the key only by using as
// many addresses as there are places.
//
// Only a connection whose first message has arrived whole competes for a handshake. A part of it,
// which any address can send, is as cheap as silence.
const (
	// maxHalfOpen limits the connections that have not yet identified themselves, besides the
	// expected data connections. Above it, the source with the most of them loses one: the oldest
	// that has sent nothing, otherwise the oldest.
	maxHalfOpen = 1024
	// maxHandshakes limits the concurrent TLS handshakes. Other connections wait their turn, with
	// their first bytes in the kernel's buffer.
	maxHandshakes = 128
	// handshakePatience is how long a handshake may hold a place that another connection waits for;
	// an honest peer needs a few round trips. Where more wait than there are places, each gets less:
	// then a thousand addresses, the most that may wait, hold up an honest peer for less than
	// handshakeTimeout.
	handshakePatience = time.Second
	crowdedPatience   = 300 * time.Millisecond
	// maxHello is the longest first message of a peer in bytes. Ours has about 1500 with the key
	// share of X25519MLKEM768.
	maxHello = 4 << 10
)

// errCrowded is the reason for a connection that was dropped in favour of another.
var errCrowded = errors.New("dropped: too many unidentified connections")

// stage is the progress of a half-open connection.
type stage int

const (
	silent  stage = iota // has sent nothing
	waiting              // waits for a handshake
	shaking              // is in a handshake
)

// halfOpen is one unidentified connection. The listener's lock guards all but the first four
// fields.
type halfOpen struct {
	conn    *net.TCPConn
	remote  netip.AddrPort
	source  netip.Prefix // may send data for the tokens of a client
	crowd   netip.Prefix // shares places with others
	stage   stage
	since   time.Time     // when its handshake began
	turn    chan struct{} // closed when a waiting connection may continue, or is dropped
	dropped bool          // dropped in favour of another
}

// Source returns the prefix that a connection is accounted to: an IPv4 address, or the /64 of an
// IPv6 address, since a host with one address of a /64 can use all of them.
func Source(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // fails only for the zero address, with the zero prefix
	return p
}

// crowdOf returns what competes for places as one: an IPv4 address, or the /48 of an IPv6 address,
// since one site has all of it (RFC 6177).
func crowdOf(a netip.Addr) netip.Prefix {
	source := Source(a)
	if source.Bits() == 64 {
		source, _ = source.Addr().Prefix(48) // an IPv6 address has as many bits
	}
	return source
}

// enter adds a half-open connection, counts its goroutine, and drops another connection if there
// are too many.
func (l *Listener) enter(h *halfOpen) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	if len(l.half) >= maxHalfOpen+l.expected {
		crowd := l.largest(func(*halfOpen) bool { return true })
		victim := slices.IndexFunc(l.half, func(o *halfOpen) bool { return o.crowd == crowd && o.stage == silent })
		if victim < 0 {
			victim = slices.IndexFunc(l.half, func(o *halfOpen) bool { return o.crowd == crowd })
		}
		l.drop(victim)
	}
	l.half = append(l.half, h)
	l.group.Add(1)
	return true
}

// largest returns the source with the most half-open connections of a kind. The caller holds the
// lock.
func (l *Listener) largest(kind func(*halfOpen) bool) netip.Prefix {
	var most netip.Prefix
	n := 0
	count := make(map[netip.Prefix]int)
	for _, h := range l.half {
		if !kind(h) {
			continue
		}
		if count[h.crowd]++; count[h.crowd] > n {
			most, n = h.crowd, count[h.crowd]
		}
	}
	return most
}

// drop closes one half-open connection; its goroutine reports that. The caller holds the lock.
func (l *Listener) drop(i int) {
	h := l.half[i]
	h.dropped = true
	_ = h.conn.Close() // ends what its goroutine reads or writes
	l.remove(i)
}

// remove removes a connection, and starts the next handshake if it was in one. The caller holds the
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

// leave ends the half-open state. It returns false if the connection was dropped meanwhile.
func (l *Listener) leave(h *halfOpen) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.half, h)
	if i >= 0 {
		l.remove(i)
	}
	return i >= 0
}

// awaitHandshake returns when a connection may start its handshake, or with the reason for its
// refusal.
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
	impatient := time.NewTicker(crowdedPatience) // it drops the ticks of a standstill but for one
	defer impatient.Stop()
	for looks := 0; ; {
		select {
		case <-turn:
			l.mu.Lock()
			defer l.mu.Unlock()
			if h.dropped {
				return errCrowded
			}
			return nil
		case <-impatient.C:
			if looks++; looks > int(handshakeTimeout/crowdedPatience) {
				return fmt.Errorf("no turn for a handshake within %s", handshakeTimeout)
			}
			l.hurry()
		case <-l.closed:
			return net.ErrClosed
		}
	}
}

// limitSteps is in how many steps the limit of a connection is counted.
const limitSteps = 5

// limit ends the reads and writes of a connection after d, unless identified is called before. A
// process that stood still finds its timers elapsed before it could read what its peer had sent
// long ago. So the time is counted in steps, and a standstill of any length is one of them.
func limit(conn net.Conn, d time.Duration) (identified func()) {
	var (
		mu    sync.Mutex
		steps int
		over  bool
		timer *time.Timer
	)
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(d/limitSteps, func() {
		mu.Lock()
		defer mu.Unlock()
		switch steps++; {
		case over:
		case steps < limitSteps:
			timer.Reset(d / limitSteps)
		default:
			_ = conn.SetDeadline(time.Unix(1, 0)) // in the past: os.ErrDeadlineExceeded at once
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		over = true
		timer.Stop()
		_ = conn.SetDeadline(time.Time{}) // fails if the connection is closed
	}
}

// nextHandshake starts handshakes while there are places. It chooses a waiting connection of the
// source with the fewest handshakes, the oldest first. The caller holds the lock.
func (l *Listener) nextHandshake() {
	for l.shaking < maxHandshakes {
		busy := make(map[netip.Prefix]int)
		for _, h := range l.half {
			if h.stage == shaking {
				busy[h.crowd]++
			}
		}
		var next *halfOpen
		for _, h := range l.half {
			if h.stage == waiting && (next == nil || busy[h.crowd] < busy[next.crowd]) {
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

// hurry drops one handshake if others have waited long enough: the oldest of the source with the
// most.
func (l *Listener) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	patience, queue := handshakePatience, 0
	for _, h := range l.half {
		if h.stage == waiting {
			queue++
		}
	}
	if queue > maxHandshakes {
		patience = crowdedPatience
	}
	slow := func(h *halfOpen) bool { return h.stage == shaking && time.Since(h.since) > patience }
	crowd := l.largest(slow)
	if i := slices.IndexFunc(l.half, func(h *halfOpen) bool { return slow(h) && h.crowd == crowd }); i >= 0 {
		l.drop(i)
	}
}

// reject counts a connection, closes it, and reports it to the registered function. A client that
// sees the end of its connection finds it counted.
func (l *Listener) reject(h *halfOpen, head []byte, err error) {
	l.leave(h)
	if err == nil {
		err = ErrNotLinerate
	}
	r := Rejection{Remote: h.remote, Dialect: Dialect(head), Err: err}
	l.mu.Lock()
	if h.dropped {
		r.Err = errCrowded // the read error is only a result of the closing
	}
	// Counted by dialect, of which few exist: a rejected peer must not be able to grow a map.
	l.rejected[r.Dialect]++
	report := l.onReject
	if l.over {
		report = nil
	}
	l.mu.Unlock()
	_ = h.conn.Close()
	if report != nil {
		report(r)
	}
}
