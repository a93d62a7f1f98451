//go:build !linux

package datagram

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// Socket is one connected UDP socket of package net: the package cannot use bare descriptors on
// this system. A sender, a receiver and the dialect's own [Socket.Send] may use it at the same
// time; Close must come when all have ended.
type Socket struct {
	conn     *net.UDPConn
	busyPoll bool
	close    sync.Once
}

// Dial opens a socket to one address.
func Dial(to netip.AddrPort, o SocketOptions) (*Socket, error) {
	var local *net.UDPAddr
	if o.LocalPort != 0 || o.From.IsValid() {
		local = &net.UDPAddr{IP: o.From.AsSlice(), Zone: o.From.Zone(), Port: o.LocalPort}
	}
	conn, err := net.DialUDP("udp", local, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return nil, fmt.Errorf("open udp socket: %w", err)
	}
	return Adopt(conn, o)
}

// Listen opens a socket of package net. Network is "udp", "udp4" or "udp6".
func Listen(ctx context.Context, network, address string) (*net.UDPConn, error) {
	var c net.ListenConfig
	conn, err := c.ListenPacket(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}

// Connected is not supported: these systems differ in which of two sockets on one port gets a
// datagram.
func Connected(_, remote netip.AddrPort, _ SocketOptions) (*Socket, error) {
	return nil, fmt.Errorf("connect udp socket to %s on a shared port: %w", remote, sys.ErrNotSupported)
}

// Adopt prepares a connected socket. It is closed when that fails.
func Adopt(conn *net.UDPConn, o SocketOptions) (*Socket, error) {
	s := &Socket{conn: conn, busyPoll: o.BusyPoll}
	if conn.RemoteAddr() == nil {
		s.Close()
		return nil, fmt.Errorf("adopt udp socket: not connected: %w", ErrBadOptions)
	}
	if o.TOS != 0 || o.DontFragment {
		s.Close()
		return nil, fmt.Errorf("set options of ip: %w", sys.ErrNotSupported)
	}
	if o.WindowBytes > 0 {
		if err := errors.Join(conn.SetWriteBuffer(o.WindowBytes), conn.SetReadBuffer(o.WindowBytes)); err != nil {
			s.Close()
			return nil, fmt.Errorf("set buffers of udp socket: %w", err)
		}
	}
	return s, nil
}

// LocalAddr returns the address that the socket is bound to.
func (s *Socket) LocalAddr() netip.AddrPort { return s.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// RemoteAddr returns the address that it is connected to.
func (s *Socket) RemoteAddr() netip.AddrPort { return s.conn.RemoteAddr().(*net.UDPAddr).AddrPort() }

// Send sends one datagram, for a dialect's own purposes.
func (s *Socket) Send(p []byte) error {
	_, err := s.conn.Write(p)
	return err
}

// Receive waits for one datagram for at most wait, for a dialect's own purposes. The rest of a
// datagram longer than p is lost. sys.ErrTimeout: nothing arrived.
func (s *Socket) Receive(p []byte, wait time.Duration) (int, error) {
	if err := s.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return 0, err
	}
	n, err := s.conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, fmt.Errorf("receive datagram from %s: %w", s.RemoteAddr(), sys.ErrTimeout)
	}
	return n, err
}

// Buffers are not known: package net shows no buffer sizes.
func (s *Socket) Buffers() (send, receive int) { return 0, 0 }

// PathMTU is not known on this system.
func (s *Socket) PathMTU() int { return 0 }

// Close closes the socket, once.
func (s *Socket) Close() {
	s.close.Do(func() { _ = s.conn.Close() }) // a datagram socket holds nothing back
}
