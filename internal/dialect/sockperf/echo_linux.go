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

// batch is the largest number of datagrams per system call. A burst of that many costs two calls
// instead of 128. A single datagram is not delayed, because the kernel waits for the first one only
// (MSG_WAITFORONE).
const batch = 64

// slotBytes is room for the largest datagram. Pages that no datagram ever fills are never touched,
// so they cost no memory.
const slotBytes = 1 << 16

// controlBytes is room for one IP_PKTINFO or IPV6_PKTINFO with its header: 32 or 40 bytes on 64-bit
// machines.
const controlBytes = 64

// slot is the metadata of one datagram of a batch.
type slot struct {
	name    unix.RawSockaddrInet6 // large enough for both address families
	iov     unix.Iovec
	control [controlBytes]byte
}

// udpEcho answers datagrams in batches from a thread of its own. It is allocated once, because the
// kernel's structures point into it.
type udpEcho struct {
	fd      int
	anyAddr bool       // bound to all addresses: each answer must name its source address
	mu      sync.Mutex // protects closed: a wake must not hit a descriptor that was closed and reused
	closed  bool
	data    []byte
	slots   [batch]slot
	in, out [batch]unix.Mmsghdr
	used    int           // slots of in, from the front, that the kernel has written to
	want    int           // how many datagrams the next call requests
	full    int           // successive calls that returned as many as requested
	base    time.Time     // zero of now
	whose   [batch]*guest // sources of out
}

// newUDPEcho takes a socket over from package net, even if it returns an error.
func newUDPEcho(conn *net.UDPConn) (*udpEcho, error) {
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
	fd, err := sys.TakeOverDatagram(conn)
	if err != nil {
		return nil, err
	}
	// 4 MiB of room for datagrams, of which only used pages are in memory.
	e := &udpEcho{fd: fd, anyAddr: local.IsUnspecified(), used: batch, want: batch, base: time.Now(),
		data: make([]byte, batch*slotBytes)}
	// So that the loop checks its context even if the shutdown of wake came between its check and
	// its call.
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

// wantPacketInfo requests the destination address of each datagram.
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

// wake makes run return. The shutdown of an unconnected socket fails with ENOTCONN and still works:
// inet_shutdown of Linux wakes its sleepers on purpose.
func (e *udpEcho) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		_ = unix.Shutdown(e.fd, unix.SHUT_RDWR)
	}
}

// close may be called more than once.
func (e *udpEcho) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.closed = true
		_ = unix.Close(e.fd) // an error of close loses no data of UDP
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
		// Other errors are the timeout of 200 ms, a signal, or an ICMP error that an answer caused.
		if err == syscall.EBADF || err == syscall.ENOTSOCK {
			return fmt.Errorf("receive sockperf messages: %w", err)
		}
		e.answer(n, gate, b)
	}
}

// answer judges the n received datagrams and sends the answers.
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
		// The answer uses the whole header of its request: the source becomes the destination, and
		// the bytes are changed in place.
		out.Hdr = m.Hdr
		e.answerFrom(out, s)
		e.whose[answers] = b.page(from, now)
		answers++
	}
	e.send(answers)
}

// receive waits for one datagram, at most wakeEvery, and takes all that are queued.
func (e *udpEcho) receive() (int, syscall.Errno) {
	for i := range e.used {
		s, hdr := &e.slots[i], &e.in[i].Hdr
		// The last call wrote true lengths here, and the answer its own.
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

// adapt chooses how many datagrams to request. A useless look for a second one costs a ping-pong a
// few hundred nanoseconds each time, so more are requested only after four calls that returned as
// many as requested.
func (e *udpEcho) adapt(got int) {
	if got < e.want {
		e.want, e.full = max(got, 1), 0
		return
	}
	if e.full++; e.full >= 4 {
		e.want, e.full = min(2*e.want, batch), 0
	}
}

// now is a monotonic clock without a system call.
func (e *udpEcho) now() time.Duration { return time.Since(e.base) + 1 }

// send sends the first n of out. A datagram that cannot be sent is skipped: that is loss, which the
// client counts.
func (e *udpEcho) send(n int) {
	for at := 0; at < n; {
		// It never sleeps, so the scheduler need not know.
		sent, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(e.fd), uintptr(unsafe.Pointer(&e.out[at])),
			uintptr(n-at), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == syscall.EINTR:
		case errno != 0:
			// The call reports an error only for its first datagram, so that one is skipped.
			e.whose[at].unsent++
			at++
		default:
			at += int(sent)
		}
	}
}

// answerFrom makes an answer leave from the address that its request was sent to. The routes choose
// the interface, except for link-local addresses, which mean nothing without it.
func (e *udpEcho) answerFrom(out *unix.Mmsghdr, s *slot) {
	if !e.anyAddr || out.Hdr.Controllen < unix.SizeofCmsghdr {
		out.Hdr.Control = nil
		out.Hdr.SetControllen(0)
		return
	}
	// Only one control message was requested, and the kernel aligned it.
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

// addressOf returns a datagram's source, as the kernel wrote it. Zones are left out: they name this
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
