package sys

import (
	"io"
	"net"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Outbox is an array of messages that one system call sends on a connected socket (sendmmsg(2),
// Linux 3.0). The caller owns the memory of the payload. Sending allocates nothing. An Outbox is
// not safe for concurrent use.
type Outbox struct {
	headers []unix.Mmsghdr
	vectors []unix.Iovec
	control []byte // one UDP_SEGMENT and one SO_TIMESTAMPING each
	space   int    // of each
}

// segmentSpace is the room of one UDP_SEGMENT control message, a uint16.
var segmentSpace = unix.CmsgSpace(2)

// NewOutbox returns an Outbox for n messages.
func NewOutbox(n int) *Outbox {
	b := &Outbox{headers: make([]unix.Mmsghdr, n), vectors: make([]unix.Iovec, n),
		space: segmentSpace + stampSpace}
	b.control = make([]byte, n*b.space)
	for i := range b.headers {
		c := (*unix.Cmsghdr)(unsafe.Pointer(&b.control[i*b.space]))
		c.Level, c.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
		c.SetLen(unix.CmsgLen(2))
		stamp(b.control[i*b.space+segmentSpace:])
		b.headers[i].Hdr.Iov = &b.vectors[i]
		b.headers[i].Hdr.SetIovlen(1)
	}
	return b
}

// Set makes p, which must not be empty, message i. A positive segmentBytes makes the kernel split
// it into datagrams of that size, the last of which may be shorter (UDP_SEGMENT, Linux 4.18; at
// most 64 datagrams, 128 since Linux 6.9).
func (b *Outbox) Set(i int, p []byte, segmentBytes int) {
	b.vectors[i].Base = &p[0]
	b.vectors[i].SetLen(len(p))
	h := &b.headers[i].Hdr
	if segmentBytes <= 0 || len(p) <= segmentBytes {
		h.Control, h.Controllen = nil, 0
		return
	}
	at := i * b.space
	*(*uint16)(unsafe.Pointer(&b.control[at+unix.CmsgLen(0)])) = uint16(segmentBytes)
	h.Control = &b.control[at]
	h.SetControllen(segmentSpace)
}

// Send sends the first n messages and returns how many were sent. An error belongs to the first of
// them. If another message is refused, the kernel reports only the number sent before it, without
// the reason. The next call tries that message again: a lasting reason then appears as an error,
// and a temporary one has no effect. [ErrTimeout] means that no message was sent within the time of
// [SetTimeout]; other errors are bare errnos.
//
// As long as the send buffer has room, the Go scheduler is not notified of the call. A hundred
// packets take long enough for the scheduler to take the logical processor away from the thread,
// and it would check up to fifty thousand times a second. A call that waits for room notifies it.
func (b *Outbox) Send(fd, n int) (int, error) {
	first := uintptr(unsafe.Pointer(&b.headers[0]))
	for {
		sent, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), first, uintptr(n), unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.EAGAIN {
			sent, _, errno = unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), first, uintptr(n), 0, 0, 0)
		}
		switch errno {
		case 0:
			return int(sent), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, ErrTimeout
		default:
			return 0, errno
		}
	}
}

// Inbox is an array of buffers that one system call fills with messages (recvmmsg(2), Linux
// 2.6.33). Receiving allocates nothing. An Inbox is not safe for concurrent use.
type Inbox struct {
	headers []unix.Mmsghdr
	vectors []unix.Iovec
	payload []byte
	control []byte
	bytes   int // of payload, each
	used    int // headers that the kernel has written to
	// sources, as struct sockaddr_in or sockaddr_in6; nil: not asked for
	names []unix.RawSockaddrInet6
	// the zone of the newest link-local source
	zone  string
	index uint32
}

// inboxControl is the room for the control messages of one message: a timestamp (which has three
// places with SO_TIMESTAMPING), a drop count, a segment size.
var inboxControl = unix.CmsgSpace(3*int(unsafe.Sizeof(unix.Timespec{}))) + unix.CmsgSpace(4) + unix.CmsgSpace(4)

// NewInbox returns an Inbox for n messages of up to bytes each.
func NewInbox(n, bytes int) *Inbox {
	b := &Inbox{
		headers: make([]unix.Mmsghdr, n), vectors: make([]unix.Iovec, n),
		payload: make([]byte, n*bytes), control: make([]byte, n*inboxControl), bytes: bytes, used: n,
	}
	for i := range b.headers {
		b.vectors[i].Base = &b.payload[i*bytes]
		b.vectors[i].SetLen(bytes)
		h := &b.headers[i].Hdr
		h.Iov = &b.vectors[i]
		h.SetIovlen(1)
		h.Control = &b.control[i*inboxControl]
	}
	return b
}

