package mib

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// Node is one setting of the tree.
type Node struct {
	Value    string // a decimal number, several with blanks between them, or a text
	Writable bool   // a process may write it now
	Tunable  bool   // the loader may set it before the kernel starts
}

// Tree finds settings by name. Errors satisfy errors.Is with fs.ErrNotExist, fs.ErrPermission,
// [ErrOpaque] and [ErrValue].
type Tree interface {
	Get(name string) (Node, error)
	Set(name, value string) error
	// Names lists the settings below a name in the order of the tree: dev.em has dev.em.0.itr.
	Names(below string) ([]string, error)
}

var (
	// ErrOpaque reports a structure or an inner node, which has no value as text.
	ErrOpaque = errors.New("a structure, which has no value as text")
	// ErrValue reports a text that the type of the setting cannot hold.
	ErrValue = errors.New("not a value of its type")
)

// Types of nodes (CTLTYPE_*), in the lowest bits of a node's kind.
const (
	typeMask   = 0xf
	typeInt    = 2
	typeString = 3
	typeS64    = 4
	typeUint   = 6
	typeLong   = 7
	typeUlong  = 8
	typeU64    = 9
	typeU8     = 0xa
	typeU16    = 0xb
	typeS8     = 0xc
	typeS16    = 0xd
	typeS32    = 0xe
	typeU32    = 0xf
)

// Flags of nodes (CTLFLAG_*).
const (
	flagWritable = 0x40000000
	flagTunable  = 0x00080000
)

// width returns the size of a number in bytes and whether it has a sign; 0 for what is no number. A
// long has eight bytes on the systems that this package supports.
func width(kind uint32) (size int, signed bool) {
	switch kind & typeMask {
	case typeInt, typeS32:
		return 4, true
	case typeUint, typeU32:
		return 4, false
	case typeLong, typeS64:
		return 8, true
	case typeUlong, typeU64:
		return 8, false
	case typeU8:
		return 1, false
	case typeS8:
		return 1, true
	case typeU16:
		return 2, false
	case typeS16:
		return 2, true
	}
	return 0, false
}

// decode turns the bytes of a value into text; an array of numbers has blanks between them.
func decode(kind uint32, raw []byte) (string, error) {
	if kind&typeMask == typeString {
		for i, c := range raw {
			if c == 0 {
				return string(raw[:i]), nil
			}
		}
		return string(raw), nil
	}
	size, signed := width(kind)
	if size == 0 || len(raw) == 0 {
		return "", ErrOpaque
	}
	if len(raw)%size != 0 {
		return "", fmt.Errorf("%d bytes for numbers of %d: %w", len(raw), size, ErrOpaque)
	}
	var text []byte
	for ; len(raw) > 0; raw = raw[size:] {
		if len(text) > 0 {
			text = append(text, ' ')
		}
		var wide [8]byte
		copy(wide[:], raw[:size])
		n := binary.LittleEndian.Uint64(wide[:])
		if signed {
			shift := uint(64 - 8*size)
			text = strconv.AppendInt(text, int64(n<<shift)>>shift, 10)
		} else {
			text = strconv.AppendUint(text, n, 10)
		}
	}
	return string(text), nil
}

// encode is the inverse of decode, for one number or a text.
func encode(kind uint32, value string) ([]byte, error) {
	if kind&typeMask == typeString {
		return []byte(value), nil
	}
	size, signed := width(kind)
	if size == 0 {
		return nil, ErrOpaque
	}
	var wide [8]byte
	if signed {
		n, err := strconv.ParseInt(value, 10, 8*size)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", value, ErrValue)
		}
		binary.LittleEndian.PutUint64(wide[:], uint64(n))
	} else {
		n, err := strconv.ParseUint(value, 10, 8*size)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", value, ErrValue)
		}
		binary.LittleEndian.PutUint64(wide[:], n)
	}
	return wide[:size], nil
}
