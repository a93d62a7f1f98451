//go:build !linux

package engine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// Name is the Method of results of TCP tests.
const Name = "tcp, net poller"

// canSpin reports whether this system has calls that never sleep.
const canSpin = false

// Conn is a data connection of package net: the engine cannot use bare descriptors on this system.
type Conn struct {
	conn   *net.TCPConn
	pacing float64 // always 0: no SO_MAX_PACING_RATE on this system
	window bool    // unused: no low water mark on this system
}

// Adopt prepares a connection, and closes it when that fails.
func Adopt(conn *net.TCPConn, o ConnOptions) (*Conn, error) {
	if err := o.apply(conn); err != nil {
		_ = conn.Close() // the refusal is the error that counts
		return nil, err
	}
	return &Conn{conn: conn}, nil
}

func (o ConnOptions) apply(conn *net.TCPConn) error {
	if err := o.early(); err != nil {
		return err
	}
	if o.PacingBytesPerSec > 0 {
		return fmt.Errorf("set pacing rate: %w", sys.ErrNotSupported)
	}
	if err := conn.SetNoDelay(o.NoDelay); err != nil {
		return fmt.Errorf("set tcp_nodelay: %w", err)
	}
	if o.WindowBytes == 0 {
		return nil
	}
	if err := conn.SetWriteBuffer(o.WindowBytes); err != nil {
		return fmt.Errorf("set so_sndbuf to %d bytes: %w", o.WindowBytes, err)
	}
	if err := conn.SetReadBuffer(o.WindowBytes); err != nil {
		return fmt.Errorf("set so_rcvbuf to %d bytes: %w", o.WindowBytes, err)
	}
	return nil
}

// mayShorten returns false: package net has no such option.
func (c *Conn) mayShorten() bool { return false }

func (c *Conn) setUnsentLimit(int) error { return sys.ErrNotSupported }

// hurry does nothing: no connection is paced.
func (c *Conn) hurry(bool) error { return nil }

// early refuses what package net cannot set before the handshake. Adopt sets the window, which
// takes effect later.
func (o ConnOptions) early() error {
	switch {
	case o.Congestion != "":
		return fmt.Errorf("set congestion control %q: %w", o.Congestion, sys.ErrNotSupported)
	case o.MSSBytes != 0:
		return fmt.Errorf("set tcp_maxseg to %d bytes: %w", o.MSSBytes, sys.ErrNotSupported)
	case o.TOS != 0:
		return fmt.Errorf("set ip_tos to %d: %w", o.TOS, sys.ErrNotSupported)
	case o.LocalPort != 0:
		return fmt.Errorf("bind port %d: %w", o.LocalPort, sys.ErrNotSupported)
	}
	return nil
}

// DialControl is for the field Control of a net.Dialer: it refuses the options that this system
// cannot set before connect.
func DialControl(o ConnOptions) func(network, address string, c syscall.RawConn) error {
	return func(string, string, syscall.RawConn) error { return o.early() }
}

func (c *Conn) read(p []byte) (int, error) { return mapTimeout(c.conn.Read(p)) }

func (c *Conn) write(p []byte) (int, error) { return mapTimeout(c.conn.Write(p)) }

// discard, readNow and writeNow need bare descriptors; the constructors refuse workers that would
// call them.
func (c *Conn) discard(int) (int, error)     { return 0, sys.ErrNotSupported }
func (c *Conn) readNow([]byte) (int, error)  { return 0, sys.ErrNotSupported }
func (c *Conn) writeNow([]byte) (int, error) { return 0, sys.ErrNotSupported }

// So do receiveBuffer and setLowWater; a receiver works without them.
func (c *Conn) receiveBuffer() (int, error) { return 0, sys.ErrNotSupported }
func (c *Conn) setLowWater(int) error       { return sys.ErrNotSupported }

// CloseWrite sends a FIN after everything queued.
func (c *Conn) CloseWrite() error {
	if err := c.conn.CloseWrite(); err != nil {
		return fmt.Errorf("shut down sending: %w", err)
	}
	return nil
}

// mapTimeout makes Wake look as it does on a bare descriptor.
func mapTimeout(n int, err error) (int, error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, sys.ErrTimeout
	}
	return n, err
}

// Wake makes every blocked and every later call on the connection return.
// Only a closed connection refuses, and it needs no waking.
func (c *Conn) Wake() { _ = c.conn.SetDeadline(time.Unix(1, 0)) }

// Close discards what is still queued and closes.
func (c *Conn) Close() {
	_ = c.conn.SetLinger(0) // best effort: without it the system only sends for longer
	_ = c.conn.Close()      // the error of a second close is of no use
}

// bound bounds the sleep of the next calls, as the timeouts of a bare descriptor do.
// Only a closed connection refuses, as the calls then do.
func (c *Conn) bound() { _ = c.conn.SetDeadline(time.Now().Add(wakeEvery)) }

// release closes without discarding what is still queued.
func (c *Conn) release() { _ = c.conn.Close() } // as in Close

// Info is not supported on this system.
func (c *Conn) Info() (sys.TCPInfo, error) { return sys.ReadTCPInfo(-1) }

// Buffers returns zeros: package net shows no buffer sizes.
func (c *Conn) Buffers() tcpinfo.Buffers { return tcpinfo.Buffers{} }
