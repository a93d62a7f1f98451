package wire

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// TokenBytes is the length of a Token.
const TokenBytes = 16

// Token admits data connections to one test. It is random, and one end sends it to the other over a
// control channel.
type Token [TokenBytes]byte

// NewToken returns a token from the system's random source.
func NewToken() Token {
	var t Token
	_, _ = rand.Read(t[:]) // never fails (Go 1.24)
	return t
}

// MarshalText returns 32 hexadecimal digits.
func (t Token) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, t[:]), nil }

// UnmarshalText reads 32 hexadecimal digits.
func (t *Token) UnmarshalText(text []byte) error {
	if len(text) != 2*TokenBytes {
		return fmt.Errorf("parse token: %d characters instead of %d", len(text), 2*TokenBytes)
	}
	if _, err := hex.Decode(t[:], text); err != nil {
		return fmt.Errorf("parse token: %w", err)
	}
	return nil
}

// MaxDataConns is the number of data connections that one token can admit: 1024 streams each way.
const MaxDataConns = 2048

const (
	dataMagic    = "LNRD2\n"
	prefaceBytes = len(dataMagic) + TokenBytes + 2
)

// appendPreface appends the first bytes of a data connection.
func appendPreface(b []byte, token Token, index int) []byte {
	b = append(b, dataMagic...)
	b = append(b, token[:]...)
	return binary.BigEndian.AppendUint16(b, uint16(index))
}

// parsePreface reads the first bytes of a data connection.
func parsePreface(b []byte) (token Token, index int, ok bool) {
	if len(b) != prefaceBytes || string(b[:len(dataMagic)]) != dataMagic {
		return Token{}, 0, false
	}
	if index = int(binary.BigEndian.Uint16(b[len(dataMagic)+TokenBytes:])); index >= MaxDataConns {
		return Token{}, 0, false
	}
	copy(token[:], b[len(dataMagic):])
	return token, index, true
}

// DataOptions are options for the socket of a data connection. The zero value leaves everything to
// the system.
type DataOptions struct {
	LocalPort int        // port of this end; 0: any
	From      netip.Addr // address of this end; the zero value: the route chooses
	// called before the socket connects, as in net.Dialer; nil: not
	Control func(network, address string, c syscall.RawConn) error
}

// reuse is Control for a chosen local port: connections of that port to other hosts, or of earlier
// tests, may be in TIME_WAIT, and do not conflict with a new one.
func (o DataOptions) reuse(network, address string, c syscall.RawConn) error {
	// Best effort: if it is not supported, bind reports the reason.
	_ = c.Control(func(fd uintptr) { _ = sys.SetReuseAddress(int(fd)) })
	if o.Control == nil {
		return nil
	}
	return o.Control(network, address, c)
}

// DialData opens data connection number index (0 … MaxDataConns-1) of the test that token
// identifies. The socket has the system's default options, except Go's TCP_NODELAY and those in o;
// the caller may set others. The far end closes a connection with an unknown token. Errors are
// *Error of kind ErrUnreachable, ErrPortTaken or ErrPeerGone.
func DialData(ctx context.Context, addr string, token Token, index int, o DataOptions) (*net.TCPConn, error) {
	if index < 0 || index >= MaxDataConns {
		return nil, fmt.Errorf("open data connection to %s: index %d is not in 0…%d", addr, index, MaxDataConns-1)
	}
	const op = "open data connection to"
	// A keep-alive probe inside a measurement would be an unaccounted packet.
	d := net.Dialer{KeepAlive: -1, Control: o.Control}
	if o.LocalPort != 0 || o.From.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: o.From.AsSlice(), Zone: o.From.Zone(), Port: o.LocalPort}
	}
	if o.LocalPort != 0 {
		d.Control = o.reuse
	}
	conn, err := dialTCP(ctx, op, addr, d)
	if err != nil {
		return nil, err
	}
	// A new socket has room for the preface, so this write waits only if the connection was reset
	// meanwhile.
	_ = conn.SetWriteDeadline(time.Now().Add(handshakeTimeout))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Unix(1, 0)) })
	_, err = conn.Write(appendPreface(nil, token, index))
	stopped := stop()
	// Only if the function of ctx did not run: otherwise it may be setting its own deadline now,
	// and the connection is unusable.
	if err == nil && stopped {
		err = conn.SetWriteDeadline(time.Time{})
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s %s: %w", op, addr, err)
		}
		return nil, &Error{Op: op, Peer: addr, Kind: ErrPeerGone, Err: err}
	}
	return conn, nil
}

// DataQueue holds the data connections of one test until the test accepts them.
type DataQueue struct {
	listener *Listener
	token    Token
	limit    int
	waiting  chan dataConn // room for limit, so that offering never blocks
	closed   chan struct{}

	mu   sync.Mutex
	from netip.Prefix // source of its connections; the zero prefix: any
	seen map[int]bool // by index, of connections taken so far
	over bool         // Close was called
}

// dataConn is one connection in the queue.
type dataConn struct {
	conn  *net.TCPConn
	index int
}

// Accept returns the next data connection and its index, in order of arrival. The error is
// net.ErrClosed after Close, or that of ctx.
func (q *DataQueue) Accept(ctx context.Context) (*net.TCPConn, int, error) {
	select {
	case d := <-q.waiting:
		return d.conn, d.index, nil
	case <-q.closed:
		return nil, 0, fmt.Errorf("accept data connection: %w", net.ErrClosed)
	case <-ctx.Done():
		return nil, 0, fmt.Errorf("accept data connection: %w", ctx.Err())
	}
}

// Admit restricts the queue to connections from the source of a peer's control channel, see
// [Source]: the token alone, which crosses the network in the clear at the front of each data
// connection, shall not be enough. A listener for data only has no control channel of its own, and
// an ssh that carries it may take another way; there, and for an invalid address, Admit does
// nothing. Call it before a peer gets the token.
func (q *DataQueue) Admit(from netip.Addr) {
	if q.listener.config == nil || !from.IsValid() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.from = Source(from)
}

// Token returns the token that admits a data connection to this queue.
func (q *DataQueue) Token() Token { return q.token }

// Close refuses further connections and closes the waiting ones. It may be called twice.
func (q *DataQueue) Close() error {
	q.listener.forget(q)
	if q.drop() {
		q.listener.unprepare(q)
	}
	return nil
}

// drop closes the waiting connections. It returns true the first time.
func (q *DataQueue) drop() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return false
	}
	q.over = true
	close(q.closed)
	for {
		select {
		case d := <-q.waiting:
			_ = d.conn.Close() // it was never handed out
		default:
			return true
		}
	}
}

// offer adds a connection from a source to the queue. It accepts each index once, and no more
// connections than expected.
func (q *DataQueue) offer(conn *net.TCPConn, source netip.Prefix, index int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.from.IsValid() && source != q.from:
		return fmt.Errorf("the token belongs to a client at %s", q.from)
	case q.over:
		return net.ErrClosed
	case q.seen[index]:
		return fmt.Errorf("data connection %d already exists", index)
	case len(q.seen) >= q.limit:
		return errors.New("more data connections than expected")
	}
	// With the lock held, so that Close finds every connection offered before it. The channel has
	// room for limit, so this never blocks.
	q.seen[index] = true
	q.waiting <- dataConn{conn, index}
	return nil
}
