package nuttcp

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/traffic/service"
)

// Arrivals are the tests that wait for their data on one port. Data do not identify their test, so
// the address of the sender has to.
type Arrivals struct {
	mu      sync.Mutex
	waiting []*arrival                  // oldest first
	bound   map[netip.AddrPort]*arrival // UDP senders whose test is known
}

// arrival is what a test waits for: one connection, or datagrams.
type arrival struct {
	from   netip.Addr
	silent bool               // the data flow from here, so the connection brings no bytes
	conn   func(*net.TCPConn) // nil: the test waits for datagrams
	packet func(p []byte, at time.Time)
}

// NewArrivals returns the arrivals of one port, without any test.
func NewArrivals() *Arrivals { return &Arrivals{bound: make(map[netip.AddrPort]*arrival)} }

// Expects reports whether a test waits for a connection from the address of conn, and whether that
// connection stays silent because this end sends the data (`nuttcp -F -r`).
func (a *Arrivals) Expects(conn *net.TCPConn) (waits, silent bool) {
	from := service.From(conn).Addr()
	a.mu.Lock()
	defer a.mu.Unlock()
	// TakeConn gives the connection to the oldest test of the address.
	i := slices.IndexFunc(a.waiting, func(w *arrival) bool { return w.conn != nil && w.from == from })
	return i >= 0, i >= 0 && a.waiting[i].silent
}

// TakeConn hands a connection to the test that waits for it, and reports whether there is one. It
// does not block. Without a waiting test, the connection is untouched.
func (a *Arrivals) TakeConn(conn *net.TCPConn) bool {
	from := service.From(conn).Addr()
	a.mu.Lock()
	i := slices.IndexFunc(a.waiting, func(w *arrival) bool { return w.conn != nil && w.from == from })
	if i < 0 {
		a.mu.Unlock()
		return false
	}
	w := a.waiting[i]
	a.waiting = slices.Delete(a.waiting, i, i+1)
	a.mu.Unlock()
	// Without the lock, because it calls code of a session.
	w.conn(conn)
	return true
}

// TakePacket hands a datagram to the test that waits for it, and reports whether there is one. A
// test belongs to the address that wrote to it first. One goroutine at a time calls TakePacket; it
// does not block.
func (a *Arrivals) TakePacket(d service.Datagram) bool {
	p, from, addr := d.Payload, d.From, d.From.Addr()
	a.mu.Lock()
	w := a.bound[from]
	if w == nil {
		// Late datagrams of a finished test must not be taken for the next test, which begins with
		// a mark.
		if !begins(p) {
			a.mu.Unlock()
			return false
		}
		i := slices.IndexFunc(a.waiting, func(w *arrival) bool { return w.packet != nil && w.from == addr })
		if i < 0 {
			a.mu.Unlock()
			return false
		}
		w = a.waiting[i]
		a.waiting = slices.Delete(a.waiting, i, i+1)
		// From now on the port counts too: a second test of this address is another sender.
		a.bound[from] = w
	}
	a.mu.Unlock()
	w.packet(p, d.At)
	return true
}

// expect adds an arrival until forget is called; repeated calls have no effect.
func (a *Arrivals) expect(w *arrival) (forget func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = append(a.waiting, w)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.waiting = slices.DeleteFunc(a.waiting, func(o *arrival) bool { return o == w })
		for from, o := range a.bound {
			if o == w {
				delete(a.bound, from)
			}
		}
	}
}
