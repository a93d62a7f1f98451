package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	batch = 32 // frames per system call

	// enoughBuffer is the receive buffer below which the ring is better. It holds about thirty
	// super-frames, or a thousand frames of 1500 bytes with the kernel's bookkeeping: 10 ms at 1
	// Gb/s, longer than a busy scheduler delays a thread.
	enoughBuffer = 4 << 20
	wantBuffer   = 32 << 20
)

// reader reads the frames that have arrived at one socket.
type reader interface {
	// read calls each with the header and content of every frame that has arrived, at most a batch;
	// the buffer is valid during the call. It returns how many frames arrived and how many of them
	// the kernel cut.
	read(each func(buf []byte)) (n, cut int, err error)
	close() error
}

// openSocket opens a packet socket on one interface with PACKET_VNET_HDR.
func openSocket(name string, opt Options) (fd int, r reader, err error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return -1, nil, fmt.Errorf("open packet socket on %s: %w", name, err)
	}
	// Protocol zero: no frame arrives before the socket is bound, and none from other interfaces.
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, nil, fmt.Errorf("open packet socket on %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd) // the first error counts
		}
	}()
	if err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return -1, nil, fmt.Errorf("ask for segmentation headers on %s: %w", name, err)
	}
	// Both are refinements. Without the first (4.20) the socket still skips the frames it sent
	// itself; without the second (3.14) frames pass the interface's qdisc.
	_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1)
	raise(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF)

	if raise(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF); opt.ForceRing || buffer(fd) < enoughBuffer {
		r, err = newRing(fd)
	} else {
		r = newMultiReader(fd)
	}
	if err != nil {
		return -1, nil, fmt.Errorf("open packet socket on %s: %w", name, err)
	}
	all := uint16(unix.ETH_P_ALL)
	// Network byte order. ETH_P_ALL also taps outgoing frames, which PACKET_IGNORE_OUTGOING above
	// excludes.
	addr := &unix.SockaddrLinklayer{Protocol: all<<8 | all>>8, Ifindex: ifi.Index}
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 { // htons on a big-endian machine
		addr.Protocol = all
	}
	if err = unix.Bind(fd, addr); err != nil {
		_ = r.close()
		return -1, nil, fmt.Errorf("bind packet socket to %s: %w", name, err)
	}
	return fd, r, nil
}

// raise makes a socket buffer as large as the kernel allows: wantBuffer with CAP_NET_ADMIN in the
// first user namespace, otherwise at most net.core.rmem_max or wmem_max.
func raise(fd, force, plain int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, wantBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, wantBuffer) // never fails: the kernel lowers the value
	}
}

// buffer returns the size of the socket's receive buffer, in bytes.
func buffer(fd int) int {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return 0
	}
	return n
}

// overruns reads and clears the kernel's count of frames that it dropped because the socket was
// full.
func overruns(fd int) uint64 {
	s, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0
	}
	return uint64(s.Drops)
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// messages is a batch of message headers with one vector each, kept to avoid allocations per call.
type messages struct {
	msgs [batch]mmsghdr
	vecs [batch]unix.Iovec
}

func newMessages() *messages {
	m := new(messages)
	for i := range m.msgs {
		m.msgs[i].hdr.Iov = &m.vecs[i]
		m.msgs[i].hdr.SetIovlen(1)
	}
	return m
}

func (m *messages) point(i int, buf []byte) {
	m.vecs[i].Base = &buf[0]
	m.vecs[i].SetLen(len(buf))
}

// multiReader reads a batch of frames per recvmmsg call into its own buffers.
type multiReader struct {
	fd   int
	m    *messages
	bufs [batch][]byte
}

func newMultiReader(fd int) *multiReader {
	r := &multiReader{fd: fd, m: newMessages()}
	for i := range r.bufs {
		r.bufs[i] = make([]byte, maxBuffer)
		r.m.point(i, r.bufs[i])
	}
	return r
}

func (r *multiReader) read(each func([]byte)) (n, cut int, err error) {
	got, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(r.fd), uintptr(unsafe.Pointer(&r.m.msgs[0])), batch,
		unix.MSG_DONTWAIT, 0, 0)
	switch errno {
	case 0:
	case unix.EAGAIN, unix.EINTR:
		return 0, 0, nil
	case unix.EINVAL:
		// The header has no number for this kind of segmentation; the kernel has discarded the
		// frame.
		return 0, 1, nil
	default:
		return 0, 0, fmt.Errorf("receive frames: %w", errno)
	}
	for i := range int(got) {
		msg := &r.m.msgs[i]
		// Longer than maxBuffer; a part of a frame is not forwarded.
		if msg.hdr.Flags&unix.MSG_TRUNC != 0 {
			cut++
			continue
		}
		each(r.bufs[i][:msg.len])
	}
	return int(got), cut, nil
}

func (r *multiReader) close() error { return nil }

// writer sends a batch of frames per sendmmsg call.
type writer struct {
	fd int
	m  *messages
}

// write sends the buffers and returns how many of them the kernel refused. It waits at most one
// millisecond: a receiver that takes no frames loses them, as a NIC with a full ring does.
func (w *writer) write(bufs [][]byte) (refused int, err error) {
	for i, b := range bufs {
		w.m.point(i, b)
	}
	for done := 0; done < len(bufs); {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(w.fd), uintptr(unsafe.Pointer(&w.m.msgs[done])),
			uintptr(len(bufs)-done), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == 0:
			done += int(n)
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLOUT}}
			if ready, _ := unix.Poll(fds, 1); ready == 0 {
				return refused + len(bufs) - done, nil
			}
		case errors.Is(errno, unix.ENOBUFS), errors.Is(errno, unix.EINVAL), errors.Is(errno, unix.EMSGSIZE):
			// ENOBUFS: the receiver's backlog is full. EINVAL, EMSGSIZE: the interface does not
			// accept such a frame. Only this frame is lost.
			refused++
			done++
		default: // ENETDOWN, ENXIO: the interface is down or gone
			return refused + len(bufs) - done, fmt.Errorf("send frames: %w", errno)
		}
	}
	return refused, nil
}
