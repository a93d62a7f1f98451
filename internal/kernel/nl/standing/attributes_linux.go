package standing

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/mdlayher/netlink"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// list is the attributes of a message.
type list []netlink.Attribute

// attributes reads what follows a header of n bytes. It copies, because a message belongs to the
// buffer of its dump.
func attributes(data []byte, n int) (list, error) {
	if len(data) < n {
		return nil, nl.ErrShort
	}
	return netlink.UnmarshalAttributes(slices.Clone(data[n:]))
}

func (l list) find(typ uint16) []byte { return nl.Find(l, typ) }

// uint32 returns 0 for an absent attribute.
func (l list) uint32(typ uint16) uint32 {
	if b := l.find(typ); len(b) >= 4 {
		return u32(b)
	}
	return 0
}

func (l list) text(typ uint16) string { return string(bytes.TrimRight(l.find(typ), "\x00")) }

// only returns a message with the attributes of these types.
func (l list) only(header []byte, types ...uint16) ([]byte, error) {
	return slices.DeleteFunc(slices.Clone(l), func(a netlink.Attribute) bool {
		return !slices.Contains(types, nl.TypeOf(a))
	}).after(header)
}

// after returns a message of a header and the attributes.
func (l list) after(header []byte) ([]byte, error) {
	b, err := netlink.MarshalAttributes(l)
	return append(slices.Clone(header), b...), err
}

func u32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }
