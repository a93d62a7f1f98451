package echo

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// serverBatch is how many packets one system call receives and one sends back. Pings arrive singly;
// a batch fills up when several tests ping fast, and then halves the cost per packet.
const serverBatch = 16

// multiMessage is struct mmsghdr.
type multiMessage struct {
	header unix.Msghdr
	bytes  uint32
}

// serverSocket is the bare descriptor of a Server and the memory of its thread.
type serverSocket struct {
	fd        int
	v6        bool
	local     netip.AddrPort
	stopping  atomic.Bool
	discovery [2]int // IP_MTU_DISCOVER and IPV6_MTU_DISCOVER as the host sets them

	in, out  [serverBatch]multiMessage
	messages [serverBatch]message
	buffers  [serverBatch][]byte
	queue    errorQueue
}

// prepareServer sets the options that a socket must have before it is bound.
func prepareServer(network, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		set := func(name string, level, option int) {
			if err := unix.SetsockoptInt(int(fd), level, option, 1); err != nil && failed == nil {
				failed = fmt.Errorf("set %s: %w", name, err)
			}
		}
		// Only sockets of the same user may join (Linux 3.9), so no other user can take packets
		// away.
		set("so_reuseport", unix.SOL_SOCKET, unix.SO_REUSEPORT)
		if network == "udp6" {
			// It reports IPv4 packets as well, with mapped addresses.
			set("ipv6_recvpktinfo", unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO)
			set("ipv6_recverr", unix.IPPROTO_IPV6, unix.IPV6_RECVERR)
		} else {
			set("ip_pktinfo", unix.IPPROTO_IP, unix.IP_PKTINFO)
		}
		set("ip_recverr", unix.IPPROTO_IP, unix.IP_RECVERR)
	})
	if err != nil {
		return err
	}
	return failed
}

// newServerSocket takes a socket away from package net and closes package net's side, also when it
// fails.
func newServerSocket(conn *net.UDPConn, local netip.AddrPort) (*serverSocket, error) {
	fd, err := takeOver(conn)
	if err != nil {
		return nil, err
	}
	s := &serverSocket{fd: fd, v6: !local.Addr().Is4(), local: local}
	all := make([]byte, serverBatch*maxDatagram) // the kernel never allocates pages that no packet reaches
	for i := range s.buffers {
		s.buffers[i], all = all[:maxDatagram:maxDatagram], all[maxDatagram:]
	}
	// An unreadable value is taken for the kernel's default.
	s.discovery = [2]int{unix.IP_PMTUDISC_WANT, unix.IPV6_PMTUDISC_WANT}
	if v, err := unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER); err == nil {
		s.discovery[0] = v
	}
	if v, err := unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER); s.v6 && err == nil {
		s.discovery[1] = v
	}
	return s, nil
}

// takeOver makes a blocking descriptor of our own out of a socket of package net, as sys.TakeOver
// does for TCP.
func takeOver(conn *net.UDPConn) (int, error) {
	// the duplicate keeps the socket; the original must leave the runtime's epoll set
	defer func() { _ = conn.Close() }()
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, fmt.Errorf("take over socket: %w", err)
	}
	fd := -1
	var dup error
	if err := raw.Control(func(orig uintptr) {
		// At least 3, away from the standard streams.
		fd, dup = unix.FcntlInt(orig, unix.F_DUPFD_CLOEXEC, 3)
	}); err != nil {
		return -1, fmt.Errorf("take over socket: %w", err)
	}
	if dup != nil {
		return -1, fmt.Errorf("duplicate descriptor: %w", dup)
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		_ = unix.Close(fd) // nothing was sent on it
		return -1, fmt.Errorf("make descriptor blocking: %w", err)
	}
	return fd, nil
}

// stop makes serve return.
func (s *serverSocket) stop() error {
	s.stopping.Store(true)
	// An unconnected socket answers ENOTCONN, and still wakes a thread that sleeps in it
	// (inet_shutdown, since Linux 2.4); later calls return at once.
	if err := unix.Shutdown(s.fd, unix.SHUT_RDWR); err != nil && err != unix.ENOTCONN && err != unix.EBADF {
		return fmt.Errorf("wake udp echo: %w", err)
	}
	return nil
}

// close gives the descriptor up, once serve has returned.
func (s *serverSocket) close() {
	if s.fd >= 0 {
		_ = unix.Close(s.fd) // a datagram socket holds nothing back
		s.fd = -1
	}
}

// serve answers packets until stop. It keeps a thread of its own, which sleeps in recvmmsg(2) and
// which only the kernel wakes: an answer does not wait for the Go scheduler, whose delay would look
// like the path's.
func (s *serverSocket) serve(server *Server) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	for !s.stopping.Load() {
		n, errno := s.receive()
		switch {
		case s.stopping.Load():
			return
		case errno == unix.EINTR:
		case errno != 0:
			// An ICMP error about an answer is returned here once and lies in the error queue. Any
			// other lasting error must not make this thread spin.
			if !s.notices(server) {
				time.Sleep(time.Millisecond)
			}
		default:
			s.answer(server, n)
		}
	}
}

