//go:build !linux

package echo

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// echoSocket exchanges pings with one address over UDP.
type echoSocket struct {
	conn *net.UDPConn
	buf  []byte
}

// openICMP returns an error: the package knows no ICMP sockets of this system.
func openICMP(_, _ netip.Addr, _ int) (*echoSocket, error) {
	return nil, fmt.Errorf("open icmp socket: %w", sys.ErrNotSupported)
}

// openUDP opens the socket for UDP echo with to, for pings of size bytes.
func openUDP(from netip.Addr, to netip.AddrPort, size int) (*echoSocket, error) {
	var local *net.UDPAddr
	if from.IsValid() {
		local = net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	conn, err := net.DialUDP("udp", local, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return nil, fmt.Errorf("open udp socket: %w", err)
	}
	return &echoSocket{conn: conn, buf: make([]byte, size+1)}, nil
}

// send sends one ping.
func (s *echoSocket) send(ping []byte, _ uint64) error {
	_, err := s.conn.Write(ping)
	return err
}

// next waits for at most wait for an event on the socket, which stays usable after any of them.
func (s *echoSocket) next(wait time.Duration) event {
	if s.conn.SetReadDeadline(time.Now().Add(wait)) != nil {
		return event{} // only a closed connection refuses
	}
	n, err := s.conn.Read(s.buf)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return event{}
	case err != nil:
		return event{trouble: Trouble{Text: err.Error(), Count: 1}}
	}
	return event{payload: s.buf[:n]}
}

// dontFragment returns an error: package net cannot forbid fragments.
func (s *echoSocket) dontFragment() error {
	return fmt.Errorf("forbid fragments: %w", sys.ErrNotSupported)
}

func (s *echoSocket) close() {
	_ = s.conn.Close() // a datagram socket holds nothing back, and the second close changes nothing
}
