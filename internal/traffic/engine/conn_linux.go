package engine

import (
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// Name is the Method of results of TCP tests.
const Name = "tcp, blocking, pinned"

// canSpin reports whether this system has calls that never sleep.
const canSpin = true

// Conn is a data connection as a bare blocking descriptor.
type Conn struct {
	fd     int
	pacing float64      // payload bytes per second; 0: none
	window bool         // the user asked for a buffer size
	unsent atomic.Int64 // the last bound set for the unsent queue, bytes; 0: none
	// hurries says that the kernel paces a paced connection no longer.
	hurries bool

	mu     sync.Mutex // between Wake and Close: a closed descriptor may belong to another file the next moment
	closed bool
}

// Adopt takes a connection away from package net and closes package net's side, also when it fails.
func Adopt(conn *net.TCPConn, o ConnOptions) (*Conn, error) {
	fd, err := sys.TakeOver(conn)
	if err != nil {
		return nil, err
	}
	c := &Conn{fd: fd, pacing: o.PacingBytesPerSec, window: o.WindowBytes > 0}
	if err := o.apply(fd); err != nil {
		c.Close()
		return nil, err
	}
	c.unsent.Store(int64(o.unsentBytes()))
	return c, nil
}

// apply sets what a connection accepts at any time.
func (o ConnOptions) apply(fd int) error {
	if err := sys.SetTimeout(fd, wakeEvery); err != nil {
		return err
	}
	if err := sys.SetNoDelay(fd, o.NoDelay); err != nil {
		return err
	}
	if err := o.applyShared(fd); err != nil {
		return err
	}
	if o.PacingBytesPerSec <= 0 {
		return nil
	}
	if err := sys.SetMaxPacingRate(fd, pacingHeadroom*o.PacingBytesPerSec); err != nil {
		return err
	}
	return sys.SetUnsentLowWater(fd, o.unsentBytes())
}

// hurry takes the kernel's limit from a paced connection that is late, or sets it again. Only the
// connection's sender calls it.
func (c *Conn) hurry(on bool) error {
	if on == c.hurries {
		return nil
	}
	rate := pacingHeadroom * c.pacing
	if on {
		rate = math.Inf(1)
	}
	c.hurries = on
	return sys.SetMaxPacingRate(c.fd, rate)
}

// unsentBytes bounds the queue of a paced connection, so that what was counted as sent has left; 0:
// the connection is not paced.
func (o ConnOptions) unsentBytes() int {
	if o.PacingBytesPerSec <= 0 {
		return 0
	}
	return max(minUnsentBytes, int(min(o.PacingBytesPerSec*pacedCall.Seconds(), math.MaxInt32)))
}

// minUnsentBytes keeps one segment of the largest offload ready to go on a paced connection.
const minUnsentBytes = 64 << 10

// applyShared sets what both an established and a future connection accept.
func (o ConnOptions) applyShared(fd int) error {
	if o.WindowBytes > 0 {
		if err := sys.SetSendBufferBytes(fd, o.WindowBytes); err != nil {
			return err
		}
		if err := sys.SetReceiveBufferBytes(fd, o.WindowBytes); err != nil {
			return err
		}
	}
	if o.TOS != 0 {
		if err := sys.SetTOS(fd, o.TOS); err != nil {
			return err
		}
	}
	if o.Congestion != "" {
		return sys.SetCongestion(fd, o.Congestion)
	}
	return nil
}

// applyEarly sets what the handshake needs: the window scale follows from the receive buffer, the
// handshake announces the segment size, and some congestion controls negotiate ECN.
func (o ConnOptions) applyEarly(fd int) error {
	if o.MSSBytes > 0 {
		if err := sys.SetMaxSegmentBytes(fd, o.MSSBytes); err != nil {
			return err
		}
	}
	return o.applyShared(fd)
}

// DialControl is for the field Control of a net.Dialer: it sets the options that connect needs, and
// binds From and LocalPort.
func DialControl(o ConnOptions) func(network, address string, c syscall.RawConn) error {
	return control(func(fd int) error {
		if err := o.applyEarly(fd); err != nil || o.LocalPort == 0 && !o.From.IsValid() {
			return err
		}
		if o.LocalPort == 0 {
			return sys.BindLocal(fd, o.From, 0)
		}
		// A port that an earlier test has used may still be in TIME_WAIT, at least at the other
		// end.
		if err := sys.SetReuseAddress(fd); err != nil {
			return err
		}
		return sys.BindLocal(fd, o.From, o.LocalPort)
	})
}

func control(apply func(fd int) error) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) { err = apply(int(fd)) }); cerr != nil {
			return cerr
		}
		return err
	}
}

func (c *Conn) read(p []byte) (int, error)  { return read(c.fd, p) }
func (c *Conn) write(p []byte) (int, error) { return write(c.fd, p) }

// discard takes up to n bytes without copying them.
func (c *Conn) discard(n int) (int, error) {
	if scheduler.keep.Load() {
		return sys.ReadTruncatedKept(c.fd, n)
	}
	return sys.ReadTruncated(c.fd, n)
}

// read sleeps the way that suits the number of workers.
func read(fd int, p []byte) (int, error) {
	if scheduler.keep.Load() {
		return sys.ReadKept(fd, p)
	}
	return sys.Read(fd, p)
}

// write does as read.
func write(fd int, p []byte) (int, error) {
	if scheduler.keep.Load() {
		return sys.WriteKept(fd, p)
	}
	return sys.Write(fd, p)
}

// readNow and writeNow never sleep.
func (c *Conn) readNow(p []byte) (int, error)  { return sys.ReadNow(c.fd, p) }
func (c *Conn) writeNow(p []byte) (int, error) { return sys.WriteNow(c.fd, p) }

// mayShorten reports whether the host has no lower bound of its own for the unsent queue of every
// connection.
func (c *Conn) mayShorten() bool {
	text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_notsent_lowat")
	if err != nil {
		return false // older than Linux 3.12, or hidden: what the option would change is unknown
	}
	most, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	return err == nil && most > unsentBytes
}

// setUnsentLimit bounds the unsent queue; 0 leaves it to the host again.
func (c *Conn) setUnsentLimit(bytes int) error {
	if bytes > 0 {
		c.unsent.Store(int64(bytes))
	}
	return sys.SetUnsentLowWater(c.fd, bytes)
}

func (c *Conn) receiveBuffer() (int, error) { return sys.ReceiveBufferBytes(c.fd) }
func (c *Conn) setLowWater(bytes int) error { return sys.SetReceiveLowWater(c.fd, bytes) }

// CloseWrite sends a FIN after everything queued, so the other end knows that nothing more comes;
// dialects without a control channel end a test with it.
func (c *Conn) CloseWrite() error { return sys.ShutdownWrite(c.fd) }

// Wake makes every blocked and every later call on the connection return: reads at once, writes
// within wakeEvery. It shuts only the reading direction, because a shutdown of the other one sends
// a FIN, and the end that sends the first FIN keeps its port for a minute (TIME_WAIT): a test from
// chosen ports could not be repeated. After Close it does nothing.
func (c *Conn) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		// A connection that is gone already needs no waking, so the error is of no use.
		_ = sys.ShutdownRead(c.fd)
	}
}

// Close discards what is still queued and closes; further calls do nothing.
func (c *Conn) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	_ = sys.SetAbortOnClose(c.fd) // best effort: without it the kernel only sends for longer
	_ = sys.Close(c.fd)           // Linux frees the descriptor even if close fails
}

// bound does nothing: SO_RCVTIMEO and SO_SNDTIMEO bound the sleep of each call.
func (c *Conn) bound() {}

// release closes without discarding what is still queued; further calls do nothing.
func (c *Conn) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		_ = sys.Close(c.fd) // as in Close
	}
}

// Info reads struct tcp_info. Where the queue of this end was kept short, that bound causes what
// the kernel reports about time limited by the send buffer and about an application with nothing to
// send, so both are left out.
func (c *Conn) Info() (sys.TCPInfo, error) {
	info, err := sys.ReadTCPInfo(c.fd)
	if c.unsent.Load() > 0 {
		info.SndbufLimitedMicros, info.DeliveryRateAppLimited = 0, false
	}
	return info, err
}

// Buffers returns the socket's buffer sizes; what cannot be read is zero.
func (c *Conn) Buffers() tcpinfo.Buffers {
	b := tcpinfo.Buffers{UnsentBytes: c.unsent.Load()}
	if n, err := sys.SendBufferBytes(c.fd); err == nil {
		b.SendBytes = int64(n)
	}
	if n, err := sys.ReceiveBufferBytes(c.fd); err == nil {
		b.ReceiveBytes = int64(n)
	}
	if name, err := sys.Congestion(c.fd); err == nil {
		b.Congestion = name
	}
	return b
}
