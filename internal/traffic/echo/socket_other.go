//go:build !linux

package echo

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/linerate/linerate/internal/sys"
)

// echoSocket exchanges pings with one address over UDP.
type echoSocket struct {
	conn *net.UDPConn
	buf  []byte
}

// openICMP says that this system has no ICMP sockets that we know to handle.
func openICMP(netip.Addr, int) (*echoSocket, error) {
	return nil, fmt.Errorf("open icmp socket: %w", sys.ErrNotSupported)
}

// openUDP opens the socket for UDP echo with to, for pings of size bytes.
func openUDP(to netip.AddrPort, size int) (*echoSocket, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
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

// receive waits for at most wait and returns one answer, which is valid until the next call. Nil without an error: nothing came.
func (s *echoSocket) receive(wait time.Duration) ([]byte, error) {
	if err := s.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	n, err := s.conn.Read(s.buf)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.buf[:n], nil
}

func (s *echoSocket) close() {
	_ = s.conn.Close() // a datagram socket holds nothing back, and the second close changes nothing
}
