package sys

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// DatagramOptions are socket options of a UDP socket that must be set before it is bound or
// connected. The zero value keeps the host's defaults.
type DatagramOptions struct {
	// Shared allows several sockets on one local port (SO_REUSEADDR and SO_REUSEPORT). The kernel
	// delivers a datagram to the socket that is connected to its sender, otherwise to the one that
	// is not connected. Every socket of the port must have set one of the two options.
	Shared bool
}

// OpenDatagram opens a blocking UDP socket, bound to local unless that is zero and connected to
// remote unless that is zero. At least one of them must be given. Use [Read], [Write], [Poll],
// [Outbox] and [Inbox]; end with [Close].
//
// Between bind and connect a shared socket would receive datagrams of other senders to the port.
// Until it is connected it therefore drops all datagrams except those of remote (a classic BPF
// filter). Other senders' datagrams of these few microseconds are lost, as on a path.
func OpenDatagram(local, remote netip.AddrPort, o DatagramOptions) (fd int, err error) {
	family := unix.AF_INET
	if a := local.Addr(); a.IsValid() && !a.Unmap().Is4() || remote.IsValid() && !remote.Addr().Unmap().Is4() {
		family = unix.AF_INET6
	}
	if fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, fmt.Errorf("open udp socket: %w", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd) // nothing was sent on it, and the first error explains
			fd = -1
		}
	}()
	// With these options set, the kernel may choose a port that another socket with them already has.
	// A port of the kernel's choice is therefore shared only after it was chosen.
	chosen := local.IsValid() && local.Port() == 0
	if o.Shared && !chosen {
		if err := sharePort(fd); err != nil {
			return fd, err
		}
	}
	guarded := o.Shared && local.IsValid() && remote.IsValid()
	if guarded {
		if err := acceptOnly(fd, remote); err != nil {
			return fd, err
		}
	}
	if local.IsValid() {
		// In an IPv6 socket an unspecified IPv4 address would be a mapped one, which excludes IPv6
		// peers.
		if err := unix.Bind(fd, sockaddrIn(family, local)); err != nil {
			return fd, fmt.Errorf("bind udp socket to %s: %w", local, err)
		}
	}
	if o.Shared && chosen {
		if err := sharePort(fd); err != nil {
			return fd, err
		}
	}
	if remote.IsValid() {
		if err := unix.Connect(fd, sockaddr(remote)); err != nil {
			return fd, fmt.Errorf("connect udp socket to %s: %w", remote, err)
		}
	}
	if guarded {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0); err != nil {
			return fd, fmt.Errorf("detach filter: %w", err)
		}
	}
	return fd, nil
}

// sharePort allows other sockets on the port of this one. Two sockets share a port if both have the
// same of the two options, and a server may have chosen either.
func sharePort(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("set so_reuseaddr: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return fmt.Errorf("set so_reuseport: %w", err)
	}
	return nil
}

// sockaddrIn is sockaddr for a socket of a given family, in which the unspecified address of the
// other family means any.
func sockaddrIn(family int, a netip.AddrPort) unix.Sockaddr {
	if family == unix.AF_INET6 && a.Addr() == netip.IPv4Unspecified() {
		return &unix.SockaddrInet6{Port: int(a.Port())}
	}
	return sockaddr(a)
}

// TakeOverDatagram is [TakeOver] for a UDP connection.
func TakeOverDatagram(conn *net.UDPConn) (fd int, err error) { return takeOver(conn) }

// ShareLocalPort sets SO_REUSEADDR, see [DatagramOptions]. It is for net.ListenConfig.Control.
func ShareLocalPort(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("set so_reuseaddr: %w", err)
	}
	return nil
}

// LocalAddress returns the address that a socket is bound to (getsockname(2)).
func LocalAddress(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("read local address: %w", err)
	}
	return addrPort(sa), nil
}