// receive waits for at least one packet and returns how many arrived.
func (s *serverSocket) receive() (int, unix.Errno) {
	// All of them anew, including those that the last call left untouched: finding those would cost
	// as much.
	for i := range s.in {
		s.messages[i].forReceive(s.buffers[i])
		s.in[i] = multiMessage{header: s.messages[i].header}
	}
	// MSG_WAITFORONE: sleep for the first packet, and take what else has arrived.
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.in)), serverBatch,
		unix.MSG_WAITFORONE, 0, 0)
	return int(n), errno
}

// answer answers the first n packets.
func (s *serverSocket) answer(server *Server, n int) {
	now := time.Now()
	out := 0
	for i := range n {
		m := &s.messages[i]
		m.header = s.in[i].header // with the lengths that the kernel wrote
		p := s.buffers[i][:s.in[i].bytes]
		asked := netip.AddrPortFrom(m.answerFromAsked(s.local.Addr()), s.local.Port())
		r := server.answer(p, m.from(), asked, now)
		if r.bytes == 0 {
			continue
		}
		if r.probe {
			s.probe(server, m, p, r.bytes)
			continue
		}
		// The answer is the packet itself with its own control messages: buffer, address and
		// IP_PKTINFO are where recvmmsg put them.
		m.iov.SetLen(r.bytes)
		s.out[out] = multiMessage{header: m.header}
		out++
	}
	s.send(out)
}

// answerFromAsked makes m an answer that leaves from the address that the packet in m was sent to,
// and returns that address; fallback when the kernel did not report it. On a host with several
// addresses the routes would often choose another one, which a connected socket at the near end
// does not accept.
func (m *message) answerFromAsked(fallback netip.Addr) netip.Addr {
	asked := fallback
	m.controls(func(level, typ int32, data []byte) {
		switch {
		// Without the interface, so that the answer follows the routes, as every other packet of
		// this host does. Answers to link-local addresses have theirs in the scope of the
		// destination.
		case level == unix.SOL_IP && typ == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			info := (*unix.Inet4Pktinfo)(unsafe.Pointer(unsafe.SliceData(data)))
			info.Ifindex = 0
			asked = netip.AddrFrom4(info.Spec_dst)
		case level == unix.SOL_IPV6 && typ == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
			info := (*unix.Inet6Pktinfo)(unsafe.Pointer(unsafe.SliceData(data)))
			info.Ifindex = 0
			asked = netip.AddrFrom16(info.Addr).Unmap()
		}
	})
	return asked
}

// send sends the first n answers. One that cannot be sent is a lost packet, which the near end
// counts.
func (s *serverSocket) send(n int) {
	again := false
	for at := 0; at < n; {
		sent, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.out[at])),
			uintptr(n-at), 0, 0, 0)
		switch {
		case errno == 0 && sent > 0:
			at += int(sent)
			again = false
		case errno == unix.EINTR:
		case !again: // the network may report an earlier packet by this error, once
			again = true
		default:
			at++
			again = false
		}
	}
}

// probe sends one unfragmentable packet of size bytes, or reports that it is too big for the
// interface.
func (s *serverSocket) probe(server *Server, m *message, request []byte, size int) {
	p := server.padding[:size]
	copy(p, request[:probeHeaderBytes])
	m.iov.Base = unsafe.SliceData(p)
	m.iov.SetLen(size)
	// Only this thread sends on the socket, so the option holds for this packet alone. If the
	// option is refused, the near end could not distinguish fragments from a wide path, so nothing
	// is sent.
	if err := s.discover(unix.IP_PMTUDISC_PROBE, unix.IPV6_PMTUDISC_PROBE); err != nil {
		return
	}
	errno := m.send(s.fd)
	if errno != 0 && errno != unix.EMSGSIZE { // the network reports an earlier packet by it, once
		errno = m.send(s.fd)
	}
	_ = s.discover(s.discovery[0], s.discovery[1]) // these values were the socket's own before
	if errno != unix.EMSGSIZE {
		return // sent, or lost
	}
	// A refusal by this host is in the error queue with the interface's MTU (ip_local_error),
	// behind earlier reports of the network.
	mtu := 0
	for n := s.queue.next(s.fd); n != nil; n = s.queue.next(s.fd) {
		s.note(server, n)
		if n.local && n.mtu > 0 {
			mtu = n.mtu
		}
	}
	putTooBig(p, mtu)
	m.iov.SetLen(probeHeaderBytes)
	_ = m.send(s.fd) // lost like any other
}

// discover sets how the next packets treat the path MTU, ip(7) and ipv6(7).
func (s *serverSocket) discover(v4, v6 int) error {
	if s.v6 {
		if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, v6); err != nil {
			return err
		}
	}
	return unix.SetsockoptInt(s.fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, v4)
}

// notices reads the error queue empty and reports whether anything was in it.
func (s *serverSocket) notices(server *Server) bool {
	found := false
	for n := s.queue.next(s.fd); n != nil; n = s.queue.next(s.fd) {
		s.note(server, n)
		found = true
	}
	return found
}

// note records the MTU of a hop that a packet was too big for.
func (s *serverSocket) note(server *Server, n *notice) {
	if n.errno == unix.EMSGSIZE && !n.local {
		server.tooBig(n.to.Addr(), n.mtu)
	}
}
