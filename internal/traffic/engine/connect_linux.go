package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// NewConnector makes the worker that opens a connection, asks, reads the answer and closes, again
// and again, and times the whole of each.
//
// It resets the connection as soon as it has the response. The end that closes first in an orderly
// way keeps the port for a minute (TIME_WAIT), so that some 28 000 connections would use up all
// ports. A reset leaves nothing behind at either end and costs one packet instead of three. The
// response is complete by then, so the reset loses nothing.
func NewConnector(p *Phase, o ConnectOptions) (*Worker, error) {
	if err := checkExchange(o.Prefix, o.RequestBytes, o.ResponseBytes); err != nil {
		return nil, err
	}
	c := &connector{
		to: sys.AddressOf(o.To), address: o.To, options: o.Conn, fd: -1,
		out: append(bytes.Clone(o.Prefix), Pattern(o.RequestBytes)...), in: make([]byte, o.ResponseBytes),
		spin: o.BusyPoll,
	}
	if err := c.open(); err != nil {
		return nil, err
	}
	w := New(Requester, p, c)
	w.RTT, w.Spins, w.Method = stats.NewHistogram(), o.BusyPoll, waiting(o.BusyPoll)
	return w, nil
}

// waiting names how a worker waits.
func waiting(spin bool) string {
	if spin {
		return "busy-poll"
	}
	return "blocking"
}

type connector struct {
	to      sys.Address
	address netip.AddrPort
	options ConnOptions
	out, in []byte
	spin    bool
	fd      int
}

// open makes a socket with all its options, which successive connections then use.
func (c *connector) open() error {
	fd, err := sys.OpenStream(c.address.Addr())
	if err != nil {
		return err
	}
	c.fd = fd
	if err := c.options.apply(fd); err != nil {
		return err
	}
	if err := c.options.applyEarly(fd); err != nil {
		return err
	}
	if c.options.From.IsValid() {
		// It survives the reset of every connection; the port does not.
		if err := sys.BindLocal(fd, c.options.From, 0); err != nil {
			return err
		}
	}
	// On a connecting socket this holds the acknowledgement of the far end's SYN back until the
	// request carries it (tcp_rcv_synsent_state_process() of the kernel): one packet less for each
	// connection, and the far end has no use for it before.
	if err := sys.SetDeferAccept(fd, requestPatience); err != nil {
		return err
	}
	if err := sys.SetAbortOnClose(fd); err != nil || !c.spin {
		return err
	}
	return sys.SetBlocking(fd, false)
}

// Wake does nothing: no call of the loop sleeps longer than wakeEvery, and the connection changes
// while Wake would use it.
func (c *connector) Wake() {}

func (c *connector) Close() {
	if c.fd >= 0 {
		_ = sys.Close(c.fd) // by a reset; Linux frees the descriptor even if close fails
		c.fd = -1
	}
}

func (c *connector) Loop(w *Worker) error {
	for w.Phase.Is() != Stopped {
		if err := c.round(w); err != nil {
			return err
		}
	}
	return nil
}

// round is one connection, timed from before it opens until its response is read.
func (c *connector) round(w *Worker) error {
	start := w.Now()
	for {
		err := connect(c.fd, &c.to)
		if err == nil {
			break
		}
		if !errors.Is(err, sys.ErrTimeout) {
			return fmt.Errorf("connect to %s: %w", c.address, err)
		}
		if w.Phase.Is() == Stopped {
			return nil
		}
	}
	if err := transfer(w, c.write, c.out); err != nil {
		return endOr("send request", err)
	}
	if err := transfer(w, c.read, c.in); err != nil {
		if errors.Is(err, io.EOF) {
			err = ErrRefused
		}
		return endOr("receive response", err)
	}
	d := w.Now() - start
	w.Transactions.Add(1)
	w.RTTNanos.Add(int64(d))
	if w.Phase.Is() == Measured {
		w.RTT.Record(int64(d))
	}
	if err := sys.Disconnect(c.fd); err != nil {
		return fmt.Errorf("reset connection to %s: %w", c.address, err)
	}
	return nil
}

func (c *connector) read(p []byte) (int, error) {
	if c.spin {
		return sys.ReadNow(c.fd, p)
	}
	return read(c.fd, p)
}

func (c *connector) write(p []byte) (int, error) {
	if c.spin {
		return sys.WriteNow(c.fd, p)
	}
	return write(c.fd, p)
}

// Acceptor is the far end of a connection test: a listening socket of its own.
type Acceptor struct {
	port    uint16
	fd      int
	from    netip.Addr // without a zone: accept does not return one
	prefix  []byte
	out, in []byte
	spin    bool
	peer    sys.Address
	conn    int // the one being answered
	last    int // the one answered before, which its client resets; -1: none
	once    sync.Once
}

