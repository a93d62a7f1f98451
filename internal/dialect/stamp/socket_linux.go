package stamp

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// controlBytes is room for a packet's control messages: a timestamp, a hop limit in two kinds,
// packet info: 32 + 24 + 24 + 40 bytes on 64-bit machines.
const controlBytes = 256

// wantedTTL is the TTL with which packets leave, so that the other end knows their number of hops
// (RFC 8762 inherits it from RFC 4656 §4.1.2).
const wantedTTL = 255

// socket is a blocking UDP socket, with the structures of one packet and its metadata. They are
// allocated once, because the kernel's structures point into them. Only wake may be called from
// another goroutine.
type socket struct {
	fd        int
	connected bool
	mu        sync.Mutex // protects closed: a wake must not hit a descriptor that was closed and reused
	closed    bool
	name      unix.RawSockaddrInet6 // of the last packet's sender
	nameLen   uint32
	iov       unix.Iovec
	hdr       unix.Msghdr
	control   [controlBytes]byte
	info      [controlBytes]byte // packet info for the answer, of infoLen bytes
	infoLen   int
}

// adopt takes a listening socket over from package net, even if it returns an error.
func adopt(conn *net.UDPConn) (*socket, error) {
	fd, err := sys.TakeOverDatagram(conn)
	if err != nil {
		return nil, err
	}
	return prepare(&socket{fd: fd})
}

// dial opens a socket that is connected to one address and sends with the given type of service.
func dial(to netip.AddrPort, tos int) (*socket, error) {
	fd, err := sys.OpenUDP(netip.Addr{}, to)
	if err != nil {
		return nil, err
	}
	s, err := prepare(&socket{fd: fd, connected: true})
	if err == nil && tos != 0 {
		if err = sys.SetTOS(fd, tos); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, err
}

// prepare requests all metadata of packets.
func prepare(s *socket) (*socket, error) {
	s.hdr.Name = (*byte)(unsafe.Pointer(&s.name))
	s.hdr.Iov = &s.iov
	s.hdr.SetIovlen(1)
	domain, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		s.close()
		return nil, fmt.Errorf("read so_domain: %w", err)
	}
	options := []struct {
		level, option, value int
		name                 string
	}{
		{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1, "so_timestampns"},
		// An IPv6 socket that accepts IPv4 too has the options of both.
		{unix.IPPROTO_IP, unix.IP_RECVTTL, 1, "ip_recvttl"},
		{unix.IPPROTO_IP, unix.IP_TTL, wantedTTL, "ip_ttl"},
		{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1, "ipv6_recvhoplimit"},
		{unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, wantedTTL, "ipv6_unicast_hops"},
		{unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1, "ipv6_recvpktinfo"},
		{unix.IPPROTO_IP, unix.IP_PKTINFO, 1, "ip_pktinfo"},
	}
	for _, o := range options {
		if o.level == unix.IPPROTO_IPV6 && domain == unix.AF_INET || o.option == unix.IP_PKTINFO &&
			o.level == unix.IPPROTO_IP && domain == unix.AF_INET6 {
			continue
		}
		if err := unix.SetsockoptInt(s.fd, o.level, o.option, o.value); err != nil {
			s.close()
			return nil, fmt.Errorf("set %s: %w", o.name, err)
		}
	}
	if err := sys.SetTimeout(s.fd, wakeEvery); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// receive waits for a packet, at most d; then it returns sys.ErrTimeout.
func (s *socket) receive(p []byte, d time.Duration) (int, arrival, error) {
	// poll counts nanoseconds, SO_RCVTIMEO jiffies; a full wait needs no extra call.
	if d < wakeEvery {
		ready, err := sys.Poll(s.fd, d)
		if err != nil {
			return 0, arrival{}, err
		}
		if !ready {
			return 0, arrival{}, sys.ErrTimeout
		}
	}
	s.iov.Base = unsafe.SliceData(p)
	s.iov.SetLen(len(p))
	s.hdr.Namelen = unix.SizeofSockaddrInet6
	s.hdr.Control = &s.control[0]
	s.hdr.SetControllen(controlBytes)
	s.hdr.Flags = 0
	n, _, errno := unix.Syscall(unix.SYS_RECVMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.hdr)), 0)
	switch errno {
	case 0:
	case syscall.EAGAIN, syscall.EINTR:
		return 0, arrival{}, sys.ErrTimeout
	default:
		return 0, arrival{}, errno
	}
	s.nameLen = s.hdr.Namelen
	a := s.read(s.control[:min(int(s.hdr.Controllen), controlBytes)])
	if !a.kernel {
		a.at = unixNanos()
	}
	if s.nameLen > 0 {
		a.from = addressOf(&s.name)
	}
	return int(n), a, nil
}

