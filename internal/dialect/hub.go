package dialect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/linerate/linerate/internal/dialect/iperf2"
	"github.com/linerate/linerate/internal/dialect/nuttcp"
	"github.com/linerate/linerate/internal/dialect/ttcp"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/service"
)

const (
	// peekFor is how long a connection may take to send its first bytes, and gatherFor how long it
	// may take to complete the first peekBytes.
	peekFor   = 10 * time.Second
	gatherFor = 200 * time.Millisecond
	// silentFor is the wait for the first bytes of a client that nuttcp will send to. The clock of
	// that client runs meanwhile: its figure covers the wait. A client of iperf 2 needs less,
	// because its first bytes follow its handshake at once.
	silentFor = 2 * time.Millisecond
	// peekBytes is how much of a connection is examined: enough to recognize settings of iperf 2.
	peekBytes = 24
	// maxPeeking bounds the connections that have sent nothing yet; one source may have a quarter
	// of them. Each costs a descriptor and a goroutine of some kilobytes for at most peekFor.
	maxPeeking = 256
	// maxBound is the number of UDP senders whose dialect is remembered.
	maxBound = 512
	// boundFor is how long the dialect of a silent UDP sender is remembered.
	boundFor = 2 * time.Second
)

// hub is one port, with one TCP and one UDP socket, that several dialects share.
type hub struct {
	o       Options
	sockets *service.Sockets
	iperf2  *iperf2.Server // nil: not accepted here
	ttcp    *ttcp.Server
	nuttcp  *nuttcp.Arrivals // of data; empty unless nuttcp is accepted
	peeking *admission.Anteroom
	// logs refused clients at a limited rate, because anyone can cause any number of them
	away func(format string, args ...any)

	bound map[netip.AddrPort]binding // used by the reader of the UDP socket alone
}

// binding is the dialect to which the first datagram of an address was handed.
type binding struct {
	to    func(service.Datagram)
	heard time.Time
}

// openHub listens on TCP and UDP.
func openHub(ctx context.Context, address string, o Options) (*hub, error) {
	sockets, err := service.Listen(ctx, address, nil)
	if err != nil {
		return nil, err
	}
	return &hub{
		away: service.Limited(o.Log, admission.StrangerLines, fmt.Sprintf("port %d", sockets.Addr().Port())),
		o:    o, sockets: sockets,
		nuttcp: nuttcp.NewArrivals(), peeking: admission.NewAnteroom(maxPeeking, maxPeeking/4),
		bound: make(map[netip.AddrPort]binding),
	}, nil
}

// Addr is where the hub listens, with TCP and UDP.
func (h *hub) Addr() netip.AddrPort { return h.sockets.Addr() }

// joinIperf2 and joinTTCP make the hub hand connections to one more dialect. The servers share the
// hub's address, gate and log.
func joinIperf2(h *hub) {
	h.iperf2 = iperf2.NewServer(iperf2.ServerOptions{Gate: h.o.Gate, Log: h.o.Log})
}

func joinTTCP(h *hub) {
	h.ttcp = ttcp.NewServer(ttcp.ServerOptions{Gate: h.o.Gate, Log: h.o.Log})
}

// Serve hands over connections and datagrams until ctx ends. It then closes everything and returns
// nil.
func (h *hub) Serve(ctx context.Context) error {
	err := h.sockets.Serve(ctx, service.Handler{Conn: h.dispatch, Packet: h.packet, Sweep: h.sweep, Log: h.away})
	if err != nil {
		return fmt.Errorf("serve %s: %w", h.Addr(), err)
	}
	return nil
}