// KeepSources makes [Message.From] the source of each message of a socket that is not connected.
func (b *Inbox) KeepSources() {
	b.names = make([]unix.RawSockaddrInet6, len(b.headers))
	for i := range b.headers {
		b.headers[i].Hdr.Name = (*byte)(unsafe.Pointer(&b.names[i]))
		b.headers[i].Hdr.Namelen = unix.SizeofSockaddrInet6
	}
}

// from returns the source of message i.
func (b *Inbox) from(i int) netip.AddrPort {
	n := &b.names[i]
	// In network order; struct sockaddr_in has it in the same place.
	port := (*[2]byte)(unsafe.Pointer(&n.Port))
	at := uint16(port[0])<<8 | uint16(port[1])
	if n.Family == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(n)).Addr), at)
	}
	a := netip.AddrFrom16(n.Addr).Unmap()
	if n.Scope_id != 0 && a.Is6() {
		if b.index != n.Scope_id {
			b.index, b.zone = n.Scope_id, strconv.FormatUint(uint64(n.Scope_id), 10)
			if i, err := net.InterfaceByIndex(int(n.Scope_id)); err == nil {
				b.zone = i.Name // as package net has it
			}
		}
		a = a.WithZone(b.zone)
	}
	return netip.AddrPortFrom(a, at)
}

// Receive reads the waiting messages, at most n, and returns their number. With wait it sleeps
// until a message arrives, at most for the time of [SetTimeout]. Without wait, the Go scheduler is
// not notified of the call, see [Outbox.Send]. [ErrTimeout] means that no message was available. A
// waiting ICMP error is returned as an error and leaves the socket usable.
func (b *Inbox) Receive(fd, n int, wait bool) (int, error) {
	// The kernel shortens these to the length it filled.
	for i := range b.used {
		b.headers[i].Hdr.SetControllen(inboxControl)
		if b.names != nil {
			b.headers[i].Hdr.Namelen = unix.SizeofSockaddrInet6
		}
	}
	b.used = 0
	first := uintptr(unsafe.Pointer(&b.headers[0]))
	for {
		var got uintptr
		var errno unix.Errno
		if wait {
			got, _, errno = unix.Syscall6(unix.SYS_RECVMMSG, uintptr(fd), first, uintptr(n), unix.MSG_WAITFORONE, 0, 0)
		} else {
			got, _, errno = unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), first, uintptr(n), unix.MSG_DONTWAIT, 0, 0)
		}
		switch errno {
		case 0:
			b.used = int(got)
			if got == 0 {
				return 0, io.EOF // no kernel does that for n > 0, but a loop must not spin on it
			}
			return int(got), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, ErrTimeout
		default:
			return 0, errno
		}
	}
}

// Message is one message that an [Inbox] received.
type Message struct {
	Payload []byte // valid until the next Receive
	// size of the datagrams that the kernel merged into Payload, the last of which may be shorter;
	// 0: one datagram
	SegmentBytes int
	Truncated    bool  // the datagram was longer than the buffer
	ArrivedNanos int64 // realtime clock when the kernel first saw it; 0: not known
	// messages that the socket had dropped before it; also 0 if the kernel does not report it
	Drops uint32
	From  netip.AddrPort // after [Inbox.KeepSources]; an IPv4 address as such
}

// Message returns message i of the last Receive.
func (b *Inbox) Message(i int) Message {
	h := &b.headers[i]
	m := Message{Payload: b.payload[i*b.bytes : i*b.bytes+min(int(h.Len), b.bytes)],
		Truncated: h.Hdr.Flags&unix.MSG_TRUNC != 0}
	if b.names != nil && h.Hdr.Namelen > 0 {
		m.From = b.from(i)
	}
	control := b.control[i*inboxControl : i*inboxControl+min(int(h.Hdr.Controllen), inboxControl)]
	for at := 0; at+unix.SizeofCmsghdr <= len(control); {
		c := (*unix.Cmsghdr)(unsafe.Pointer(&control[at]))
		n := int(c.Len)
		if n < unix.CmsgLen(0) || at+n > len(control) {
			break // the kernel writes complete messages
		}
		data := unsafe.Add(unsafe.Pointer(c), unix.CmsgLen(0))
		switch {
		case c.Level == unix.SOL_SOCKET && (c.Type == unix.SO_TIMESTAMPNS || c.Type == unix.SO_TIMESTAMPING) &&
			n >= unix.CmsgLen(int(unsafe.Sizeof(unix.Timespec{}))):
			m.ArrivedNanos = (*unix.Timespec)(data).Nano()
		case c.Level == unix.SOL_SOCKET && c.Type == unix.SO_RXQ_OVFL && n >= unix.CmsgLen(4):
			m.Drops = *(*uint32)(data)
		case c.Level == unix.IPPROTO_UDP && c.Type == unix.UDP_GRO && n >= unix.CmsgLen(4):
			m.SegmentBytes = int(*(*int32)(data))
		}
		at += unix.CmsgSpace(n - unix.CmsgLen(0))
	}
	return m
}