// RemoteAddress returns the address that a socket is connected to (getpeername(2)).
func RemoteAddress(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getpeername(fd)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("read remote address: %w", err)
	}
	return addrPort(sa), nil
}

// isIPv6 reports whether a socket is of the family IPv6; most options of IP exist once per family.
func isIPv6(fd int) (bool, error) {
	v, err := sockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN, "so_domain")
	return v == unix.AF_INET6, err
}

// setIP sets an option of IP, and on an IPv6 socket also its IPv4 counterpart: such a socket may
// exchange IPv4 through mapped addresses, for which the IPv4 option counts.
func setIP(fd, option4, option6, value int, name string) error {
	v6, err := isIPv6(fd)
	if err != nil {
		return err
	}
	if v6 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, option6, value); err != nil {
			return fmt.Errorf("set ipv6_%s to %d: %w", name, value, err)
		}
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, option4, value); err != nil && !v6 {
		return fmt.Errorf("set ip_%s to %d: %w", name, value, err)
	}
	return nil
}

// SetTOS sets the IPv4 TOS byte and the IPv6 traffic class, 0 to 255. The upper six bits are the
// code point of RFC 2474.
func SetTOS(fd, tos int) error { return setIP(fd, unix.IP_TOS, unix.IPV6_TCLASS, tos, "tos") }

// Fragmentation selects the treatment of a datagram that does not fit the path.
type Fragmentation int

// The modes of fragmentation.
const (
	FragmentAsNeeded Fragmentation = iota // IP_PMTUDISC_DONT: the sender and every router (IPv4) may fragment
	// IP_PMTUDISC_DO: don't-fragment is set; a datagram known to be too long fails with EMSGSIZE
	FragmentNever
	// IP_PMTUDISC_PROBE: don't-fragment is set, but the learned path MTU is ignored
	FragmentProbe
)

// SetFragmentation sets IP_MTU_DISCOVER, see ip(7).
func SetFragmentation(fd int, f Fragmentation) error {
	// The numbers of IPv6 are the same (include/uapi/linux/in6.h).
	mode := map[Fragmentation]int{
		FragmentAsNeeded: unix.IP_PMTUDISC_DONT, FragmentNever: unix.IP_PMTUDISC_DO,
		FragmentProbe: unix.IP_PMTUDISC_PROBE,
	}[f]
	return setIP(fd, unix.IP_MTU_DISCOVER, unix.IPV6_MTU_DISCOVER, mode, "mtu_discover")
}

// RefreshRoute connects a socket to its present remote address again. Setting an option of IP makes
// the kernel forget the route of the socket until the next datagram, and with it the result of
// [PathMTU].
func RefreshRoute(fd int) error {
	remote, err := RemoteAddress(fd)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, sockaddr(remote)); err != nil {
		return fmt.Errorf("connect udp socket to %s: %w", remote, err)
	}
	return nil
}

// PathMTU returns IP_MTU: the kernel's path MTU of a connected socket, in bytes of whole IP
// packets.
func PathMTU(fd int) (int, error) {
	remote, err := RemoteAddress(fd)
	if err != nil {
		return 0, err
	}
	if remote.Addr().Is4() {
		return sockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU, "ip_mtu")
	}
	return sockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU, "ipv6_mtu")
}

// SetReceiveErrors requests more error reports (IP_RECVERR). If the qdisc drops a datagram, the
// sending call fails with ENOBUFS (without the option it succeeds, and only SndbufErrors counts the
// drop). ICMP errors are queued for [DrainErrors].
func SetReceiveErrors(fd int) error {
	return setIP(fd, unix.IP_RECVERR, unix.IPV6_RECVERR, 1, "recverr")
}

// SetPacingRate limits the socket's sending rate, in bytes of whole frames per second
// (SO_MAX_PACING_RATE). For datagrams only the fq qdisc enforces it; without one on the path the
// call succeeds without effect.
func SetPacingRate(fd int, bytesPerSecond uint64) error {
	if err := unix.SetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, bytesPerSecond); err != nil {
		return fmt.Errorf("set so_max_pacing_rate to %d bytes/s: %w", bytesPerSecond, err)
	}
	return nil
}

// SetBusyPoll lets a receiving call poll the NIC's queue for d before it sleeps (SO_BUSY_POLL,
// Linux 3.11). A longer time than the host's own setting needs CAP_NET_ADMIN: fs.ErrPermission. It
// has an effect only with NIC drivers that support polling.
func SetBusyPoll(fd int, d time.Duration) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL, int(d.Microseconds())); err != nil {
		return fmt.Errorf("set so_busy_poll to %v: %w", d, err)
	}
	return nil
}

// SetReceiveDrops lets an [Inbox] report with each message how many datagrams the socket had
// dropped before it (SO_RXQ_OVFL, Linux 2.6.33).
func SetReceiveDrops(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1); err != nil {
		return fmt.Errorf("set so_rxq_ovfl: %w", err)
	}
	return nil
}

// SetReceiveTimes lets an [Inbox] report the arrival time of each message, or stops that
// (SO_TIMESTAMPNS). While any socket of the host has it on, every packet that the host receives
// costs a clock reading on the receiving CPU.
func SetReceiveTimes(fd int, on bool) error {
	v := 0
	if on {
		v = 1
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, v); err != nil {
		return fmt.Errorf("set so_timestampns: %w", err)
	}
	return nil
}

// SetReceiveMerged lets the kernel return several datagrams of one sender and size as one message
// (UDP_GRO, Linux 5.0), which [Inbox.Message] describes.
func SetReceiveMerged(fd int, on bool) error {
	v := 0
	if on {
		v = 1
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, v); err != nil {
		if errors.Is(err, unix.ENOPROTOOPT) {
			return &UnsupportedError{Feature: "udp gro", Since: "Linux 5.0"}
		}
		return fmt.Errorf("set udp_gro: %w", err)
	}
	return nil
}

// ProbeSegments checks whether the kernel supports UDP_SEGMENT (Linux 4.18) on this socket, without
// changing anything.
func ProbeSegments(fd int) error {
	_, err := unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOPROTOOPT):
		return &UnsupportedError{Feature: "udp gso", Since: "Linux 4.18"}
	}
	return fmt.Errorf("read udp_segment: %w", err)
}

// Indices of struct sk_meminfo, include/uapi/linux/sock_diag.h.
const (
	memInfoDrops = 8
	memInfoWords = 9
)

// SocketDrops returns how many messages the socket has dropped since it was opened, because its
// buffer was full or a checksum wrong (SO_MEMINFO, Linux 4.12). It is exact at any time, even after
// the last message, unlike SO_RXQ_OVFL. It wraps at 2³². A merged message (UDP_GRO) counts as one.
func SocketDrops(fd int) (uint32, error) {
	var words [memInfoWords]uint32
	n := uint32(unsafe.Sizeof(words))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&words)), uintptr(unsafe.Pointer(&n)), 0)
	switch {
	case errno == unix.ENOPROTOOPT, errno == 0 && n < uint32(unsafe.Sizeof(words)):
		return 0, &UnsupportedError{Feature: "drops of a socket", Since: "Linux 4.12"}
	case errno != 0:
		return 0, fmt.Errorf("read so_meminfo: %w", errno)
	}
	return words[memInfoDrops], nil
}