// dispatch recognizes the protocol of a connection and hands it over.
func (h *hub) dispatch(ctx context.Context, conn *net.TCPConn) {
	// An address that nuttcp waits for may be a client of iperf 2 at the same time, or it may
	// itself wait for data from here.
	waited, patience := h.patience(conn)
	if !waited && (h.iperf2 == nil || h.ttcp == nil) {
		// There is no choice to make, and the server examines the first bytes itself.
		h.serve(ctx, conn, h.iperf2 != nil)
		return
	}
	// If the data of its test flow the other way, the client sends nothing: then silence identifies
	// it.
	head, err := h.peek(ctx, conn, patience)
	switch {
	case ctx.Err() != nil:
		_ = conn.Close() // the server is ending
	case waited && !iperf2.LooksLike(head) && h.nuttcp.TakeConn(conn):
	case errors.Is(err, sys.ErrNotSupported):
		h.serve(ctx, conn, h.iperf2 != nil) // the server of iperf 2 receives anything
	case err != nil:
		h.away("port %d tcp from %s: turned away: %v", h.Addr().Port(), service.From(conn), err)
		_ = conn.Close() // as above
	default:
		h.serve(ctx, conn, h.ttcp == nil || h.iperf2 != nil && iperf2.LooksLike(head))
	}
}

// patience returns whether a test of nuttcp waits for conn, and how long its first bytes may take.
func (h *hub) patience(conn *net.TCPConn) (waited bool, _ time.Duration) {
	waited, silent := h.nuttcp.Expects(conn)
	switch {
	case !waited:
		return false, peekFor
	case silent:
		return true, silentFor
	default:
		return true, gatherFor
	}
}

// serve hands a connection to iperf 2 or to ttcp.
func (h *hub) serve(ctx context.Context, conn *net.TCPConn, toIperf2 bool) {
	if toIperf2 {
		h.iperf2.ServeConn(ctx, conn)
	} else {
		h.ttcp.ServeConn(ctx, conn)
	}
}

// peek waits for the first bytes of a connection and leaves them in the socket.
func (h *hub) peek(ctx context.Context, conn *net.TCPConn, patience time.Duration) ([]byte, error) {
	leave, ok := h.peeking.Enter(service.From(conn).Addr(), func() { _ = conn.Close() })
	if !ok {
		return nil, errors.New("too many silent connections of this source are waiting already")
	}
	defer leave()
	// The connection is closed instead of getting an expired deadline, because one of the calls
	// below could overwrite a deadline.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_ = conn.SetReadDeadline(time.Now().Add(patience)) // fails only on a closed connection, as the read then does
	p := make([]byte, peekBytes)
	n, err := peek(conn, p, 1)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("nothing came for %v", patience)
	case errors.Is(err, io.EOF):
		err = errors.New("closed before anything came")
	case err == nil && n < peekBytes:
		// Data that are no settings may be shorter, so a long wait would be useless.
		_ = conn.SetReadDeadline(time.Now().Add(gatherFor)) // as above
		if more, err := peek(conn, p, peekBytes); err == nil {
			n = more
		}
	}
	_ = conn.SetReadDeadline(time.Time{}) // as above
	return p[:n], err
}

// packet hands a datagram to the dialect that its address began with.
func (h *hub) packet(d service.Datagram) {
	if h.nuttcp.TakePacket(d) {
		return
	}
	b, ok := h.bound[d.From]
	// The choice is made once per address and not per datagram: datagrams in the middle of a ttcp
	// test may look like anything, including iperf 2.
	if !ok || d.At.Sub(b.heard) > boundFor {
		if !ok && len(h.bound) >= maxBound {
			// The next datagram of a forgotten address decides again, as its first one did.
			clear(h.bound)
		}
		b.to = h.choose(d.Payload)
	}
	b.heard = d.At
	h.bound[d.From] = b
	b.to(d)
}

// choose decides by the first datagram of an address which dialect gets all of them.
func (h *hub) choose(p []byte) func(service.Datagram) {
	if h.ttcp == nil || h.iperf2 != nil && iperf2.LooksLikeDatagram(p) {
		return h.iperf2.ServePacket
	}
	return h.ttcp.TakePacket
}

// sweep makes the dialects forget clients that went silent.
func (h *hub) sweep() {
	if h.iperf2 != nil {
		h.iperf2.Sweep()
	}
	if h.ttcp != nil {
		h.ttcp.Sweep()
	}
	for a, b := range h.bound {
		if time.Since(b.heard) > boundFor {
			delete(h.bound, a)
		}
	}
}
