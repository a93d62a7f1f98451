package sockperf

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// wakeEvery bounds the sleep of a call, so that its thread looks at the clock and at the end of the
// test even when a wake came too early.
const wakeEvery = 200 * time.Millisecond

// endpoint is a connected socket as a bare blocking descriptor.
type endpoint struct {
	fd     int
	mu     sync.Mutex // of closed: a wake must not hit a descriptor that has become somebody else's
	closed bool
}

// adoptTCP takes a connection away from package net, also when that fails. What must be set before
// connecting has been.
func adoptTCP(conn *net.TCPConn, o engine.ConnOptions) (*endpoint, error) {
	fd, err := sys.TakeOver(conn)
	if err != nil {
		return nil, err
	}
	e := &endpoint{fd: fd}
	err = sys.SetTimeout(fd, wakeEvery)
	if err == nil {
		err = sys.SetNoDelay(fd, o.NoDelay)
	}
	if err == nil && o.Congestion != "" {
		err = sys.SetCongestion(fd, o.Congestion)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// openUDP opens a socket that is connected to one address and sends with a type of service.
func openUDP(to netip.AddrPort, tos int) (*endpoint, error) {
	fd, err := sys.OpenUDP(to)
	if err != nil {
		return nil, err
	}
	e := &endpoint{fd: fd}
	err = sys.SetTimeout(fd, wakeEvery)
	if err == nil && tos != 0 {
		err = sys.SetTOS(fd, tos)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// read waits for wakeEvery at most and then returns sys.ErrTimeout.
func (e *endpoint) read(p []byte) (int, error) { return sys.Read(e.fd, p) }

// readWithin waits for d at most, to the microsecond.
func (e *endpoint) readWithin(p []byte, d time.Duration) (int, error) {
	// Not by the timeout of the socket, which the kernel rounds up to its ticks: up to 10 ms where
	// they are longest.
	ready, err := sys.Poll(e.fd, d)
	if err != nil {
		return 0, err
	}
	if !ready {
		return 0, sys.ErrTimeout
	}
	return sys.Read(e.fd, p)
}

// write waits for wakeEvery at most; it may write less than all of p.
func (e *endpoint) write(p []byte) (int, error) { return sys.Write(e.fd, p) }

// info is what the kernel says of a TCP connection.
func (e *endpoint) info() (sys.TCPInfo, error) { return sys.ReadTCPInfo(e.fd) }

// congestion is the congestion control of a TCP connection; empty: not known.
func (e *endpoint) congestion() string {
	name, err := sys.Congestion(e.fd)
	if err != nil {
		return ""
	}
	return name
}

// wake makes every blocked and every later call on a TCP connection return.
func (e *endpoint) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		_ = sys.Shutdown(e.fd) // disconnected already is as good
	}
}

// close may be called again.
func (e *endpoint) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.closed = true
		_ = sys.Close(e.fd) // on Linux the descriptor is free whatever close says
	}
}
