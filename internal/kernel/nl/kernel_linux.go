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

// kernel holds the sockets of a Client. All of them are opened at once by the dialling thread: a
// socket opened later, by another thread, could belong to another network namespace.
type kernel struct {
	route   *netlink.Conn
	generic *genetlink.Conn
	control *os.File // AF_INET datagram socket for ioctls

	mu sync.Mutex
	// numbers of the generic families that were asked for; 0: the kernel has none of that name
	families map[string]uint16
}

// dial opens all or nothing: a client that lacks one of the three sockets would fail at some later
// call, in words that say nothing about the cause (a limit on descriptors, a sandbox that forbids a
// family).
func dial() (*kernel, error) {
	k := &kernel{}
	// socket.Socket without a namespace in its configuration opens in the namespace of the calling
	// thread.
	//
	// NETLINK_GET_STRICT_CHK (4.20) stays off: with it old kernels and new ones would filter the
	// same dump differently, and all filtering is done here anyway.
	route, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return nil, cause(err)
	}
	k.route = route
	// Extended acknowledgements came with 4.12; without them only the kernel's sentence is missing.
	_ = route.SetOption(netlink.ExtendedAcknowledge, true)

	if k.generic, err = genetlink.Dial(nil); err != nil {
		_ = k.close()
		return nil, cause(err)
	}
	_ = k.generic.SetOption(netlink.ExtendedAcknowledge, true)

	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		_ = k.close()
		return nil, err
	}
	k.control = os.NewFile(uintptr(fd), "ethtool control socket")
	return k, nil
}

// close goes on after an error: the remaining sockets would be held for ever.
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

// cause strips the transport's own wording from an error and keeps errno and kernel sentence.
//
// The operation that is named in the end is ours ("set mtu of eth0"), not that of the transport
// ("send", "receive"), which tells a reader nothing.
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

// dumpAttempts bounds the repetition of a dump during which the table changed.
//
// Each attempt takes well under a millisecond on a host with some hundred links and routes. A table
// that changes in five of them is in the hands of a routing daemon that converges, and a later try
// is better than a longer one.
const dumpAttempts = 5

// dump asks for a whole table. The kernel marks a dump that is not consistent (NLM_F_DUMP_INTR,
// since 3.1): entries may then be missing or doubled, and the only remedy is to ask again.
//
// EINTR and EAGAIN are answered as a torn dump is: by asking again.
func (k *kernel) dump(typ uint16, header []byte) ([]netlink.Message, error) {
	for range dumpAttempts {
		msgs, err := k.route.Execute(netlink.Message{
			Header: netlink.Header{Type: netlink.HeaderType(typ), Flags: netlink.Request | netlink.Dump},
			Data:   header,
		})
		if err != nil {
			if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
				continue
			}
			return nil, cause(err)
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

// get sends a request that is answered by one message.
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

// change sends a request that is answered by an acknowledgement.
//
// Errors of the kernel come back in the acknowledgement, which Execute awaits: when it returns, the
// change is made or refused.
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

// Netlink is in the byte order of the host, except where an attribute says NLA_F_NET_BYTEORDER.
func u32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }
