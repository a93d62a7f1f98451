package nl

import (
	"errors"
	"fmt"
	"io/fs"
	"unsafe"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// The methods below serve the packages that share a client's sockets. They send a message and
// return the answer; the calling package understands it, this one does not.

// Dump reads a whole table from rtnetlink and repeats the request if the table changed meanwhile.
// The error has no operation yet: see Wrap.
func (c *Client) Dump(typ uint16, header []byte) ([]netlink.Message, error) {
	return c.k.dump(typ, header)
}

// Get sends rtnetlink a request that one message answers, and returns that message.
func (c *Client) Get(typ uint16, data []byte) (netlink.Message, error) { return c.k.get(typ, data) }

// Change sends rtnetlink a request that the kernel acknowledges. When Change returns, the kernel
// has made or refused the change.
func (c *Client) Change(typ uint16, flags netlink.HeaderFlags, data []byte) error {
	return c.k.change(typ, flags, data)
}

// Family returns the number of a generic netlink family. For a family that the kernel does not
// have, the error is fs.ErrNotExist. Both answers are cached, because families that are built in
// neither appear nor disappear.
func (c *Client) Family(name string) (uint16, error) {
	c.k.mu.Lock()
	defer c.k.mu.Unlock()
	number, asked := c.k.numbers[name]
	if !asked {
		f, err := c.k.families.GetFamily(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, cause(err)
		}
		number = f.ID
		if c.k.numbers == nil {
			c.k.numbers = make(map[string]uint16)
		}
		c.k.numbers[name] = number
	}
	if number == 0 {
		return 0, fmt.Errorf("%w: the kernel has no netlink family %q", fs.ErrNotExist, name)
	}
	return number, nil
}

// Generic sends a command to a generic netlink family and returns the messages of the answer. It
// repeats a dump during which the table changed. The header carries version 1, which all families
// used here have.
func (c *Client) Generic(family uint16, command uint8, flags netlink.HeaderFlags,
	data []byte) ([]genetlink.Message, error) {
	msgs, err := Execute(c.k.generic, netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(family), Flags: flags},
		Data:   append([]byte{command, 1, 0, 0}, data...), // struct genlmsghdr
	})
	if err != nil {
		return nil, cause(err)
	}
	all := make([]genetlink.Message, len(msgs))
	for i, m := range msgs {
		if err := all[i].UnmarshalBinary(m.Data); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ifreqData is struct ifreq with its pointer member. The pointer remains a Go pointer, so that the
// garbage collector sees it.
//
// On 64-bit systems struct ifreq has 40 bytes: 16 of name and 24 of union. On 32-bit systems it is
// shorter, and the kernel reads only that many bytes, so the longer form serves both.
type ifreqData struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [24 - unsafe.Sizeof(uintptr(0))]byte
}

// Ioctl passes an ethtool(8) request about a link (SIOCETHTOOL) to the kernel, which writes its
// answer into the same buffer.
//
// Since the answer overwrites the request, buf must have room for the longest answer. The kernel
// looks the device up in the network namespace of the socket, not in that of the calling thread;
// therefore a Client is usable from any thread.
func (c *Client) Ioctl(name string, buf []byte) error {
	if err := CheckName(name); err != nil {
		return err
	}
	req := ifreqData{data: unsafe.Pointer(unsafe.SliceData(buf))}
	copy(req.name[:], name)
	conn, err := c.k.control.SyscallConn()
	if err != nil {
		return err
	}
	var errno unix.Errno
	err = conn.Control(func(fd uintptr) {
		// The conversion must be part of the call expression: only there does it keep the object in
		// place (rules of package unsafe).
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req)))
	})
	if err != nil {
		return err
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// CheckName refuses a name that the kernel would truncate or take for another device. IFNAMSIZ is
// 16 including the terminating zero, and an empty name in a request means "no name given".
//
// The error equals the kernel's answer to any other name without a link, so callers handle one case
// instead of two.
func CheckName(name string) error {
	if name == "" || len(name) >= unix.IFNAMSIZ {
		return unix.ENODEV
	}
	return nil
}

// ErrShort reports a message that ends before the end of its fixed header.
var ErrShort = errors.New("message shorter than its header")

// Attributes returns a decoder for the attributes that follow the fixed header of n bytes.
func Attributes(data []byte, n int) (*netlink.AttributeDecoder, error) {
	if len(data) < n {
		return nil, ErrShort
	}
	return netlink.NewAttributeDecoder(data[n:])
}

// Encode appends attributes to a fixed header. A nil fill appends none.
func Encode(header []byte, fill func(ae *netlink.AttributeEncoder)) ([]byte, error) {
	ae := netlink.NewAttributeEncoder()
	if fill != nil {
		fill(ae)
	}
	b, err := ae.Encode()
	if err != nil {
		return nil, err
	}
	return append(header, b...), nil
}