// DrainErrors empties the queue of errors that [SetReceiveErrors] fills, and returns how many of
// them the network sent (ICMP). Queued errors occupy the receive buffer. DrainErrors neither blocks
// nor allocates.
func DrainErrors(fd int, scratch []byte) (fromNetwork int) {
	// Limited, because a flood of ICMP errors can fill the queue as fast as it is emptied.
	for range maxQueuedErrors {
		h := unix.Msghdr{Control: &scratch[0]}
		h.SetControllen(len(scratch))
		n, _, errno := unix.Syscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&h)),
			unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || int(n) < 0 {
			return fromNetwork
		}
		used := scratch[:min(int(h.Controllen), len(scratch))]
		for at := 0; at+unix.SizeofCmsghdr <= len(used); {
			c := (*unix.Cmsghdr)(unsafe.Pointer(&used[at]))
			if int(c.Len) < unix.SizeofCmsghdr || at+int(c.Len) > len(used) {
				break
			}
			isError := c.Level == unix.IPPROTO_IP && c.Type == unix.IP_RECVERR || c.Level == unix.IPPROTO_IPV6 &&
				c.Type == unix.IPV6_RECVERR
			if isError && at+unix.CmsgLen(0)+int(unsafe.Sizeof(unix.SockExtendedErr{})) <= len(used) {
				e := (*unix.SockExtendedErr)(unsafe.Pointer(&used[at+unix.CmsgLen(0)]))
				if e.Origin == unix.SO_EE_ORIGIN_ICMP || e.Origin == unix.SO_EE_ORIGIN_ICMP6 {
					fromNetwork++
				}
			}
			at += unix.CmsgSpace(int(c.Len) - unix.CmsgLen(0))
		}
	}
	return fromNetwork
}

// maxQueuedErrors limits one call of DrainErrors.
const maxQueuedErrors = 1024

// ErrorScratchBytes is the room that [DrainErrors] needs for one error: struct sock_extended_err
// with an IPv6 address, and a timestamp.
const ErrorScratchBytes = 256

// SleepUntil sleeps until the monotonic clock (see [Monotonic]) reads at, or until a signal
// arrives. With [SetExactTimers] it wakes up within some tens of microseconds.
func SleepUntil(at time.Duration) {
	ts := unix.NsecToTimespec(at.Nanoseconds())
	// The only possible error is EINTR; callers read the clock anyway.
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil)
}

// SetExactTimers sets the timer slack of the calling thread to a nanosecond (50 µs by default,
// prctl(2)). It lasts as long as the thread, so call it on a locked thread that ends with its
// goroutine.
func SetExactTimers() error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set timer slack: %w", err)
	}
	return nil
}

// acceptOnly attaches a classic BPF program that accepts only datagrams of remote. A filter of a
// UDP socket starts at the UDP header; it reaches the IP header through SKF_NET_OFF
// (include/uapi/linux/filter.h).
func acceptOnly(fd int, remote netip.AddrPort) error {
	const (
		load32 = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		load16 = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		give   = unix.BPF_RET | unix.BPF_K

		network = 0xfff00000 // SKF_NET_OFF, −0x100000
	)
	var address []byte
	at := uint32(network + 12) // source address of IPv4, RFC 791
	if ip := remote.Addr().Unmap(); ip.Is4() {
		a := ip.As4()
		address = a[:]
	} else {
		a := ip.As16()
		address = a[:]
		at = network + 8 // of IPv6, RFC 8200
	}
	program := []unix.SockFilter{{Code: load16, K: 0}, {Code: equal, K: uint32(remote.Port())}}
	for i := 0; i < len(address); i += 4 {
		word := uint32(address[i])<<24 | uint32(address[i+1])<<16 | uint32(address[i+2])<<8 | uint32(address[i+3])
		program = append(program, unix.SockFilter{Code: load32, K: at + uint32(i)},
			unix.SockFilter{Code: equal, K: word})
	}
	program = append(program, unix.SockFilter{Code: give, K: 0xffffffff}, unix.SockFilter{Code: give, K: 0})
	for i := range program {
		if program[i].Code == equal {
			program[i].Jf = uint8(len(program) - 2 - i) // to the last instruction, which drops
		}
	}
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &p); err != nil {
		return fmt.Errorf("attach filter: %w", err)
	}
	return nil
}
