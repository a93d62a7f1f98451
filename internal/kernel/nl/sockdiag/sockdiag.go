package sockdiag

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// Protocol is a transport protocol, by its number in the IP header.
type Protocol uint8

// The protocols that [Each] supports.
const (
	TCP Protocol = 6
	UDP Protocol = 17
)

func (p Protocol) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	}
	return fmt.Sprintf("protocol %d", uint8(p))
}

// State is the state of a TCP connection, numbered as in the kernel (include/net/tcp_states.h). UDP
// sockets are Established when connected and Closed otherwise.
type State uint8

// The states in which a socket can transfer or hold data, or wait for connections.
const (
	Established State = 1
	FinWait1    State = 4 // closed by this end, with data left to send
	Closed      State = 7
	CloseWait   State = 8 // closed by the other end, which still accepts data
	Listen      State = 10
)

// Query selects the sockets to list.
type Query struct {
	Protocol Protocol
	States   []State
	TCPInfo  bool // with Info and Congestion; doubles the kernel's work
	// Limit is the longest duration of the listing, measured from the kernel's receipt of the
	// request, because the first request may load a module. 0: no limit.
	Limit time.Duration
}

// Socket is one socket at one moment.
type Socket struct {
	Cookie        uint64 // the kernel's identifier, unique until the host restarts
	State         State
	Local, Remote netip.AddrPort // Remote is invalid if the socket has no peer
	// ReceiveQueue and SendQueue depend on the kind of socket. Of a listener they are the
	// connections that wait for accept, and their limit. Of a connection they are the unread bytes,
	// and the written bytes without acknowledgement. Of a UDP socket they are the memory of unread
	// packets, and of unsent ones.
	ReceiveQueue, SendQueue uint32
	// Inode is the number of the socket in links such as /proc/PID/fd/3; 0: no program holds it any
	// more, or the kernel made it.
	Inode      uint32
	Memory     Memory
	Info       sys.TCPInfo // Length is 0 if it was not requested or not reported
	Congestion string
}

// Memory is struct sk_meminfo, in bytes except Drops. Newer kernels append fields; a field that an
// older kernel lacks is zero.
type Memory struct {
	Receive, ReceiveLimit uint32 // rmem_alloc, rcvbuf
	Send, SendLimit       uint32 // wmem_alloc, sndbuf
	Forward               uint32 // fwd_alloc
	Queued                uint32 // wmem_queued
	Option                uint32 // optmem
	Backlog               uint32 // since Linux 3.4
	Drops                 uint32 // packets, since Linux 4.7; wraps
}

// ErrLimit reports that the query's time ended before the last socket. The callback has received
// the sockets read until then.
var ErrLimit = errors.New("not all sockets within the time")

var errShort = errors.New("message shorter than its header")

// Sizes and numbers of include/uapi/linux/inet_diag.h.
const (
	sizeRequest = 56 // struct inet_diag_req_v2
	sizeMessage = 72 // struct inet_diag_msg

	attrInfo       = 2 // INET_DIAG_INFO
	attrCongestion = 4 // INET_DIAG_CONG
	attrMemory     = 7 // INET_DIAG_SKMEMINFO

	familyIPv4 = 2 // AF_INET
	familyIPv6 = 10
)

// request returns struct inet_diag_req_v2 for all sockets of a family.
func (q Query) request(family byte) []byte {
	b := make([]byte, sizeRequest)
	b[0], b[1] = family, byte(q.Protocol)
	b[2] = 1 << (attrMemory - 1)
	if q.TCPInfo {
		b[2] |= 1<<(attrInfo-1) | 1<<(attrCongestion-1)
	}
	var states uint32
	for _, s := range q.States {
		states |= 1 << s
	}
	binary.NativeEndian.PutUint32(b[4:], states)
	return b
}

// names keeps one copy of each congestion control's name; a host has two or three.
type names map[string]string

func (n names) of(b []byte) string {
	if s, ok := n[string(b)]; ok {
		return s
	}
	s := string(b)
	n[s] = s
	return s
}

// decode reads struct inet_diag_msg and its attributes into s and overwrites its old content.
func (s *Socket) decode(b []byte, known names) error {
	if len(b) < sizeMessage {
		return fmt.Errorf("socket: %w", errShort)
	}
	*s = Socket{State: State(b[1])}
	// Ports and addresses are in network byte order, everything else in that of the host. An IPv4
	// address uses the first four bytes.
	address := func(at int) netip.Addr {
		if b[0] == familyIPv4 {
			return netip.AddrFrom4([4]byte(b[at : at+4]))
		}
		return netip.AddrFrom16([16]byte(b[at : at+16])).Unmap()
	}
	s.Local = netip.AddrPortFrom(address(8), binary.BigEndian.Uint16(b[4:]))
	if port := binary.BigEndian.Uint16(b[6:]); port != 0 {
		s.Remote = netip.AddrPortFrom(address(24), port)
	}
	s.Cookie = uint64(u32(b[48:]))<<32 | uint64(u32(b[44:]))
	s.ReceiveQueue, s.SendQueue, s.Inode = u32(b[56:]), u32(b[60:]), u32(b[68:])
	for rest := b[sizeMessage:]; len(rest) >= 4; {
		size := int(binary.NativeEndian.Uint16(rest))
		if size < 4 || size > len(rest) {
			return fmt.Errorf("socket %v: attribute of %d bytes in %d: %w", s.Local, size, len(rest), errShort)
		}
		value := rest[4:size]
		switch binary.NativeEndian.Uint16(rest[2:]) {
		case attrInfo:
			// A value shorter than the oldest form is not a tcp_info; nothing is known of the
			// connection then.
			if info, err := sys.DecodeTCPInfo(value); err == nil {
				s.Info = info
			}
		case attrCongestion:
			if n := len(value); n > 0 && value[n-1] == 0 {
				value = value[:n-1]
			}
			s.Congestion = known.of(value)
		case attrMemory:
			s.Memory.decode(value)
		}
		// Attributes begin at multiples of four; the last one may lack padding.
		rest = rest[min((size+3)&^3, len(rest)):]
	}
	return nil
}

func (m *Memory) decode(b []byte) {
	for _, field := range []*uint32{&m.Receive, &m.ReceiveLimit, &m.Send, &m.SendLimit, &m.Forward, &m.Queued,
		&m.Option, &m.Backlog, &m.Drops} {
		if len(b) < 4 {
			return
		}
		*field, b = u32(b), b[4:]
	}
}

func u32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }
