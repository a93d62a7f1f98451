//go:build !linux

package sockperf

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// wakeEvery bounds the sleep of a call, so that its goroutine checks the clock and the end of the
// test.
const wakeEvery = 200 * time.Millisecond

// endpoint is a connected socket of package net.
type endpoint struct{ conn net.Conn }

// adoptTCP takes a connection over, even if it returns an error. The congestion control cannot be
// set on this system.
func adoptTCP(conn *net.TCPConn, o engine.ConnOptions) (*endpoint, error) {
	err := conn.SetNoDelay(o.NoDelay)
	if err == nil && o.Congestion != "" {
		err = &sys.UnsupportedError{Feature: "choice of congestion control"}
	}
	if err != nil {
		_ = conn.Close() // the first error is the one to return
		return nil, err
	}
	return &endpoint{conn: conn}, nil
}

// openUDP opens a socket that is connected to one address.
func openUDP(to netip.AddrPort, tos int) (*endpoint, error) {
	if tos != 0 {
		return nil, &sys.UnsupportedError{Feature: "choice of the type of service"}
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return nil, err
	}
	return &endpoint{conn: conn}, nil
}

// read waits at most wakeEvery and then returns sys.ErrTimeout.
func (e *endpoint) read(p []byte) (int, error) { return e.readWithin(p, wakeEvery) }

// readWithin waits at most d.
func (e *endpoint) readWithin(p []byte, d time.Duration) (int, error) {
	if err := e.conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		return 0, err
	}
	n, err := e.conn.Read(p)
	return n, timeout(err)
}

// write waits at most wakeEvery; it may write only a part of p.
func (e *endpoint) write(p []byte) (int, error) {
	if err := e.conn.SetWriteDeadline(time.Now().Add(wakeEvery)); err != nil {
		return 0, err
	}
	n, err := e.conn.Write(p)
	return n, timeout(err)
}

// timeout converts a passed deadline to the error of bare descriptors.
func timeout(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return sys.ErrTimeout
	}
	return err
}

// info is not available through package net.
func (e *endpoint) info() (sys.TCPInfo, error) {
	return sys.TCPInfo{}, &sys.UnsupportedError{Feature: "tcp_info"}
}

// congestion returns "": the congestion control is unknown.
func (e *endpoint) congestion() string { return "" }

// wake ends every blocked and every later call.
func (e *endpoint) wake() { _ = e.conn.Close() } // an error means that it is closed already

// close may be called more than once.
func (e *endpoint) close() { _ = e.conn.Close() }
