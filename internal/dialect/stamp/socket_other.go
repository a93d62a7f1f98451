//go:build !linux

package stamp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// socket is a UDP socket of package net. On a host with several addresses, the routes choose the
// source of an answer.
type socket struct {
	conn      *net.UDPConn
	connected bool
	peer      netip.AddrPort // of the last packet
}

// adopt takes a listening socket over.
func adopt(conn *net.UDPConn) (*socket, error) { return &socket{conn: conn}, nil }

// dial opens a socket that is connected to one address.
func dial(to netip.AddrPort, tos int) (*socket, error) {
	if tos != 0 {
		return nil, &sys.UnsupportedError{Feature: "choice of the type of service"}
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return nil, err
	}
	return &socket{conn: conn, connected: true, peer: to}, nil
}

// receive waits for a packet, at most d; then it returns sys.ErrTimeout.
func (s *socket) receive(p []byte, d time.Duration) (int, arrival, error) {
	if err := s.conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		return 0, arrival{}, err
	}
	n, from, err := s.conn.ReadFromUDPAddrPort(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = sys.ErrTimeout
	}
	if !s.connected {
		s.peer = from
	}
	return n, arrival{from: netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), at: unixNanos()}, err
}

// send sends to the connected address, or answers the packet that was received last.
func (s *socket) send(p []byte) error {
	var err error
	if s.connected {
		_, err = s.conn.Write(p)
	} else {
		_, err = s.conn.WriteToUDPAddrPort(p, s.peer)
	}
	return err
}

// wake makes receive return, now and later.
func (s *socket) wake() { _ = s.conn.Close() } // an error of close loses no data of UDP

// close may be called more than once.
func (s *socket) close() { _ = s.conn.Close() }
