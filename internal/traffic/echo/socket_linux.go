package echo

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// echoSocket exchanges pings with one address over ICMP or UDP.
type echoSocket struct {
	fd      int
	icmp    *icmpEcho // nil: UDP
	v6      bool
	buf     []byte // space for IP and ICMP headers around a ping, one way at a time
	message message
	queue   errorQueue
}

// wakeEvery bounds the sleep of a read.
const wakeEvery = 200 * time.Millisecond

// headRoom is the most that precedes the payload in what a socket delivers: an IPv4 header with all
// options and the ICMP header.
const headRoom = 60 + icmpHeaderBytes

// openICMP opens the socket for ICMP echo with to, for pings of size bytes.
func openICMP(from, to netip.Addr, size int) (*echoSocket, error) {
	fd, kind, err := sys.OpenEcho(from, to)
	if err != nil {
		return nil, err
	}
	e := &icmpEcho{kind: kind, v6: !to.Unmap().Is4(), id: uint16(rand.Uint32())}
	return newEchoSocket(fd, e, e.v6, size)
}

// openUDP opens the socket for UDP echo with to, for pings of size bytes.
func openUDP(from netip.Addr, to netip.AddrPort, size int) (*echoSocket, error) {
	fd, err := sys.OpenUDP(from, to)
	if err != nil {
		return nil, err
	}
	return newEchoSocket(fd, nil, !to.Addr().Unmap().Is4(), size)
}

// newEchoSocket takes over fd, which it closes on failure.
func newEchoSocket(fd int, e *icmpEcho, v6 bool, size int) (*echoSocket, error) {
	// A read must not sleep forever: a socket that poll called readable can still have nothing to
	// read. The kernel checks the checksum of a datagram only in the read, and then drops it.
	if err := sys.SetTimeout(fd, wakeEvery); err != nil {
		_ = sys.Close(fd) // nothing was sent on it
		return nil, err
	}
	s := &echoSocket{fd: fd, icmp: e, v6: v6, buf: make([]byte, headRoom+size)}
	tellErrors(fd, v6)
	// When a packet enters the queues of this host and when one leaves the driver: the time before
	// and after belongs to this program and the scheduler, not to the path. TX_SCHED (Linux 3.17)
	// and not TX_SOFTWARE, which is after the queueing discipline: on a host that fills its own
	// link packets wait there. OPT_ID numbers packets from here on, OPT_TSONLY (Linux 4.0) saves
	// the copy of the packet.
	flags := unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_RX_SOFTWARE |
		unix.SOF_TIMESTAMPING_TX_SCHED | unix.SOF_TIMESTAMPING_OPT_ID | unix.SOF_TIMESTAMPING_OPT_TSONLY
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, flags) != nil {
		// Receive times only; without them the times of the calls are left.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	}
	return s, nil
}

// tellErrors makes the kernel keep ICMP errors with all that they report. Without it a socket still
// works, and the errors are bare numbers.
func tellErrors(fd int, v6 bool) {
	if v6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1)
		return
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1)
}

// send sends one ping.
func (s *echoSocket) send(ping []byte, sequence uint64) error {
	if s.icmp == nil {
		_, err := sys.Write(s.fd, ping)
		return err
	}
	p := s.buf[:icmpHeaderBytes+len(ping)]
	copy(p[icmpHeaderBytes:], ping)
	s.icmp.finish(p, uint16(sequence))
	_, err := sys.Write(s.fd, p)
	return err
}