// NewAcceptor listens on a port that the kernel chooses and makes the worker that answers there.
//
// accept returns a connection when its request has already arrived (TCP_DEFER_ACCEPT), which saves
// a wake-up each. The acceptor leaves closing to the client and gives up a connection when the next
// one has arrived, so that no FIN crosses the client's reset.
func NewAcceptor(p *Phase, o AcceptOptions) (*Worker, *Acceptor, error) {
	if err := checkExchange(o.Prefix, o.RequestBytes, o.ResponseBytes); err != nil {
		return nil, nil, err
	}
	at := o.Address
	if !at.IsValid() {
		at = netip.IPv6Unspecified()
	}
	fd, err := sys.OpenStream(at)
	if errors.Is(err, sys.ErrNotSupported) && !o.Address.IsValid() {
		at = netip.IPv4Unspecified() // a host without IPv6
		fd, err = sys.OpenStream(at)
	}
	if err != nil {
		return nil, nil, err
	}
	a := &Acceptor{
		fd: fd, conn: -1, last: -1, from: o.From.Unmap().WithZone(""), prefix: bytes.Clone(o.Prefix),
		out: Pattern(o.ResponseBytes), in: make([]byte, len(o.Prefix)+o.RequestBytes), spin: o.BusyPoll,
	}
	if err := a.listen(at, o.Conn); err != nil {
		a.Close()
		return nil, nil, err
	}
	w := New(Responder, p, a)
	w.Spins, w.Method = o.BusyPoll, waiting(o.BusyPoll)
	return w, a, nil
}

func (a *Acceptor) listen(at netip.Addr, o ConnOptions) error {
	if err := o.applyEarly(a.fd); err != nil {
		return err
	}
	if err := o.apply(a.fd); err != nil {
		return err
	}
	if err := sys.SetDeferAccept(a.fd, requestPatience); err != nil {
		return err
	}
	if err := sys.Listen(a.fd, netip.AddrPortFrom(at, 0), acceptBacklog); err != nil {
		return err
	}
	var err error
	if a.port, err = sys.LocalPort(a.fd); err != nil || !a.spin {
		return err
	}
	return sys.SetBlocking(a.fd, false)
}

// acceptBacklog is the most that the kernel queues; net.core.somaxconn may allow less.
const acceptBacklog = 1024

// Port returns the port it listens on.
func (a *Acceptor) Port() uint16 { return a.port }

// Wake makes the acceptor look at its phase.
func (a *Acceptor) Wake() { _ = sys.Shutdown(a.fd) } // a closed socket needs no waking

// Close gives up the listening socket and the connections accepted last.
func (a *Acceptor) Close() {
	a.once.Do(func() {
		_ = sys.Close(a.fd) // Linux frees the descriptor even if close fails
		a.giveUp(&a.conn)
		a.giveUp(&a.last)
	})
}

func (a *Acceptor) giveUp(fd *int) {
	if *fd >= 0 {
		_ = sys.Close(*fd) // as above
		*fd = -1
	}
}

// Loop is the body of the worker.
func (a *Acceptor) Loop(w *Worker) error {
	for w.Phase.Is() != Stopped {
		if err := a.round(w); err != nil {
			return err
		}
	}
	return nil
}

// round answers one connection. Only the listening socket can make it fail: the errors of a single
// client concern that client alone.
func (a *Acceptor) round(w *Worker) error {
	conn, err := accept(a.fd, &a.peer)
	if errors.Is(err, sys.ErrTimeout) || w.Phase.Is() == Stopped {
		if conn >= 0 {
			_ = sys.Close(conn) // nothing waits for an answer any more
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("accept connection: %w", err)
	}
	a.conn = conn
	if a.from.IsValid() && a.peer.AddrPort().Addr() != a.from || !a.request(w) || transfer(w, a.write, a.out) != nil {
		a.giveUp(&a.conn)
		return nil
	}
	w.Transactions.Add(1)
	a.giveUp(&a.last)
	a.last, a.conn = a.conn, -1
	return nil
}

// request reads a whole request and reports whether it is one of ours. A client that has sent the
// prefix is no stranger any more, and may take as long as the path does, with up to requestPatience
// between two pieces; any other has requestPatience in all.
func (a *Acceptor) request(w *Worker) bool {
	// As a rule all of it has already arrived.
	n, err := a.read(a.in)
	for heard := w.Now(); n < len(a.in) && w.Now()-heard < requestPatience && w.Phase.Is() != Stopped; {
		// A timeout means a round trip longer than wakeEvery, or a retransmitted segment.
		if err != nil && !errors.Is(err, sys.ErrTimeout) {
			return false
		}
		var more int
		more, err = a.read(a.in[n:])
		n += more
		if more > 0 && n >= len(a.prefix) && bytes.HasPrefix(a.in, a.prefix) {
			heard = w.Now()
		}
	}
	return n == len(a.in) && bytes.HasPrefix(a.in, a.prefix)
}

func (a *Acceptor) read(p []byte) (int, error) {
	if a.spin {
		return sys.ReadNow(a.conn, p)
	}
	return read(a.conn, p)
}

func (a *Acceptor) write(p []byte) (int, error) {
	if a.spin {
		return sys.WriteNow(a.conn, p)
	}
	return write(a.conn, p)
}

// connect sleeps the way that suits the number of workers, as read does.
func connect(fd int, to *sys.Address) error {
	if scheduler.keep.Load() {
		return sys.ConnectKept(fd, to)
	}
	return sys.Connect(fd, to)
}

// accept sleeps like connect.
func accept(fd int, from *sys.Address) (int, error) {
	if scheduler.keep.Load() {
		return sys.AcceptKept(fd, from)
	}
	return sys.Accept(fd, from)
}
