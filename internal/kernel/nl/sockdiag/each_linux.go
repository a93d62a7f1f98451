package sockdiag

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	sockDiagByFamily = 20       // SOCK_DIAG_BY_FAMILY
	sizeHeader       = 16       // struct nlmsghdr
	bufferBytes      = 32 << 10 // the kernel's largest answer, if the buffer has room for it
	silence          = 2 * time.Second
)

// Each lists sockets in the network namespace of the calling thread and passes each to visit, until
// visit returns false. The socket is valid until visit returns. The errors are ErrLimit,
// errors.ErrUnsupported if the kernel has no sock_diag, and the kernel's own.
func Each(q Query, visit func(*Socket) bool) error {
	d, err := open()
	if err == nil {
		defer unix.Close(d.fd)
		for _, family := range []byte{familyIPv4, familyIPv6} {
			var more bool
			if more, err = d.dump(q, family, visit); err != nil || !more {
				break
			}
		}
	}
	switch {
	case err == nil:
		return nil
	// ENOENT: the kernel has no handler for this family and protocol. The others: the kernel, or a
	// sandbox, lacks this netlink family.
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EAFNOSUPPORT):
		return fmt.Errorf("list %s sockets: %w: the kernel has no sock_diag for them: %w", q.Protocol,
			errors.ErrUnsupported, err)
	}
	return fmt.Errorf("list %s sockets: %w", q.Protocol, err)
}

// dumper is one netlink socket. It does not use the library of package nl, because that library
// collects a whole answer before it returns any of it.
type dumper struct {
	fd       int
	seq      uint32
	deadline time.Time // zero: not started, or no limit
	buffer   []byte
	names    names
	socket   Socket // reused: otherwise a host with a hundred thousand sockets would produce as many allocations
}

func open() (*dumper, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	return &dumper{fd: fd, buffer: make([]byte, bufferBytes), names: make(names)}, nil
}

// dump lists the sockets of one family. more is false if visit has stopped the listing; closing the
// netlink socket then discards the rest of the answer.
func (d *dumper) dump(q Query, family byte, visit func(*Socket) bool) (more bool, err error) {
	d.seq++
	request := make([]byte, sizeHeader, sizeHeader+sizeRequest)
	request = append(request, q.request(family)...)
	binary.NativeEndian.PutUint32(request, uint32(len(request)))
	binary.NativeEndian.PutUint16(request[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	binary.NativeEndian.PutUint32(request[8:], d.seq)
	if err := unix.Sendto(d.fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, err
	}
	// Both families share the time.
	if q.Limit > 0 && d.deadline.IsZero() {
		d.deadline = time.Now().Add(q.Limit)
	}
	for {
		b, err := d.receive()
		if err != nil {
			return false, err
		}
		for len(b) > 0 {
			var m message
			if m, b, err = cut(b); err != nil {
				return false, err
			}
			switch {
			// A message of an earlier request. A completed request leaves none, and after an
			// incomplete one the socket is not used again.
			case m.seq != d.seq:
			// A dump that fails midway reports that in its last message.
			case m.kind == unix.NLMSG_DONE:
				return true, m.errno()
			case m.kind == unix.NLMSG_ERROR:
				return false, m.errno()
			case m.kind == sockDiagByFamily:
				if err := d.socket.decode(m.body, d.names); err != nil {
					return false, err
				}
				if !visit(&d.socket) {
					return false, nil
				}
			}
		}
	}
}

// receive waits for the next part of an answer.
func (d *dumper) receive() ([]byte, error) {
	wait := silence
	if !d.deadline.IsZero() {
		wait = time.Until(d.deadline)
		if wait <= 0 {
			return nil, ErrLimit
		}
	}
	// The kernel produces the next part during the receiving call, so the wait is its working time.
	// A zero timeout would mean no limit.
	limit := unix.NsecToTimeval(max(wait, time.Millisecond).Nanoseconds())
	if err := unix.SetsockoptTimeval(d.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return nil, err
	}
	for {
		n, from, err := unix.Recvfrom(d.fd, d.buffer, unix.MSG_TRUNC)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return nil, ErrLimit
		case err != nil:
			return nil, err
		case n > len(d.buffer):
			return nil, fmt.Errorf("answer of %d bytes: %w", n, errShort)
		}
		// Other programs may send to this socket too; the kernel has port 0.
		if kernel, ok := from.(*unix.SockaddrNetlink); ok && kernel.Pid != 0 {
			continue
		}
		return d.buffer[:n], nil
	}
}

// message is one message of netlink without its header.
type message struct {
	kind uint16
	seq  uint32
	body []byte
}

// cut splits the first message off b.
func cut(b []byte) (message, []byte, error) {
	if len(b) < sizeHeader {
		return message{}, nil, errShort
	}
	size := int(u32(b))
	if size < sizeHeader || size > len(b) {
		return message{}, nil, fmt.Errorf("message of %d bytes in %d: %w", size, len(b), errShort)
	}
	m := message{kind: binary.NativeEndian.Uint16(b[4:]), seq: u32(b[8:]), body: b[sizeHeader:size]}
	return m, b[min((size+3)&^3, len(b)):], nil
}

// errno returns the kernel's result at the end of a dump or instead of one: a negative errno, or
// zero for success.
func (m message) errno() error {
	if len(m.body) < 4 {
		return nil
	}
	if n := int32(u32(m.body)); n < 0 {
		return unix.Errno(-n)
	}
	return nil
}
