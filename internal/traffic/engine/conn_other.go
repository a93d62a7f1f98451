//go:build !linux

package engine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/linerate/linerate/internal/sys"
)

// Name is the Method of results of TCP tests.
const Name = "tcp, net poller"

// Conn is a data connection of package net: this system has no bare descriptors that we know to handle.
type Conn struct {
	conn *net.TCPConn
}

// Adopt prepares a connection. It is closed when that fails.
func Adopt(conn *net.TCPConn, o ConnOptions) (*Conn, error) {
	if o.Congestion != "" {
		_ = conn.Close() // the refusal is the error that tells
		return nil, fmt.Errorf("set congestion control %q: %w", o.Congestion, sys.ErrNotSupported)
	}
	if err := conn.SetNoDelay(o.NoDelay); err != nil {
		_ = conn.Close() // as above
		return nil, fmt.Errorf("set tcp_nodelay: %w", err)
	}
	return &Conn{conn}, nil
}

func (c *Conn) read(p []byte) (int, error) { return mapTimeout(c.conn.Read(p)) }

func (c *Conn) write(p []byte) (int, error) { return mapTimeout(c.conn.Write(p)) }

// mapTimeout makes Wake look as it does on a bare descriptor.
func mapTimeout(n int, err error) (int, error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, sys.ErrTimeout
	}
	return n, err
}

// Wake makes every blocked and every later call on the connection return.
func (c *Conn) Wake() { _ = c.conn.SetDeadline(time.Unix(1, 0)) } // only a closed connection refuses, and that is awake

// Close drops what is still queued and closes.
func (c *Conn) Close() {
	_ = c.conn.SetLinger(0) // best effort: without it the system only sends longer
	_ = c.conn.Close()      // the second close of a connection is an error that nobody needs
}

// Info is not supported here.
func (c *Conn) Info() (sys.TCPInfo, error) { return sys.ReadTCPInfo(-1) }

// Buffers knows nothing: package net shows no buffer sizes.
func (c *Conn) Buffers() Buffers { return Buffers{} }
