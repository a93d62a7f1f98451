package wire

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/kernel/incoming"
)

// Rejection is one connection that was rejected before it was identified.
type Rejection struct {
	Remote  netip.AddrPort
	Dialect string // the apparent protocol, see Dialect
	Err     error  // the reason: ErrNotLinerate, ErrWrongKey, ErrPeerGone, a timeout
}

// Listener serves control channels and data connections on one TCP port.
type Listener struct {
	keys   *Keyring    // nil: data connections only
	config *tls.Config // of keys
	given  bool        // another process opened the socket and keeps a descriptor of it, see Adopt
	addr   *net.TCPAddr
	accept chan *Conn     // unbuffered: a channel not yet accepted is closed with the listener
	closed chan struct{}  // closed by Close
	group  sync.WaitGroup // acceptors and half-open connections
	// ends with the listener, and stop ends it
	serving context.Context //nolint:containedctx // no caller's: the acceptors belong to the listener
	stop    context.CancelFunc

	// Lock order: renewing before mu. The mu of a DataQueue and this one are never held together:
	// Close and forget take them one after the other. No I/O or callback runs while mu is held, so
	// that a slow peer or a slow log delays no other connection.
	mu        sync.Mutex
	socket    *net.TCPListener // the present one; Renew replaces it
	accepting chan struct{}    // closed after socket is closed
	defaults  socketDefaults   // defaults of socket at its creation, inherited by accepted sockets
	prepared  *DataQueue       // the queue for whose connections socket has special options; nil: none

	renewing sync.Mutex // held by one Renew at a time, before mu
	over     bool
	half     []*halfOpen // oldest first
	shaking  int         // number of them in a handshake
	queues   map[Token]*DataQueue
	expected int // expected data connections of all queues
	rejected map[string]uint64
	onReject func(Rejection)
}

// Listen opens addr (host:port; an empty host means every address, port 0 any free one) for control
// channels of peers that hold key, and for data connections. ctx limits only the opening.
func Listen(ctx context.Context, addr string, key Key) (*Listener, error) {
	keys, err := NewKeyring(key)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return listen(ctx, addr, keys)
}

// ListenKeys is Listen for peers that hold any key of a ring; [Conn.Key] says which.
func ListenKeys(ctx context.Context, addr string, keys *Keyring) (*Listener, error) {
	return listen(ctx, addr, keys)
}

// Adopt is ListenKeys on a socket that another process has opened and that this process inherits,
// as systemd hands it over. That process keeps the socket, so no other can take its place: Renew
// and ExpectWith set the options of this one instead. A socket of Multipath TCP is an error: the
// subject of a measurement is TCP.
func Adopt(socket *net.TCPListener, keys *Keyring) (*Listener, error) {
	if multipath(socket) {
		return nil, fmt.Errorf("take over port %s: it is one of Multipath TCP, and must be one of TCP", socket.Addr())
	}
	l := start(socket, keys)
	l.given = true
	return l, nil
}

// ListenData opens addr for data connections only, for a far end whose control channel is ssh.
func ListenData(ctx context.Context, addr string) (*Listener, error) { return listen(ctx, addr, nil) }

func listen(ctx context.Context, addr string, keys *Keyring) (*Listener, error) {
	socket, err := listenTCP(ctx, addr, nil)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, plain(err))
	}
	return start(socket, keys), nil
}

// start accepts connections from a socket.
func start(socket *net.TCPListener, keys *Keyring) *Listener {
	l := &Listener{
		keys:      keys,
		addr:      socket.Addr().(*net.TCPAddr),
		accept:    make(chan *Conn),
		closed:    make(chan struct{}),
		socket:    socket,
		accepting: make(chan struct{}),
		queues:    make(map[Token]*DataQueue),
		rejected:  make(map[string]uint64),
		defaults:  defaultsOf(socket),
	}
	l.serving, l.stop = context.WithCancel(context.Background())
	if keys != nil {
		l.config = keys.serverConfig()
	}
	l.group.Add(1)
	go l.acceptFrom(socket, l.accepting)
	return l
}

// listenTCP opens a plain TCP socket. By default Go opens a multipath one (1.24), which is not the
// subject of a measurement.
func listenTCP(ctx context.Context, addr string, control func(string, string, syscall.RawConn) error) (*net.TCPListener,
	error) {
	// Keep-alive probes would be unaccounted packets in a measurement; control channels have their
	// own heartbeats.
	lc := net.ListenConfig{KeepAlive: -1, Control: control}
	lc.SetMultipathTCP(false)
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return ln.(*net.TCPListener), nil
}

// Addr returns the listening address, with the actual port.
func (l *Listener) Addr() *net.TCPAddr { return l.addr }

// Port returns the listening TCP port.
func (l *Listener) Port() int { return l.addr.Port }

