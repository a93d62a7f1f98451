package sockdiag

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// Protocol is what a socket speaks, by its number in the IP header.
type Protocol uint8

// The protocols that [Each] knows.
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

// State is the state of a TCP connection, as the kernel numbers them (include/net/tcp_states.h).
// UDP sockets are Established when connected and Closed otherwise.
type State uint8

// The states in which a socket can move or hold data, or wait for connections.
const (
	Established State = 1
	FinWait1    State = 4 // closed by this end, with data left to send
	Closed      State = 7
	CloseWait   State = 8 // closed by the other end, which still takes data
	Listen      State = 10
)

// Query says which sockets to list.
type Query struct {
	Protocol Protocol
	States   []State
	TCPInfo  bool // with Info and Congestion; costs the kernel as much again as all the rest
	// Limit is how long to list, from when the kernel has taken the question: the first one of all
	// may have it load a module. 0: no limit.
	Limit time.Duration
}

// Socket is one socket at one moment.
type Socket struct {
	Cookie        uint64 // the kernel's number of it, not used again until the host restarts
	State         State
	Local, Remote netip.AddrPort // Remote is invalid where there is none
	// ReceiveQueue and SendQueue: of a listener the connections that wait to be accepted, and how
	// many may; of a connection the bytes that wait to be read, and those written and not
	// acknowledged; of UDP the memory of the packets that wait to be read, and of those not yet
	// sent.
	ReceiveQueue, SendQueue uint32
	Memory                  Memory
	Info                    sys.TCPInfo // Length is 0 where it was not asked for or not told
	Congestion              string
}

// Memory is struct sk_meminfo, in bytes but for Drops. The kernel appends to it: what an older one
// does not tell is zero.
type Memory struct {
	Receive, ReceiveLimit uint32 // rmem_alloc, rcvbuf
	Send, SendLimit       uint32 // wmem_alloc, sndbuf
	Forward               uint32 // fwd_alloc
	Queued                uint32 // wmem_queued
	Option                uint32 // optmem
	Backlog               uint32 // since Linux 3.4
	Drops                 uint32 // packets, since Linux 4.7; goes through zero
}

// ErrLimit is answered when the time of the query was over before the last socket. Those that came
// first have been handed over.
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

// request is struct inet_diag_req_v2 for all sockets of a family.
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

// names keeps one copy of each congestion control's name, of which a host has two or three.
type names map[string]string

func (n names) of(b []byte) string {
	if s, ok := n[string(b)]; ok {
		return s
	}
	s := string(b)
	n[s] = s
	return s
}

// decode reads struct inet_diag_msg and its attributes into s, whose old content is lost.
func (s *Socket) decode(b []byte, known names) error {
	if len(b) < sizeMessage {
		return fmt.Errorf("socket: %w", errShort)
	}
	*s = Socket{State: State(b[1])}
	// Ports and addresses are in network order, all else in that of the host. Of an IPv4 address
	// the first four bytes are used.
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
	s.ReceiveQueue, s.SendQueue = u32(b[56:]), u32(b[60:])
	for rest := b[sizeMessage:]; len(rest) >= 4; {
		size := int(binary.NativeEndian.Uint16(rest))
		if size < 4 || size > len(rest) {
			return fmt.Errorf("socket %v: attribute of %d bytes in %d: %w", s.Local, size, len(rest), errShort)
		}
		value := rest[4:size]
		switch binary.NativeEndian.Uint16(rest[2:]) {
		case attrInfo:
			// Less than the oldest form is no tcp_info, and then nothing is known of the
			// connection.
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
		// Attributes begin at multiples of four; the last need not be filled up.
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
