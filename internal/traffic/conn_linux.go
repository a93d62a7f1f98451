package traffic

import (
	"net"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/sys"
)

// engineName is the Method of results of TCP tests.
const engineName = "tcp, blocking, pinned"

// wakeEvery bounds the sleep of a blocking call, so that a worker on a stalled connection sees the end of the test even if the shutdown that
// should wake it came before the call. It costs nothing while data flow.
const wakeEvery = 200 * time.Millisecond

// dataConn is a data connection as a bare blocking descriptor.
type dataConn struct {
	fd   int
	once sync.Once
}

// adopt takes a connection away from package net, which closes it, also when adopting fails. Bulk data go with Nagle's algorithm, as
// everywhere: it fills the last segment of each write from the next one.
func adopt(conn *net.TCPConn, noDelay bool, congestion string) (*dataConn, error) {
	fd, err := sys.TakeOver(conn)
	if err != nil {
		return nil, err
	}
	c := &dataConn{fd: fd}
	err = sys.SetTimeout(fd, wakeEvery)
	if err == nil {
		err = sys.SetNoDelay(fd, noDelay)
	}
	if err == nil && congestion != "" {
		err = sys.SetCongestion(fd, congestion)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *dataConn) read(p []byte) (int, error)  { return sys.Read(c.fd, p) }
func (c *dataConn) write(p []byte) (int, error) { return sys.Write(c.fd, p) }

// wake makes every blocked and every later call on the connection return.
func (c *dataConn) wake() {
	// A connection that is gone already needs no waking, so the error says nothing new.
	_ = sys.Shutdown(c.fd)
}

// close drops what is still queued and closes; once is enough for the descriptor, and more would hit somebody else's.
func (c *dataConn) close() {
	c.once.Do(func() {
		_ = sys.SetAbortOnClose(c.fd) // best effort: without it the kernel only sends longer
		_ = sys.Close(c.fd)           // on Linux the descriptor is free whatever close says
	})
}

func (c *dataConn) info() (sys.TCPInfo, error) { return sys.ReadTCPInfo(c.fd) }

// describe fills in what socket options tell; what cannot be read stays zero.
func (c *dataConn) describe(t *TCPInfo) {
	if n, err := sys.SendBufferBytes(c.fd); err == nil {
		t.SndBufBytes = int64(n)
	}
	if n, err := sys.ReceiveBufferBytes(c.fd); err == nil {
		t.RcvBufBytes = int64(n)
	}
	if name, err := sys.Congestion(c.fd); err == nil {
		t.CongestionControl = name
	}
}
