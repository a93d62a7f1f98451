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

// What the rooms above ask of a client: to carry a message of theirs and to bring the answer, which
// they understand and this package does not.

// Dump asks rtnetlink for a whole table and asks again when the table changed meanwhile. An error
// has no operation yet: see Wrap.
func (c *Client) Dump(typ uint16, header []byte) ([]netlink.Message, error) {
	return c.k.dump(typ, header)
}

// Get sends rtnetlink a request that is answered by one message.
func (c *Client) Get(typ uint16, data []byte) (netlink.Message, error) { return c.k.get(typ, data) }

// Change sends rtnetlink a request that is answered by an acknowledgement: the change is made, or
// refused, when the call returns.
func (c *Client) Change(typ uint16, flags netlink.HeaderFlags, data []byte) error {
	return c.k.change(typ, flags, data)
}

// Family gives the number of a generic family. One that the kernel does not have is fs.ErrNotExist.
// Either answer is kept, as families that are built in neither come nor go.
func (c *Client) Family(name string) (uint16, error) {
	c.k.mu.Lock()
	defer c.k.mu.Unlock()
	number, asked := c.k.families[name]
	if !asked {
		f, err := c.k.generic.GetFamily(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, cause(err)
		}
		number = f.ID
		if c.k.families == nil {
			c.k.families = make(map[string]uint16)
		}
		c.k.families[name] = number
	}
	if number == 0 {
		return 0, fmt.Errorf("%w: the kernel has no netlink family %q", fs.ErrNotExist, name)
	}
	return number, nil
}

// Generic sends a command to a generic family and gives the messages of the answer. The version in
// its header is 1, as all families have it that are spoken to here.
func (c *Client) Generic(family uint16, command uint8, flags netlink.HeaderFlags,
	data []byte) ([]genetlink.Message, error) {
	msgs, err := c.k.generic.Execute(genetlink.Message{Header: genetlink.Header{Command: command, Version: 1},
		Data: data}, family, flags)
	return msgs, cause(err)
}

// ifreqData is struct ifreq with its pointer member. The pointer stays a Go pointer, so that the
// collector sees it.
//
// On 64-bit systems struct ifreq has 40 bytes, 16 of name and 24 of union; on 32-bit ones it is
// shorter and the kernel reads only what it knows, so that the longer form serves both.
type ifreqData struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [24 - unsafe.Sizeof(uintptr(0))]byte
}

// Ioctl passes a request of ethtool(8) about a link (SIOCETHTOOL) to the kernel, which answers in
// the same buffer.
//
// The answer is written over the request, so that buf must have room for the longest one. The
// kernel looks the device up in the namespace of the socket, not in that of the calling thread,
// which is what makes a Client usable from any thread.
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
		// The conversion stands in the call expression: only there does it keep the object in place
		// (rules of package unsafe).
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

// CheckName refuses what the kernel would cut off or take for another device: IFNAMSIZ is 16 with
// the closing zero, and an empty name in a request means "no name given".
//
// The answer is that of the kernel to any other name that it does not have, so that callers have
// one case and not two.
func CheckName(name string) error {
	if name == "" || len(name) >= unix.IFNAMSIZ {
		return unix.ENODEV
	}
	return nil
}

// ErrShort is a message that ends before its fixed header does.
var ErrShort = errors.New("message shorter than its header")

// Attributes splits a message behind its fixed header of n bytes.
func Attributes(data []byte, n int) (*netlink.AttributeDecoder, error) {
	if len(data) < n {
		return nil, ErrShort
	}
	return netlink.NewAttributeDecoder(data[n:])
}

// Encode appends attributes to a fixed header; a nil fill appends none.
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
