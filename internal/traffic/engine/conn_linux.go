package engine

import (
	"net"
	"sync"

	"github.com/linerate/linerate/internal/sys"
)

// Name is the Method of results of TCP tests.
const Name = "tcp, blocking, pinned"

// Conn is a data connection as a bare blocking descriptor.
type Conn struct {
	fd   int
	once sync.Once
}

// Adopt takes a connection away from package net, which closes it, also when adopting fails.
func Adopt(conn *net.TCPConn, o ConnOptions) (*Conn, error) {
	fd, err := sys.TakeOver(conn)
	if err != nil {
		return nil, err
	}
	c := &Conn{fd: fd}
	err = sys.SetTimeout(fd, wakeEvery)
	if err == nil {
		err = sys.SetNoDelay(fd, o.NoDelay)
	}
	if err == nil && o.Congestion != "" {
		err = sys.SetCongestion(fd, o.Congestion)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) read(p []byte) (int, error)  { return sys.Read(c.fd, p) }
func (c *Conn) write(p []byte) (int, error) { return sys.Write(c.fd, p) }

// Wake makes every blocked and every later call on the connection return.
func (c *Conn) Wake() {
	// A connection that is gone already needs no waking, so the error says nothing new.
	_ = sys.Shutdown(c.fd)
}

// Close drops what is still queued and closes; once is enough for the descriptor, and more would hit somebody else's.
func (c *Conn) Close() {
	c.once.Do(func() {
		_ = sys.SetAbortOnClose(c.fd) // best effort: without it the kernel only sends longer
		_ = sys.Close(c.fd)           // on Linux the descriptor is free whatever close says
	})
}

// Info reads struct tcp_info.
func (c *Conn) Info() (sys.TCPInfo, error) { return sys.ReadTCPInfo(c.fd) }

// Buffers tells what socket options say; what cannot be read stays zero.
func (c *Conn) Buffers() Buffers {
	var b Buffers
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
