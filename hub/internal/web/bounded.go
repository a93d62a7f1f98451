package web

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/linerate/linerate/internal/kernel/incoming"
)

// bounded is a listener with a bounded number of connections. When all places are taken, the source
// with the most connections that answer no request gives one up: browsers and attackers alike keep
// connections open without a request, and 256 of them would lock out everyone for minutes. While
// every connection is being answered, the next one waits.
type bounded struct {
	net.Listener
	most int

	retry   incoming.Retry
	serving context.Context //nolint:containedctx // net.Listener has none; it ends with Close
	stop    context.CancelFunc

	mu    sync.Mutex
	free  sync.Cond
	conns []*placed // oldest first
	over  bool
}

func newBounded(l net.Listener, most int) *bounded {
	b := &bounded{Listener: l, most: most}
	b.free.L = &b.mu
	b.serving, b.stop = context.WithCancel(context.Background())
	return b
}

func (b *bounded) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	for err != nil {
		// http.Server ends for the errors that package net does not call temporary.
		if err = b.retry.After(b.serving, err); err != nil {
			return nil, err
		}
		c, err = b.Listener.Accept()
	}
	b.retry.Done()
	p := &placed{Conn: c, in: b, source: sourceOf(c.RemoteAddr())}
	for {
		b.mu.Lock()
		if len(b.conns) < b.most {
			b.conns = append(b.conns, p)
			b.mu.Unlock()
			return p, nil
		}
		victim := b.victim()
		if victim == nil && !b.over {
			b.free.Wait() // until a connection closes or becomes idle
		}
		over := b.over
		b.mu.Unlock()
		if over {
			_ = c.Close()
			return nil, net.ErrClosed
		}
		if victim != nil {
			_ = victim.Close() // its goroutine in the server ends with its next read
		}
	}
}

// victim returns the connection to give up: of the source with the most, the one that has waited
// for longest without a request under way; nil if there is none.
func (b *bounded) victim() *placed {
	count := make(map[netip.Prefix]int)
	for _, p := range b.conns {
		if p.busy == 0 {
			count[p.source]++
		}
	}
	var found *placed
	for _, p := range b.conns {
		if p.busy == 0 && (found == nil || count[p.source] > count[found.source]) {
			found = p
		}
	}
	return found
}

// state is http.Server.ConnState: a connection that has become idle waits from then on.
func (b *bounded) state(c net.Conn, state http.ConnState) {
	p := placeOf(c)
	if p == nil || state != http.StateIdle {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.remove(p) {
		b.conns = append(b.conns, p)
	}
}

// placeKey is the key of a connection in the contexts of its requests.
type placeKey struct{}

// remember is http.Server.ConnContext.
func (b *bounded) remember(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, placeKey{}, placeOf(c))
}

// answering keeps the connection of a request until the returned function is called. Only then is
// it busy: a client that sends half a request, or does not read the form of the password, has no
// better right to its place than one that is idle. HTTP/2 has several requests of one connection.
func answering(ctx context.Context) (done func()) {
	p, _ := ctx.Value(placeKey{}).(*placed)
	if p == nil {
		return func() {}
	}
	add := func(n int) {
		p.in.mu.Lock()
		p.busy += n
		p.in.free.Signal()
		p.in.mu.Unlock()
	}
	add(1)
	return func() { add(-1) }
}

// placeOf returns the place of a connection, below TLS if it has that; nil for one that has none.
func placeOf(c net.Conn) *placed {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	p, _ := c.(*placed)
	return p
}

// remove forgets a connection, and reports whether it was there.
func (b *bounded) remove(p *placed) bool {
	for i, other := range b.conns {
		if other == p {
			b.conns = append(b.conns[:i], b.conns[i+1:]...)
			return true
		}
	}
	return false
}

func (b *bounded) Close() error {
	b.mu.Lock()
	b.over = true
	b.stop()
	b.free.Broadcast()
	b.mu.Unlock()
	return b.Listener.Close()
}

// placed is a connection with a place.
type placed struct {
	net.Conn
	in     *bounded
	source netip.Prefix
	busy   int // requests that are being answered; guarded by in.mu
}

func (p *placed) Close() error {
	p.in.mu.Lock()
	if p.in.remove(p) {
		p.in.free.Signal()
	}
	p.in.mu.Unlock()
	return p.Conn.Close()
}

// sourceOf is origin for a connection.
func sourceOf(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	return prefixOf(tcp.AddrPort().Addr())
}
