package nl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// kernel holds the sockets of a Client. The dialling thread opens all of them at once: a socket
// that another thread opens later could belong to another network namespace.
type kernel struct {
	route    *netlink.Conn
	generic  *netlink.Conn
	families *genetlink.Conn // over generic: it knows how to ask for a family
	control  *os.File        // AF_INET datagram socket for ioctls

	mu sync.Mutex
	// numbers of the generic families requested so far; 0: the kernel has no family with this name
	numbers map[string]uint16
}

// dial opens all sockets or none. A client that lacks one of the three would fail at some later
// call, with an error that hides the cause (a limit on descriptors, a sandbox that forbids a
// family).
func dial() (*kernel, error) {
	k := &kernel{}
	// Without a namespace in its configuration, socket.Socket opens in the namespace of the calling
	// thread.
	//
	// NETLINK_GET_STRICT_CHK (4.20) remains off: with it old and new kernels would filter the same
	// dump differently, and this package filters every dump anyway.
	route, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return nil, cause(err)
	}
	k.route = route
	// Extended acknowledgements exist since 4.12. Without them only the kernel's message is
	// missing.
	_ = route.SetOption(netlink.ExtendedAcknowledge, true)

	if k.generic, err = netlink.Dial(unix.NETLINK_GENERIC, nil); err != nil {
		_ = k.close()
		return nil, cause(err)
	}
	k.families = genetlink.NewConn(k.generic)
	_ = k.generic.SetOption(netlink.ExtendedAcknowledge, true)

	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		_ = k.close()
		return nil, err
	}
	k.control = os.NewFile(uintptr(fd), "ethtool control socket")
	return k, nil
}

// close continues after an error; otherwise the remaining sockets would leak.
func (k *kernel) close() error {
	var errs []error
	if k.route != nil {
		errs = append(errs, k.route.Close())
	}
	if k.generic != nil {
		errs = append(errs, k.generic.Close())
	}
	if k.control != nil {
		errs = append(errs, k.control.Close())
	}
	return errors.Join(errs...)
}

// cause strips the transport's wording from an error and keeps the errno and the kernel's message.
//
// The final error names the operation of this package ("set mtu of eth0"), not that of the
// transport ("send", "receive"), which does not help the reader.
func cause(err error) error {
	var op *netlink.OpError
	if !errors.As(err, &op) {
		return err
	}
	inner := op.Err
	var sys *os.SyscallError
	if errors.As(inner, &sys) {
		inner = sys.Err
	}
	return &Error{Kernel: op.Message, Err: inner}
}

// dumpAttempts limits how often a dump is repeated because the table changed during it.
//
// Each attempt takes well under a millisecond on a host with some hundred links and routes. A table
// that changes during five attempts is being updated by a converging routing daemon; the caller
// should retry later.
const dumpAttempts = 5

// dump reads a whole table from rtnetlink.
func (k *kernel) dump(typ uint16, header []byte) ([]netlink.Message, error) {
	msgs, err := Execute(k.route, netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(typ), Flags: netlink.Request | netlink.Dump},
		Data:   header,
	})
	return msgs, cause(err)
}

// Execute sends a request and returns the answer. It repeats a dump that the kernel marks as
// inconsistent (NLM_F_DUMP_INTR, since 3.1): entries may be missing or duplicated, and the only
// remedy is to repeat the request. After EINTR and EAGAIN it repeats a dump as well.
//
// A mark on the end of a dump alone is not seen, because package netlink keeps that message back.
func Execute(c *netlink.Conn, m netlink.Message) ([]netlink.Message, error) {
	if m.Header.Flags&netlink.Dump != netlink.Dump {
		return c.Execute(m)
	}
	for range dumpAttempts {
		msgs, err := c.Execute(m)
		if err != nil {
			if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
				continue
			}
			return nil, err
		}
		torn := false
		for _, m := range msgs {
			torn = torn || m.Header.Flags&netlink.DumpInterrupted != 0
		}
		if !torn {
			return msgs, nil
		}
	}
	return nil, fmt.Errorf("table changed during each of %d dumps", dumpAttempts)
}

// get sends a request that one message answers, and returns that message.
func (k *kernel) get(typ uint16, data []byte) (netlink.Message, error) {
	msgs, err := k.route.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(typ), Flags: netlink.Request},
		Data:   data,
	})
	if err != nil {
		return netlink.Message{}, cause(err)
	}
	if len(msgs) == 0 {
		return netlink.Message{}, errors.New("empty answer")
	}
	return msgs[0], nil
}

// change sends a request that the kernel acknowledges.
//
// The kernel reports errors in the acknowledgement, which Execute awaits. When Execute returns, the
// kernel has made or refused the change.
func (k *kernel) change(typ uint16, flags netlink.HeaderFlags, data []byte) error {
	_, err := k.route.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(typ), Flags: netlink.Request | netlink.Acknowledge | flags},
		Data:   data,
	})
	if err != nil {
		return cause(err)
	}
	return nil
}

// Netlink uses the byte order of the host, except in an attribute marked NLA_F_NET_BYTEORDER.
func u32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }
