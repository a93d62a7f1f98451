package echo

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxDatagram is the largest IP packet, headers included, and so more than any datagram.
const maxDatagram = 1 << 16

// controlWords is space for the control messages of one packet, in words so that they are aligned
// as the kernel lays them out: a packet's address (36 bytes) or an extended error with an address
// (60) beside timestamps (64).
const controlWords = 32

// message is one packet for recvmsg(2) and sendmsg(2), with everything that the kernel writes to in
// one place that does not move. It is filled anew before each call.
type message struct {
	header  unix.Msghdr
	iov     unix.Iovec
	name    unix.RawSockaddrInet6 // the larger of the two kinds
	control [controlWords]uint64
}

// forReceive prepares m to take a packet into p. The kernel writes lengths and flags back into the
// header, so nothing of an earlier call may be left in it.
func (m *message) forReceive(p []byte) {
	m.iov.Base = unsafe.SliceData(p)
	m.iov.SetLen(len(p))
	m.header.Name = (*byte)(unsafe.Pointer(&m.name))
	m.header.Namelen = uint32(unsafe.Sizeof(m.name))
	m.header.Iov = &m.iov
	m.header.SetIovlen(1)
	m.header.Control = (*byte)(unsafe.Pointer(&m.control))
	m.header.SetControllen(int(unsafe.Sizeof(m.control)))
	m.header.Flags = 0
}

// receive takes one packet and returns its length; flags are those of recvmsg(2).
func (m *message) receive(fd int, p []byte, flags int) (int, unix.Errno) {
	for {
		m.forReceive(p)
		n, _, errno := unix.Syscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&m.header)), uintptr(flags))
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}

// send sends what the header describes.
func (m *message) send(fd int) unix.Errno {
	for {
		_, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&m.header)), 0)
		if errno != unix.EINTR {
			return errno
		}
	}
}

// from returns the address that the kernel wrote beside a packet; for a packet from the error
// queue, the address that it was sent to.
func (m *message) from() netip.AddrPort {
	if m.header.Namelen == 0 {
		return netip.AddrPort{}
	}
	return rawAddrPort(&m.name)
}

// rawAddrPort reads a socket address, in which the port is in network order and the family in the
// machine's.
func rawAddrPort(raw *unix.RawSockaddrInet6) netip.AddrPort {
	switch raw.Family {
	case unix.AF_INET:
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(raw))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), networkOrder(v4.Port))
	case unix.AF_INET6:
		a := netip.AddrFrom16(raw.Addr).Unmap()
		if raw.Scope_id != 0 && a.Is6() {
			a = a.WithZone(strconv.FormatUint(uint64(raw.Scope_id), 10))
		}
		return netip.AddrPortFrom(a, networkOrder(raw.Port))
	}
	return netip.AddrPort{}
}

func networkOrder(v uint16) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], v)
	return binary.BigEndian.Uint16(b[:])
}

// controls walks the control messages, cmsg(3), by hand: the functions of package unix allocate a
// slice for each packet. It calls f with the level, type and data of each control message; data are
// valid until the next call on m.
func (m *message) controls(f func(level, typ int32, data []byte)) {
	all := unsafe.Slice((*byte)(unsafe.Pointer(&m.control)), unsafe.Sizeof(m.control))
	all = all[:min(uint64(m.header.Controllen), uint64(len(all)))]
	for len(all) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(unsafe.SliceData(all)))
		length := int(h.Len)
		// MSG_CTRUNC cuts the last message short when space was scarce; an incomplete one is
		// ignored.
		if length < unix.SizeofCmsghdr || length > len(all) {
			return
		}
		f(h.Level, h.Type, all[unix.CmsgLen(0):length])
		all = all[min(unix.CmsgSpace(length-unix.CmsgLen(0)), len(all)):]
	}
}

// notice is one entry of a socket's error queue, ip(7) IP_RECVERR: a packet of ours and what
// happened to it.
type notice struct {
	errno  unix.Errno
	local  bool // this host reports it, not the network
	v6     bool // typ and code are ICMPv6's
	typ    uint8
	code   uint8
	mtu    int            // of the hop or interface that a packet was too big for (EMSGSIZE)
	by     netip.Addr     // address of the host that reported
	to     netip.AddrPort // where the packet went; the port is 0 for ICMP
	bytes  int            // of the packet's payload that was returned
	sentAt int64          // CLOCK_REALTIME in nanoseconds when the packet entered the queues; 0: this is an error
	id     uint32         // of the packet that was timestamped, counted from when timestamps were switched on
}

// errorQueue reads notices of one socket.
type errorQueue struct {
	message message
	payload [256]byte // beginning of the packet
	found   notice
}

// next returns the oldest notice, valid until the next call; nil: there is none.
//
// Reading it also clears the error that the next ordinary call on the socket would otherwise have
// returned, if it was the last (net/core/skbuff.c, sock_dequeue_err_skb).
func (q *errorQueue) next(fd int) *notice {
	n, errno := q.message.receive(fd, q.payload[:], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
	if errno != 0 {
		return nil
	}
	q.found = notice{to: q.message.from(), bytes: n}
	var at int64
	q.message.controls(func(level, typ int32, data []byte) {
		switch {
		case level == unix.SOL_SOCKET && typ == unix.SCM_TIMESTAMPING &&
			len(data) >= int(unsafe.Sizeof(unix.Timespec{})):
			at = (*unix.Timespec)(unsafe.Pointer(unsafe.SliceData(data))).Nano()
		case level == unix.SOL_IP && typ == unix.IP_RECVERR, level == unix.SOL_IPV6 && typ == unix.IPV6_RECVERR:
			q.found.extended(data)
		}
	})
	// ICMP errors have a time as well, that of their own arrival.
	if q.found.errno == unix.ENOMSG {
		q.found.sentAt = at
	}
	return &q.found
}

// extended reads struct sock_extended_err and the address behind it.
func (n *notice) extended(data []byte) {
	const size = int(unsafe.Sizeof(unix.SockExtendedErr{}))
	if len(data) < size {
		return
	}
	e := (*unix.SockExtendedErr)(unsafe.Pointer(unsafe.SliceData(data)))
	n.errno, n.typ, n.code = unix.Errno(e.Errno), e.Type, e.Code
	switch e.Origin {
	case unix.SO_EE_ORIGIN_LOCAL:
		n.local = true
	case unix.SO_EE_ORIGIN_ICMP6:
		n.v6 = true
	case unix.SO_EE_ORIGIN_TIMESTAMPING:
		n.id = e.Data
	}
	if n.errno == unix.EMSGSIZE {
		n.mtu = int(e.Info)
	}
	// SO_EE_OFFENDER: the address of the host that sent the ICMP message follows directly; of this
	// host's own errors it has family 0.
	if offender := data[size:]; len(offender) >= unix.SizeofSockaddrInet4 {
		var raw unix.RawSockaddrInet6
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&raw)), unsafe.Sizeof(raw)), offender)
		n.by = rawAddrPort(&raw).Addr()
	}
}
