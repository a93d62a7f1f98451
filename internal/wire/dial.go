package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

const (
	// dialTimeout limits connection and handshake on the dialling side of a caller that has no limit
	// of its own; three lost SYNs take 7 s.
	dialTimeout = 10 * time.Second
	// handshakeTimeout limits the time until a connection on the listening side has identified
	// itself.
	handshakeTimeout = 5 * time.Second
)

const wrongKeyAdvice = "use the key that `linerate serve` on the other host printed when it was last started, or " +
	"`linerate peers add` when it made one; that host may have revoked it since"

// Dial opens a control channel to the `linerate serve` at addr (host:port, IPv6 literals in
// brackets). It takes until the deadline of ctx, or at most 10 s without one. Errors are *Error of
// kind ErrUnreachable, ErrWrongKey, ErrNotLinerate or ErrPeerGone, with advice, or wrap the error
// of ctx.
func Dial(ctx context.Context, addr string, key Key) (*Conn, error) {
	return DialFrom(ctx, netip.Addr{}, addr, key)
}

// DialFrom is [Dial] from one address of this host; the zero value leaves the choice to the route.
func DialFrom(ctx context.Context, from netip.Addr, addr string, key Key) (*Conn, error) {
	const op = "connect to"
	config, err := key.tlsConfig(clientRole, serverRole)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", op, addr, err)
	}
	bounded, cancel := patient(ctx)
	defer cancel()
	d := net.Dialer{Control: smallSegments}
	d.Deadline, _ = bounded.Deadline()
	if from.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: from.AsSlice(), Zone: from.Zone()}
	}
	tcp, err := dialTCP(bounded, op, addr, d)
	if err != nil {
		if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
			return nil, fmt.Errorf("%s %s: %w", op, addr, ctx.Err())
		}
		return nil, err
	}
	// Below TLS, so that the error can name a peer that answers a ClientHello with "SSH-2.0" or an
	// HTTP error.
	head := &recordingConn{TCPConn: tcp}
	secure := tls.Client(head, config)
	if err := secure.HandshakeContext(bounded); err != nil {
		_ = tcp.Close()
		if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
			return nil, fmt.Errorf("%s %s: %w", op, addr, ctx.Err())
		}
		return nil, handshakeError(op, addr, err, head.head)
	}
	return newConn(secure, nil, control(tcp), MaxMessageBytes, beatEvery), nil
}

// patient returns a context with a deadline. A user who waits longer for a host that is slow to
// answer (--connect-timeout) means its handshake too.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, dialTimeout)
}

// controlSegmentBytes fits every path that carries IPv6, which must pass packets of 1280 bytes (RFC
// 8200 §5).
const controlSegmentBytes = 1280 - 40 - 20

// smallSegments keeps the packets of a control channel small in both directions. A path that
// silently drops large packets would also drop the first message of TLS, which has 1.5 kB, and with
// it the only channel over which the hosts could diagnose the path.
func smallSegments(_, _ string, c syscall.RawConn) error {
	// Best effort: if it is not supported, the system chooses the segment size.
	_ = c.Control(func(fd uintptr) { _ = sys.SetMaxSegmentBytes(int(fd), controlSegmentBytes) })
	return nil
}

// control prepares a TCP connection for a control channel, and returns a function that makes the
// system tolerate a longer silence on it.
func control(tcp *net.TCPConn) (hush func(time.Duration)) {
	hurry(tcp)
	setUserTimeout(tcp, silentBeats*beatEvery)
	return func(d time.Duration) { setUserTimeout(tcp, d) }
}

// dialTCP connects as d specifies, within dialTimeout unless d has a deadline, and explains a
// failure. It disables Multipath TCP, because the subject of a measurement is TCP.
func dialTCP(ctx context.Context, op, addr string, d net.Dialer) (*net.TCPConn, error) {
	if d.Deadline.IsZero() {
		d.Timeout = dialTimeout
	}
	d.SetMultipathTCP(false)
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		return conn.(*net.TCPConn), nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, fmt.Errorf("%s %s: %w", op, addr, ctx.Err())
	}
	e := &Error{Op: op, Peer: addr, Kind: ErrUnreachable, Err: err}
	_, port, _ := net.SplitHostPort(addr)
	var dns *net.DNSError
	switch {
	case localPort(d.LocalAddr) != 0 && (errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)):
		// The second error is that of a port whose earlier connection to the same peer is in
		// TIME_WAIT.
		e.Kind = ErrPortTaken
		e.Advice = fmt.Sprintf("choose another port than %d, or wait a minute for the connection that has it",
			localPort(d.LocalAddr))
	case d.LocalAddr != nil:
		e.Advice = fmt.Sprintf("is there a route from %s to it, and does every firewall between let TCP port %s pass?",
			d.LocalAddr.(*net.TCPAddr).IP, port)
	case ZoneAdvice(addr) != "":
		e.Advice = ZoneAdvice(addr)
	case errors.As(err, &dns):
		e.Advice = "is the name spelled right, and does this host's resolver know it?"
	case isTimeout(err):
		e.Advice = fmt.Sprintf("is the host up, and does every firewall between let TCP port %s pass?", port)
	default:
		e.Advice = fmt.Sprintf("is `linerate serve` running there, and is TCP port %s open?", port)
	}
	return nil, e
}

// ZoneAdvice returns what to do about a host and port that lack the interface of a link-local
// address; empty for any other. The kernel says only that the argument is invalid.
func ZoneAdvice(addr string) string {
	a, err := netip.ParseAddrPort(addr)
	if err != nil || !a.Addr().Is6() || !a.Addr().IsLinkLocalUnicast() || a.Addr().Zone() != "" {
		return ""
	}
	return fmt.Sprintf("this address is of one link: name the interface too, as in %s%%eth0", a.Addr())
}

func localPort(a net.Addr) int {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}

// isTimeout reports whether err is a timeout of any kind.
func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &t) && t.Timeout()
}

// handshakeError explains why TLS with addr failed. head holds the first bytes of the peer.
func handshakeError(op, addr string, err error, head []byte) error {
	e := &Error{Op: op, Peer: addr, Err: err}
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, ErrWrongKey) || isWrongKeyAlert(err):
		e.Kind, e.Err, e.Advice = ErrWrongKey, nil, wrongKeyAdvice
	case errors.Is(err, errForeignProtocol):
		e.Kind, e.Err = ErrNotLinerate, errForeignProtocol
	case isRemoteAlert(err):
		e.Kind, e.Err = ErrNotLinerate, fmt.Errorf("%w: %w", errForeignProtocol, err)
	case errors.As(err, &record) || len(head) > 0 && Dialect(head) != "TLS":
		e.Kind, e.Err = ErrNotLinerate, fmt.Errorf("it speaks %s", Dialect(head))
	case isTimeout(err):
		e.Kind, e.Err = ErrUnreachable, errors.New("it accepted the connection and then sent nothing")
		e.Advice = "is that port `linerate serve`, and is the process there alive?"
	case len(head) == 0:
		e.Kind, e.Err = ErrNotLinerate, fmt.Errorf("it closed the connection without sending anything: %w", err)
	default:
		e.Kind = ErrPeerGone
	}
	if e.Kind == ErrNotLinerate && e.Advice == "" {
		e.Advice = "check host and port: `linerate serve` prints the line to paste"
	}
	return e
}

// isRemoteAlert reports whether err is an alert that the peer sent. crypto/tls does not export the
// alert's type, so only operation and text can be checked.
func isRemoteAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// isWrongKeyAlert reports whether err is the alert that crypto/tls on the other side sends for a
// certificate that its VerifyConnection refused.
func isWrongKeyAlert(err error) bool {
	return err != nil && isRemoteAlert(err) && strings.Contains(err.Error(), "bad certificate")
}

// recordingConn records the first bytes read, to find the dialect of a peer other than linerate.
type recordingConn struct {
	*net.TCPConn
	head []byte
}

func (c *recordingConn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if room := dialectHeadBytes - len(c.head); room > 0 {
		c.head = append(c.head, b[:min(n, room)]...)
	}
	return n, err
}