// read parses the control messages and keeps the packet info for the answer.
func (s *socket) read(control []byte) (a arrival) {
	s.infoLen = 0
	for at := 0; at+unix.SizeofCmsghdr <= len(control); {
		// aligned by the kernel, which starts each at a multiple of a word
		h := (*unix.Cmsghdr)(unsafe.Pointer(&control[at]))
		n := int(h.Len)
		if n < unix.CmsgLen(0) || at+n > len(control) {
			break // impossible: the kernel writes whole messages
		}
		body := control[at+unix.CmsgLen(0) : at+n]
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPNS &&
			len(body) >= int(unsafe.Sizeof(unix.Timespec{})):
			a.at, a.kernel = (*unix.Timespec)(unsafe.Pointer(&body[0])).Nano(), true
		case (h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TTL || h.Level == unix.IPPROTO_IPV6 &&
			h.Type == unix.IPV6_HOPLIMIT) && len(body) >= 4:
			a.ttl = uint8(*(*int32)(unsafe.Pointer(&body[0])))
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(body) >= unix.SizeofInet4Pktinfo:
			// The routes choose the interface of the answer, but not its source address.
			(*unix.Inet4Pktinfo)(unsafe.Pointer(&body[0])).Ifindex = 0
			s.infoLen = copy(s.info[:], control[at:min(len(control), at+unix.CmsgSpace(unix.SizeofInet4Pktinfo))])
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(body) >= unix.SizeofInet6Pktinfo:
			info := (*unix.Inet6Pktinfo)(unsafe.Pointer(&body[0]))
			// Link-local addresses mean nothing without their interface.
			if !netip.AddrFrom16(info.Addr).IsLinkLocalUnicast() {
				info.Ifindex = 0
			}
			s.infoLen = copy(s.info[:], control[at:min(len(control), at+unix.CmsgSpace(unix.SizeofInet6Pktinfo))])
		}
		at += unix.CmsgSpace(n - unix.CmsgLen(0))
	}
	return a
}

// send sends to the connected address, or answers the packet that was received last, from the
// address that it was sent to.
func (s *socket) send(p []byte) error {
	s.iov.Base = unsafe.SliceData(p)
	s.iov.SetLen(len(p))
	s.hdr.Namelen, s.hdr.Flags = s.nameLen, 0
	s.hdr.Control = nil
	s.hdr.SetControllen(0)
	if s.connected {
		s.hdr.Namelen = 0
	} else if s.infoLen > 0 {
		s.hdr.Control = &s.info[0]
		s.hdr.SetControllen(s.infoLen)
	}
	for {
		_, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.hdr)), 0)
		switch errno {
		case 0:
			return nil
		case syscall.EINTR:
		default:
			return errno
		}
	}
}

// wake makes receive return, now and later. The shutdown of an unconnected socket fails with
// ENOTCONN and still works: inet_shutdown of Linux wakes its sleepers on purpose.
func (s *socket) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
	}
}

// close may be called more than once.
func (s *socket) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		_ = unix.Close(s.fd) // an error of close loses no data of UDP
	}
}

// addressOf returns a packet's source, as the kernel wrote it. Zones are left out: they name this
// host's interface and not the peer.
func addressOf(name *unix.RawSockaddrInet6) netip.AddrPort {
	if name.Family == unix.AF_INET {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), networkOrder(&v4.Port))
	}
	return netip.AddrPortFrom(netip.AddrFrom16(name.Addr).Unmap(), networkOrder(&name.Port))
}

// networkOrder reads a port, which is big-endian in memory on every machine.
func networkOrder(port *uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(port))
	return uint16(b[0])<<8 | uint16(b[1])
}