// next waits for at most wait for an event on the socket, which stays usable after any of them.
// What it returns is valid until the next call.
func (s *echoSocket) next(wait time.Duration) event {
	fds := [1]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	ts := unix.NsecToTimespec(max(wait, 0).Nanoseconds())
	if n, err := unix.Ppoll(fds[:], &ts, nil); n == 0 || err != nil {
		return event{} // nothing, or a signal: the caller looks at the clock anyway
	}
	// The error queue first: it has the time at which a ping left, which is always before its
	// answer arrived.
	if fds[0].Revents&unix.POLLERR != 0 {
		if n := s.queue.next(s.fd); n != nil {
			return s.noticed(n)
		}
	}
	n, errno := s.message.receive(s.fd, s.buf, 0)
	if errno == unix.EAGAIN {
		return event{} // wakeEvery has passed: what poll saw had a wrong checksum
	}
	if errno != 0 {
		return event{trouble: Trouble{Text: errno.Error(), Count: 1}}
	}
	e := event{payload: s.buf[:n]}
	if s.icmp != nil {
		var ok bool
		if e.payload, ok = s.icmp.payload(s.buf[:n]); !ok {
			return event{}
		}
	}
	s.message.controls(func(level, typ int32, data []byte) {
		// Both begin with the time as the kernel's software saw it, in the width of this machine.
		if level == unix.SOL_SOCKET && (typ == unix.SCM_TIMESTAMPING || typ == unix.SCM_TIMESTAMPNS) &&
			len(data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			e.received = (*unix.Timespec)(unsafe.Pointer(unsafe.SliceData(data))).Nano()
		}
	})
	return e
}

// noticed turns an entry of the error queue into its meaning for a pinger.
func (s *echoSocket) noticed(n *notice) event {
	switch {
	case n.sentAt != 0:
		return event{sent: n.sentAt, id: n.id}
	case n.errno == unix.ENOMSG, n.errno == 0:
		return event{} // a timestamp without a time
	// A raw socket also receives the echoes of every other program; the identifier is in the
	// returned packet.
	case s.icmp != nil && s.icmp.kind == sys.EchoRaw && !n.local && n.bytes >= icmpHeaderBytes &&
		binary.BigEndian.Uint16(s.queue.payload[4:]) != s.icmp.id:
		return event{}
	}
	e := event{trouble: Trouble{Text: n.text(), By: n.by, MTU: n.mtu, Count: 1}, tooBig: n.errno == unix.EMSGSIZE,
		local: n.local}
	// The ICMP message returned the beginning of our packet, from behind its IP header on.
	head := 0
	if s.icmp != nil {
		head = icmpHeaderBytes
	}
	if n.bytes > head {
		e.payload = s.queue.payload[head:n.bytes]
	}
	return e
}

// dontFragment makes the kernel send every packet in one piece, independent of what it knows about
// the path, and refuse only those that are too big for the interface (EMSGSIZE).
func (s *echoSocket) dontFragment() error {
	if err := s.discover(unix.IP_PMTUDISC_PROBE, unix.IPV6_PMTUDISC_PROBE); err != nil {
		return fmt.Errorf("forbid fragments: %w", err)
	}
	return nil
}

// discover sets how packets treat the path MTU, ip(7) and ipv6(7).
func (s *echoSocket) discover(v4, v6 int) error {
	if s.v6 {
		return unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, v6)
	}
	return unix.SetsockoptInt(s.fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, v4)
}

// text returns what an ICMP error means, in the words of RFC 792, RFC 1812 §5.2.7 and RFC 4443.
func (n *notice) text() string {
	switch {
	case n.errno == unix.EMSGSIZE && n.local:
		return "packet too big for the interface"
	case n.errno == unix.EMSGSIZE && n.v6:
		return "packet too big"
	case n.errno == unix.EMSGSIZE:
		return "fragmentation needed"
	case n.local:
		return n.errno.Error()
	case !n.v6 && n.typ == 11, n.v6 && n.typ == 3:
		return "time exceeded"
	case !n.v6 && n.typ == 3:
		switch n.code {
		case 0, 6, 11:
			return "network unreachable"
		case 1, 7, 8, 12:
			return "host unreachable"
		case 2:
			return "protocol unreachable"
		case 3:
			return "port unreachable"
		case 9, 10, 13:
			return "administratively prohibited"
		}
	case n.v6 && n.typ == 1:
		switch n.code {
		case 0:
			return "no route to destination"
		case 1, 5, 6:
			return "administratively prohibited"
		case 3:
			return "address unreachable"
		case 4:
			return "port unreachable"
		}
	}
	return n.errno.Error()
}

func (s *echoSocket) close() {
	if s.fd >= 0 {
		_ = sys.Close(s.fd) // a datagram socket holds nothing back
		s.fd = -1
	}
}
