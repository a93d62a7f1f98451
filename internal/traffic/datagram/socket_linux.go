package datagram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// Socket is one connected UDP socket. A sender, a receiver and the dialect's own [Socket.Send] and
// [Socket.Receive] may use it at the same time; Close must come when all have ended.
type Socket struct {
	fd            int
	local, remote netip.AddrPort
	busyPoll      bool
	close         sync.Once
}

// Dial opens a socket to one address.
func Dial(to netip.AddrPort, o SocketOptions) (*Socket, error) {
	var local netip.AddrPort
	if o.From.IsValid() {
		local = netip.AddrPortFrom(o.From, uint16(o.LocalPort))
	} else if o.LocalPort != 0 {
		local = netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(o.LocalPort))
	}
	fd, err := sys.OpenDatagram(local, to, sys.DatagramOptions{})
	if err != nil {
		return nil, err
	}
	return newSocket(fd, o)
}

// Listen opens a socket of package net whose port may be shared with sockets of [Connected].
// Network is "udp", "udp4" or "udp6".
func Listen(ctx context.Context, network, address string) (*net.UDPConn, error) {
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		if cerr := raw.Control(func(fd uintptr) { err = sys.ShareLocalPort(int(fd)) }); cerr != nil {
			return cerr
		}
		return err
	}}
	conn, err := c.ListenPacket(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}

// Connected opens a socket to remote on the port of a server of [Listen]: from then on what remote
// sends arrives here, and all other datagrams at the listener. What remote sent before stays there.
// Local may have the unspecified address; the address that remote wrote to is better, because
// answers come from it.
func Connected(local, remote netip.AddrPort, o SocketOptions) (*Socket, error) {
	fd, err := sys.OpenDatagram(local, remote, sys.DatagramOptions{Shared: true})
	if err != nil {
		return nil, err
	}
	return newSocket(fd, o)
}

// Adopt takes a connected socket away from package net and closes package net's side, also when it
// fails.
func Adopt(conn *net.UDPConn, o SocketOptions) (*Socket, error) {
	fd, err := sys.TakeOverDatagram(conn)
	if err != nil {
		return nil, err
	}
	return newSocket(fd, o)
}

// newSocket sets the options of a connected socket, and closes it when that fails.
func newSocket(fd int, o SocketOptions) (*Socket, error) {
	s := &Socket{fd: fd, busyPoll: o.BusyPoll}
	if err := s.prepare(o); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Socket) prepare(o SocketOptions) (err error) {
	if s.local, err = sys.LocalAddress(s.fd); err != nil {
		return err
	}
	if s.remote, err = sys.RemoteAddress(s.fd); err != nil {
		return err
	}
	steps := []func() error{
		func() error { return sys.SetTimeout(s.fd, wakeEvery) },
		func() error { return sys.SetReceiveErrors(s.fd) },
		func() error { return sys.SetReceiveDrops(s.fd) },
	}
	if o.DontFragment {
		steps = append(steps, func() error { return sys.SetFragmentation(s.fd, sys.FragmentNever) })
	}
	if o.WindowBytes > 0 {
		steps = append(steps,
			func() error { return sys.SetSendBufferBytes(s.fd, o.WindowBytes) },
			func() error { return sys.SetReceiveBufferBytes(s.fd, o.WindowBytes) })
	}
	if o.TOS != 0 {
		steps = append(steps, func() error { return sys.SetTOS(s.fd, o.TOS) })
	}
	if o.TOS != 0 || o.DontFragment {
		steps = append(steps, func() error { return sys.RefreshRoute(s.fd) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	if o.BusyPoll {
		// Not permitted without CAP_NET_ADMIN; spinning on the socket itself still works.
		_ = sys.SetBusyPoll(s.fd, busyPollFor)
	}
	return nil
}

// LocalAddr returns the address that the socket is bound to.
func (s *Socket) LocalAddr() netip.AddrPort { return s.local }

// RemoteAddr returns the address that it is connected to.
func (s *Socket) RemoteAddr() netip.AddrPort { return s.remote }

// Send sends one datagram, for a dialect's own purposes.
func (s *Socket) Send(p []byte) error {
	if _, err := sys.Write(s.fd, p); err != nil {
		return fmt.Errorf("send datagram to %s: %w", s.remote, err)
	}
	return nil
}

// Receive waits for one datagram for at most wait, for a dialect's own purposes. The rest of a
// datagram longer than p is lost. sys.ErrTimeout: nothing arrived.
func (s *Socket) Receive(p []byte, wait time.Duration) (int, error) {
	ready, err := sys.Poll(s.fd, wait)
	if err == nil && !ready {
		err = sys.ErrTimeout
	}
	if err != nil {
		return 0, fmt.Errorf("receive datagram from %s: %w", s.remote, err)
	}
	n, err := sys.Read(s.fd, p)
	if errors.Is(err, io.EOF) { // an empty datagram; a UDP socket has no other end
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("receive datagram from %s: %w", s.remote, err)
	}
	return n, nil
}

// Buffers returns SO_SNDBUF and SO_RCVBUF as the kernel keeps them, in bytes; 0: not known.
func (s *Socket) Buffers() (send, receive int) {
	// Evidence only: unreadable values are left out.
	send, _ = sys.SendBufferBytes(s.fd)
	receive, _ = sys.ReceiveBufferBytes(s.fd)
	return send, receive
}

// PathMTU returns the largest IP packet, in bytes, that the kernel believes to fit the path; 0: not
// known.
func (s *Socket) PathMTU() int {
	n, err := sys.PathMTU(s.fd)
	if err != nil {
		return 0
	}
	return n
}

// Close closes the socket, once.
func (s *Socket) Close() {
	s.close.Do(func() { _ = sys.Close(s.fd) }) // a datagram socket holds back nothing worth an error
}
