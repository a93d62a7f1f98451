package sockperf

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/admission"
)

// batch is how many datagrams one system call takes at most. A burst of them costs two calls then
// instead of 128; a lone one is not kept waiting, because the kernel waits for the first only
// (MSG_WAITFORONE).
const batch = 64

// slotBytes is room for the largest datagram. The pages of a slot that no datagram ever fills are
// never touched, so they cost no memory.
const slotBytes = 1 << 16

// controlBytes is room for one IP_PKTINFO or IPV6_PKTINFO with its header: 32 or 40 bytes on 64-bit
// machines.
const controlBytes = 64

// slot is what one datagram of a batch needs besides its bytes.
type slot struct {
	name    unix.RawSockaddrInet6 // the larger of both kinds
	iov     unix.Iovec
	control [controlBytes]byte
}

// udpEcho answers datagrams in batches from a thread of its own. It is allocated once; the kernel's
// structures point into it.
type udpEcho struct {
	fd      int
	anyAddr bool       // bound to all addresses: each answer must say which one it comes from
	mu      sync.Mutex // of closed: a wake must not hit a descriptor that has become somebody else's
	closed  bool
	data    []byte
	slots   [batch]slot
	in, out [batch]unix.Mmsghdr
	used    int           // of in, from the front: the kernel has written to them
	want    int           // how many datagrams the next call asks for
	full    int           // calls in a row that got as many as they asked for
	base    time.Time     // of now
	whose   [batch]*guest // of out
}

// newUDPEcho takes a socket away from package net, also when that fails.
func newUDPEcho(conn *net.UDPConn) (*udpEcho, error) {
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
	fd, err := sys.TakeOverDatagram(conn)
	if err != nil {
		return nil, err
	}
	// 4 MiB of room for datagrams, of which only what was used is ever in memory.
	e := &udpEcho{fd: fd, anyAddr: local.IsUnspecified(), used: batch, want: batch, base: time.Now(),
		data: make([]byte, batch*slotBytes)}
	// So that the loop looks at its context even when the shutdown of wake came between its look
	// and its call.
	err = sys.SetTimeout(fd, wakeEvery)
	if err == nil && e.anyAddr {
		err = wantPacketInfo(fd, local.Is4())
	}
	if err != nil {
		e.close()
		return nil, err
	}
	for i := range e.slots {
		s := &e.slots[i]
		s.iov.Base = &e.data[i*slotBytes]
		e.in[i].Hdr.Name = (*byte)(unsafe.Pointer(&s.name))
		e.in[i].Hdr.Iov = &s.iov
		e.in[i].Hdr.SetIovlen(1)
	}
	return e, nil
}

// wantPacketInfo asks for the address that each datagram was sent to.
func wantPacketInfo(fd int, v4 bool) error {
	level, option := unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO
	if v4 {
		level, option = unix.IPPROTO_IP, unix.IP_PKTINFO
	}
	if err := unix.SetsockoptInt(fd, level, option, 1); err != nil {
		return fmt.Errorf("ask for packet info: %w", err)
	}
	return nil
}

// wake makes run return. An unconnected socket calls the shutdown ENOTCONN and obeys it all the
// same: inet_shutdown of Linux wakes its sleepers on purpose.
func (e *udpEcho) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		_ = unix.Shutdown(e.fd, unix.SHUT_RDWR)
	}
}

// close may be called again.
func (e *udpEcho) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.closed = true
		_ = unix.Close(e.fd) // datagrams have nothing to lose
	}
}

// run answers until ctx ends. It keeps its thread, which ends with it.
func (e *udpEcho) run(ctx context.Context, gate *admission.Gate, b *book) error {
	runtime.LockOSThread()
	defer func() { b.sweep(e.now(), true) }()
	for {
		n, err := e.receive()
		if ctx.Err() != nil {
			return nil
		}
		// Any other error is a quiet 200 ms, a signal, or the ICMP error that some answer brought
		// about.
		if err == syscall.EBADF || err == syscall.ENOTSOCK {
			return fmt.Errorf("receive sockperf messages: %w", err)
		}
		e.answer(n, gate, b)
	}
}

// answer judges the n datagrams that came and sends the answers.
func (e *udpEcho) answer(n int, gate *admission.Gate, b *book) {
	now := e.now()
	b.sweep(now, false)
	answers := 0
	for i := range n {
		s, m := &e.slots[i], &e.in[i]
		p := e.data[i*slotBytes:][:m.Len]
		from := addressOf(&s.name)
		if !judge(p, from, gate, b, now) {
			continue
		}
		s.iov.SetLen(len(p))
		out := &e.out[answers]
		// The whole header of the request is that of the answer: its source is now the destination,
		// its bytes are turned in place.
		out.Hdr = m.Hdr
		e.answerFrom(out, s)
		e.whose[answers] = b.page(from, now)
		answers++
	}
	e.send(answers)
}

// receive waits for one datagram, for wakeEvery at most, and takes what else is there.
func (e *udpEcho) receive() (int, syscall.Errno) {
	for i := range e.used {
		s, hdr := &e.slots[i], &e.in[i].Hdr
		// The kernel wrote true lengths here the last time, and the answer its own.
		s.iov.SetLen(slotBytes)
		hdr.Namelen = unix.SizeofSockaddrInet6
		hdr.Flags = 0
		if e.anyAddr {
			hdr.Control = &s.control[0]
			hdr.SetControllen(controlBytes)
		}
	}
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(e.fd), uintptr(unsafe.Pointer(&e.in[0])), uintptr(e.want),
		unix.MSG_WAITFORONE, 0, 0)
	if errno != 0 {
		n = 0
	}
	e.used = int(n)
	e.adapt(int(n))
	return int(n), errno
}

// adapt chooses how many datagrams to ask for. Looking in vain for a second one costs a ping-pong a
// few hundred nanoseconds each time, so more are asked for only after four calls that got what they
// asked for.
func (e *udpEcho) adapt(got int) {
	if got < e.want {
		e.want, e.full = max(got, 1), 0
		return
	}
	if e.full++; e.full >= 4 {
		e.want, e.full = min(2*e.want, batch), 0
	}
}

// now is a monotonic clock that costs no system call.
func (e *udpEcho) now() time.Duration { return time.Since(e.base) + 1 }

// send sends the first n of out. A datagram that cannot be sent is skipped: over UDP that is loss,
// which the client counts.
func (e *udpEcho) send(n int) {
	for at := 0; at < n; {
		// It never sleeps, so the scheduler need not be told.
		sent, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(e.fd), uintptr(unsafe.Pointer(&e.out[at])),
			uintptr(n-at), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == syscall.EINTR:
		case errno != 0:
			// The call reports an error only for its first datagram, so that is the one to leave
			// out.
			e.whose[at].unsent++
			at++
		default:
			at += int(sent)
		}
	}
}

// answerFrom lets an answer leave from the address that was asked. The interface is left to the
// routes, but for link-local addresses, which mean nothing without it.
func (e *udpEcho) answerFrom(out *unix.Mmsghdr, s *slot) {
	if !e.anyAddr || out.Hdr.Controllen < unix.SizeofCmsghdr {
		out.Hdr.Control = nil
		out.Hdr.SetControllen(0)
		return
	}
	// The first message is the only one that was asked for, and the kernel aligned it.
	h := (*unix.Cmsghdr)(unsafe.Pointer(&s.control[0]))
	body := unsafe.Pointer(&s.control[unix.CmsgLen(0)])
	switch {
	case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && int(h.Len) >= unix.CmsgLen(unix.SizeofInet4Pktinfo):
		(*unix.Inet4Pktinfo)(body).Ifindex = 0
	case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO &&
		int(h.Len) >= unix.CmsgLen(unix.SizeofInet6Pktinfo):
		info := (*unix.Inet6Pktinfo)(body)
		if !netip.AddrFrom16(info.Addr).IsLinkLocalUnicast() {
			info.Ifindex = 0
		}
	default:
		out.Hdr.Control = nil
		out.Hdr.SetControllen(0)
	}
}

// addressOf reads what the kernel wrote as a datagram's source. Zones are left out: they name our
// interface, not the peer.
func addressOf(name *unix.RawSockaddrInet6) netip.AddrPort {
	if name.Family == unix.AF_INET {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), networkOrder(&v4.Port))
	}
	return netip.AddrPortFrom(netip.AddrFrom16(name.Addr).Unmap(), networkOrder(&name.Port))
}

// networkOrder reads a port, which lies in memory big-endian whatever the machine is.
func networkOrder(port *uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(port))
	return uint16(b[0])<<8 | uint16(b[1])
}
