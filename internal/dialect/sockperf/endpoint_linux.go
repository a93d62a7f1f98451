package sockperf

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// wakeEvery bounds the sleep of a call, so that its thread checks the clock and the end of the test
// even if a wake came too early.
const wakeEvery = 200 * time.Millisecond

// endpoint is a connected socket as a bare blocking descriptor.
type endpoint struct {
	fd     int
	mu     sync.Mutex // protects closed: a wake must not hit a descriptor that was closed and reused
	closed bool
}

// adoptTCP takes a connection over from package net, even if it returns an error. Options that must
// be set before the connect are already set.
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

// openUDP opens a socket that is connected to one address and sends with the given type of service.
func openUDP(to netip.AddrPort, tos int) (*endpoint, error) {
	fd, err := sys.OpenUDP(netip.Addr{}, to)
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

// read waits at most wakeEvery and then returns sys.ErrTimeout.
func (e *endpoint) read(p []byte) (int, error) { return sys.Read(e.fd, p) }

// readWithin waits at most d, to the microsecond.
func (e *endpoint) readWithin(p []byte, d time.Duration) (int, error) {
	// Not with the socket's timeout, which the kernel rounds up to its ticks: up to 10 ms.
	ready, err := sys.Poll(e.fd, d)
	if err != nil {
		return 0, err
	}
	if !ready {
		return 0, sys.ErrTimeout
	}
	return sys.Read(e.fd, p)
}

// write waits at most wakeEvery; it may write only a part of p.
func (e *endpoint) write(p []byte) (int, error) { return sys.Write(e.fd, p) }

// info returns the TCP_INFO of a connection.
func (e *endpoint) info() (sys.TCPInfo, error) { return sys.ReadTCPInfo(e.fd) }

// congestion returns the congestion control of a TCP connection; empty if unknown.
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
		_ = sys.Shutdown(e.fd) // an error means that it is disconnected already
	}
}

// close may be called more than once.
func (e *endpoint) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.closed = true
		_ = sys.Close(e.fd) // on Linux the descriptor is free whatever close returns
	}
}