// OnReject registers fn, which is called for every rejected connection, from several goroutines. It
// replaces the previous function.
func (l *Listener) OnReject(fn func(Rejection)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onReject = fn
}

// Rejected returns the number of rejected connections by apparent protocol.
func (l *Listener) Rejected() map[string]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := make(map[string]uint64, len(l.rejected))
	for dialect, n := range l.rejected {
		counts[dialect] = n
	}
	return counts
}

// Accept returns the next authenticated control channel. After Close its error wraps net.ErrClosed.
func (l *Listener) Accept() (*Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, fmt.Errorf("accept control connection: %w", net.ErrClosed)
	}
}

// Expect announces up to n data connections (1 … MaxDataConns) with token. The caller must close
// the queue.
func (l *Listener) Expect(token Token, n int) *DataQueue {
	n = min(max(n, 1), MaxDataConns)
	q := &DataQueue{listener: l, token: token, limit: n, waiting: make(chan dataConn, n), closed: make(chan struct{}),
		seen: make(map[int]bool)}
	l.mu.Lock()
	over := l.over
	if !over {
		l.queues[token] = q
		l.expected += n
	}
	l.mu.Unlock()
	if over {
		_ = q.Close() // no connection can arrive
	}
	return q
}

// forget removes a queue.
func (l *Listener) forget(q *DataQueue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queues[q.token] == q {
		delete(l.queues, q.token)
		l.expected -= q.limit
	}
}

// ListenOptions are options that the far end of a data connection needs before the connection is
// accepted, because the kernel announces them to the other side in the handshake. The zero value of
// a field leaves the host's default.
type ListenOptions struct {
	WindowBytes int // SO_RCVBUF and SO_SNDBUF as requested; the window scale follows from it (RFC 7323 §2.2)
	MSSBytes    int // TCP_MAXSEG: the largest announced segment
}

// ExpectWith is Expect for a test whose connections need special options. An accepted socket
// inherits them from the listening one, so every connection that arrives while the queue is open
// has them too: the caller ensures that no other test runs. The error is errors.ErrUnsupported if
// the OS cannot revert them, or while another queue has options set.
func (l *Listener) ExpectWith(token Token, n int, o ListenOptions) (*DataQueue, error) {
	if !canRenew {
		return nil, fmt.Errorf("prepare listener %s: %w", l.addr, errors.ErrUnsupported)
	}
	q := l.Expect(token, n)
	if err := l.prepare(q, o); err != nil {
		_ = q.Close() // no peer has its token yet
		return nil, fmt.Errorf("prepare listener %s: %w", l.addr, err)
	}
	return q, nil
}

// prepare sets options for the connections of q.
func (l *Listener) prepare(q *DataQueue, o ListenOptions) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.prepared != nil {
		return fmt.Errorf("another test has its options on it: %w", errors.ErrUnsupported)
	}
	if l.given && !l.defaults.restorable() {
		return fmt.Errorf("a socket of another process would keep them: %w", errors.ErrUnsupported)
	}
	raw, err := l.socket.SyscallConn()
	if err != nil {
		return err
	}
	// Before the result is known: a partial change must be reverted too.
	l.prepared = q
	return setListenOptions(raw, o)
}

// unprepare reverts the port to its state before ExpectWith. Not all kernels can unset a buffer
// size (SO_BUF_LOCK exists since Linux 5.14), so a new socket replaces the old one.
func (l *Listener) unprepare(q *DataQueue) {
	l.mu.Lock()
	mine := l.prepared == q
	l.mu.Unlock()
	if mine {
		// fails only if the listener is closed or descriptors are exhausted; then the next Renew
		// finds it still prepared and replaces it
		_ = l.renew()
	}
}

// Renew ensures that connections accepted from now on have this host's present defaults. An
// accepted socket inherits buffer sizes and more from the listening one, which got them at its
// creation: after a change of a sysctl, only a new listening socket has the new values. Renew
// therefore replaces the listening socket if a new socket would differ from it. Otherwise it keeps
// it, because the replacement may reset connections in the middle of the kernel's handshake. The
// error is errors.ErrUnsupported if the OS cannot replace it without a gap; after this and every
// other error, the old socket remains.
func (l *Listener) Renew() error {
	if !canRenew {
		return fmt.Errorf("renew listener %s: %w", l.addr, errors.ErrUnsupported)
	}
	l.mu.Lock()
	current := !l.over && l.prepared == nil && freshDefaults(l.addr.IP) == l.defaults
	l.mu.Unlock()
	if current {
		return nil
	}
	return l.renew()
}

// ErrStale reports a socket of another process that cannot take up a setting of this host that has
// changed since it was opened. Tests over it would measure the former setting.
var ErrStale error = stale{}

type stale struct{}

func (stale) Error() string {
	return "a setting has changed since the port was opened, and its connections would not get the new value"
}

func (stale) Hint() string {
	return "on that host, `systemctl restart linerate-serve.socket` opens the port again"
}

// renew replaces the listening socket, or gives one of another process the options of a new one.
func (l *Listener) renew() error {
	l.renewing.Lock()
	defer l.renewing.Unlock()
	if l.given {
		return l.restore()
	}
	done, err := l.replace()
	if err != nil {
		return err
	}
	// While the old socket listens, the kernel gives it a share of new connections, and resets
	// those still in their handshake when it closes. So no peer may be asked to connect earlier.
	<-done
	return nil
}

// restore gives the socket the options that a new one would have.
func (l *Listener) restore() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return fmt.Errorf("renew listener %s: %w", l.addr, net.ErrClosed)
	}
	raw, err := l.socket.SyscallConn()
	if err != nil {
		return fmt.Errorf("renew listener %s: %w", l.addr, err)
	}
	fresh := freshDefaults(l.addr.IP)
	if fresh.restorable() {
		setDefaults(raw, fresh)
	}
	if !defaultsOf(l.socket).like(fresh) {
		return fmt.Errorf("renew listener %s: %w", l.addr, ErrStale)
	}
	l.defaults, l.prepared = fresh, nil
	return nil
}

// replace installs a new socket in place of the present one. The returned channel is closed when
// the old socket is.
func (l *Listener) replace() (<-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, fmt.Errorf("renew listener %s: %w", l.addr, net.ErrClosed)
	}
	old, err := l.socket.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("renew listener %s: %w", l.addr, err)
	}
	// The flag admits only sockets of the same user (socket(7)), so no other user of this host can
	// take the port at that moment. Both sockets need the flag when the second one binds;
	// afterwards neither keeps it.
	if err := sharePort(old, 1); err != nil {
		return nil, fmt.Errorf("renew listener %s: %w", l.addr, err)
	}
	socket, err := listenTCP(context.Background(), l.addr.String(), func(_, _ string, raw syscall.RawConn) error {
		return sharePort(raw, 1)
	})
	if err != nil {
		_ = sharePort(old, 0) // it was off before; the bind error is the one to report
		return nil, fmt.Errorf("renew listener %s: %w", l.addr, plain(err))
	}
	if raw, err := socket.SyscallConn(); err == nil {
		_ = sharePort(raw, 0) // on failure a second process of the same user could share the port, which is harmless
	}
	previous := l.socket
	done := l.accepting
	l.socket, l.accepting, l.defaults, l.prepared = socket, make(chan struct{}), defaultsOf(socket), nil
	l.group.Add(1)
	go l.acceptFrom(socket, l.accepting)
	// Connections that completed the kernel's handshake on the old socket before this moment are
	// accepted within the grace period.
	_ = previous.SetDeadline(time.Now().Add(renewGrace))
	return done, nil
}

// renewGrace is how long an old socket still accepts its completed connections.
const renewGrace = 10 * time.Millisecond

// Close stops listening, drops unidentified connections, closes every DataQueue and waits for its
// own goroutines. Control channels and data connections handed out before belong to their owners.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		l.group.Wait()
		return nil
	}
	l.over = true
	close(l.closed)
	// With the lock held and after over is set: from here on enter refuses, so the wait group below
	// only counts down.
	err := l.socket.Close()
	l.stop() // a goroutine that rests closes the socket too, and would be first
	for _, h := range l.half {
		_ = h.conn.Close() // this ends its goroutine
	}
	queues := make([]*DataQueue, 0, len(l.queues))
	for _, q := range l.queues {
		queues = append(queues, q)
	}
	l.mu.Unlock()
	for _, q := range queues {
		_ = q.Close()
	}
	l.group.Wait()
	return err
}

// acceptFrom accepts connections from one listening socket until it is closed or replaced.
func (l *Listener) acceptFrom(socket *net.TCPListener, done chan<- struct{}) {
	defer l.group.Done()
	defer close(done)
	defer socket.Close()
	accept := func() (*net.TCPConn, error) {
		conn, err := socket.AcceptTCP()
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil && l.socket != socket && isTimeout(err) {
			return nil, net.ErrClosed // it was replaced, and its grace period is over
		}
		return conn, err
	}
	// Its error is the end of socket, which has a successor or is a listener's that was closed.
	_ = incoming.Connections(l.serving, accept, nil, func(conn *net.TCPConn) {
		h := &halfOpen{conn: conn}
		if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
			// A dual-stack socket shows IPv4 peers as mapped addresses.
			h.remote = netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port())
			h.source, h.crowd = Source(h.remote.Addr()), crowdOf(h.remote.Addr())
		}
		if !l.enter(h) {
			_ = conn.Close()
			return
		}
		go func() {
			defer l.group.Done()
			l.receive(h)
		}()
	})
}

// receive identifies one connection and passes it on, or rejects it.
func (l *Listener) receive(h *halfOpen) {
	identified := limit(h.conn, handshakeTimeout)
	defer identified()
	// One read of at most a preface: a data connection must not lose a byte of its payload here.
	// The first byte decides: data connections begin with a letter, TLS with 0x16. A peer that
	// waits for this side to send first runs into the deadline.
	head := make([]byte, prefaceBytes, dialectHeadBytes)
	n, err := h.conn.Read(head)
	head = head[:n]
	switch {
	case n == 0:
		l.reject(h, head, err)
	case head[0] == dataMagic[0]:
		l.receiveData(h, head, identified)
	case head[0] == tlsHandshakeRecord && l.config != nil:
		l.receiveControl(h, head, identified)
	default:
		// More bytes identify the dialect better; a peer that has sent one byte has usually sent
		// the rest too.
		_ = h.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		m, _ := io.ReadFull(h.conn, head[n:cap(head)])
		l.reject(h, head[:n+m], nil)
	}
}

// tlsHandshakeRecord is the first byte of a ClientHello (RFC 8446 5.1).
const tlsHandshakeRecord = 0x16

// receiveData passes a data connection to the queue that expects its token. A map lookup of a token
// does not take constant time, but that reveals nothing useful about 128 random bits. It calls
// identified before the queue has the connection.
func (l *Listener) receiveData(h *halfOpen, head []byte, identified func()) {
	n := len(head)
	head = head[:prefaceBytes]
	if _, err := io.ReadFull(h.conn, head[n:]); err != nil {
		l.reject(h, head[:n], err)
		return
	}
	token, index, ok := parsePreface(head)
	if !ok {
		l.reject(h, head, nil)
		return
	}
	l.mu.Lock()
	q := l.queues[token]
	l.mu.Unlock()
	if q == nil {
		l.reject(h, head, errors.New("unknown token"))
		return
	}
	// Leave the half-open state before the queue has the connection; otherwise a flood could close
	// it as the oldest.
	if !l.leave(h) {
		_ = h.conn.Close()
		return
	}
	identified()
	if err := q.offer(h.conn, h.source, index); err != nil {
		l.reject(h, head, err)
	}
}

// wholeHello reads the first TLS record, of which head has arrived, and returns all of it. On an
// error it returns head.
func wholeHello(conn io.Reader, head []byte) ([]byte, error) {
	const header = 5 // type, version, length (RFC 8446 5.1)
	record := make([]byte, max(header, len(head)), 2<<10)
	n := copy(record, head)
	if _, err := io.ReadFull(conn, record[n:]); err != nil {
		return head, err
	}
	all := header + int(binary.BigEndian.Uint16(record[3:]))
	if all > maxHello {
		return head, fmt.Errorf("its first message has %d bytes, %d are the most", all, maxHello)
	}
	if n = len(record); n >= all {
		return record, nil // a record that is too short, for TLS to refuse
	}
	record = append(record, make([]byte, all-n)...)
	if _, err := io.ReadFull(conn, record[n:]); err != nil {
		return head, err
	}
	return record, nil
}

// receiveControl performs the TLS handshake and passes the channel to Accept. It calls
// identified when the first message has arrived: the handshake has a limit of its own.
func (l *Listener) receiveControl(h *halfOpen, head []byte, identified func()) {
	head, err := wholeHello(h.conn, head)
	if err != nil {
		l.reject(h, head, err)
		return
	}
	if err := l.awaitHandshake(h); err != nil {
		l.reject(h, head, err)
		return
	}
	identified()
	identified = limit(h.conn, handshakeTimeout)
	defer identified()
	under, err := newSleeper(h.conn, head)
	if err != nil {
		l.reject(h, head, err)
		return
	}
	secure := tls.Server(under, l.config)
	if err := secure.Handshake(); err != nil {
		if isWrongKeyAlert(err) || errors.Is(err, ErrWrongKey) {
			err = fmt.Errorf("%w: %w", ErrWrongKey, err)
		}
		l.reject(h, head, err)
		return
	}
	if !l.leave(h) {
		_ = h.conn.Close()
		return
	}
	// The limit applied to an unidentified peer. From here on heartbeats limit the silence, but
	// not the length of the session.
	identified()
	hush := control(h.conn)
	key, known := l.keys.of(secure.ConnectionState())
	if !known {
		_ = h.conn.Close() // revoked since the handshake began; a new attempt says so
		return
	}
	// The certificate has been compared and is no longer needed. The state shares its array with
	// the connection, so this saves 2 KB per connection.
	clear(secure.ConnectionState().PeerCertificates)
	if !canSleep {
		under = nil
	}
	c := newConn(secure, under, hush, maxRequestBytes, beatEvery)
	c.key = key
	select {
	case l.accept <- c:
	case <-l.closed:
		_ = c.Close()
	case <-c.Done():
	}
}
