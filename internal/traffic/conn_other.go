//go:build !linux

package traffic

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/linerate/linerate/internal/sys"
)

// engineName is the Method of results of TCP tests.
const engineName = "tcp, net poller"

// dataConn is a data connection of package net: this system has no bare descriptors that we know to handle.
type dataConn struct {
	conn *net.TCPConn
}

// adopt prepares a connection. It is closed when that fails.
func adopt(conn *net.TCPConn, noDelay bool, congestion string) (*dataConn, error) {
	if congestion != "" {
		_ = conn.Close() // the refusal is the error that tells
		return nil, fmt.Errorf("set congestion control %q: %w", congestion, sys.ErrNotSupported)
	}
	if err := conn.SetNoDelay(noDelay); err != nil {
		_ = conn.Close() // as above
		return nil, fmt.Errorf("set tcp_nodelay: %w", err)
	}
	return &dataConn{conn}, nil
}

func (c *dataConn) read(p []byte) (int, error) { return mapTimeout(c.conn.Read(p)) }

func (c *dataConn) write(p []byte) (int, error) { return mapTimeout(c.conn.Write(p)) }

// mapTimeout makes wake look as it does on a bare descriptor.
func mapTimeout(n int, err error) (int, error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, sys.ErrTimeout
	}
	return n, err
}

// wake makes every blocked and every later call on the connection return.
func (c *dataConn) wake() { _ = c.conn.SetDeadline(time.Unix(1, 0)) } // only a closed connection refuses, and that is awake

// close drops what is still queued and closes.
func (c *dataConn) close() {
	_ = c.conn.SetLinger(0) // best effort: without it the system only sends longer
	_ = c.conn.Close()      // the second close of a connection is an error that nobody needs
}

func (c *dataConn) info() (sys.TCPInfo, error) { return sys.ReadTCPInfo(-1) }

// describe fills in nothing: package net shows no buffer sizes.
func (c *dataConn) describe(*TCPInfo) {}
