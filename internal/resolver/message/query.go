package message

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// HeaderBytes is the length of a header (RFC 1035 §4.1.1).
const HeaderBytes = 12

// Limits of names (RFC 1035 §2.3.4), in octets on the wire.
const (
	maxNameBytes  = 255
	maxLabelBytes = 63
)

// Bits of the second 16 of a header.
const (
	bitResponse      = 1 << 15
	bitAuthoritative = 1 << 10
	bitTruncated     = 1 << 9
	bitDesired       = 1 << 8
	bitAvailable     = 1 << 7
	bitAuthentic     = 1 << 5
)

// ErrName is wrapped by every error about the text of a name.
var ErrName = errors.New("bad domain name")

// AppendName appends the wire format of a name in presentation format, with or without the final
// dot. \. is a dot inside a label and \DDD an octet (RFC 1035 §5.1).
func AppendName(b []byte, name string) ([]byte, error) {
	begin := len(b)
	if name == "." || name == "" {
		return append(b, 0), nil
	}
	length := len(b)
	b = append(b, 0)
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c == '.':
			if len(b) == length+1 {
				return b[:begin], fmt.Errorf("%w: %.80q has an empty label", ErrName, name)
			}
			b[length] = byte(len(b) - length - 1)
			if i == len(name)-1 {
				return closeName(b, begin, name)
			}
			length = len(b)
			b = append(b, 0)
			continue
		case c == '\\' && i+3 < len(name) && digit(name[i+1]) && digit(name[i+2]) && digit(name[i+3]):
			n := int(name[i+1]-'0')*100 + int(name[i+2]-'0')*10 + int(name[i+3]-'0')
			if n > 255 {
				return b[:begin], fmt.Errorf("%w: %.80q has an octet above 255", ErrName, name)
			}
			c, i = byte(n), i+3
		case c == '\\':
			if i++; i == len(name) {
				return b[:begin], fmt.Errorf("%w: %.80q ends in a backslash", ErrName, name)
			}
			c = name[i]
		}
		if b = append(b, c); len(b)-length-1 > maxLabelBytes {
			return b[:begin], fmt.Errorf("%w: %.80q has a label of more than %d octets", ErrName, name, maxLabelBytes)
		}
	}
	b[length] = byte(len(b) - length - 1)
	return closeName(b, begin, name)
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// closeName ends a name with the root's label.
func closeName(b []byte, begin int, name string) ([]byte, error) {
	if b = append(b, 0); len(b)-begin > maxNameBytes {
		return b[:begin], fmt.Errorf("%w: %.80q has more than %d octets", ErrName, name, maxNameBytes)
	}
	return b, nil
}

// NameText returns the presentation format of an uncompressed name on the wire, with the final dot.
func NameText(wire []byte) string {
	if len(wire) < 2 {
		return "."
	}
	var s strings.Builder
	for at := 0; at < len(wire) && wire[at] != 0; {
		n := int(wire[at])
		for _, c := range wire[at+1 : min(at+1+n, len(wire))] {
			switch {
			case c == '.' || c == '\\':
				s.WriteByte('\\')
				s.WriteByte(c)
			case c <= ' ' || c >= 0x7f:
				fmt.Fprintf(&s, "\\%03d", c)
			default:
				s.WriteByte(c)
			}
		}
		s.WriteByte('.')
		at += n + 1
	}
	return s.String()
}

// QueryOptions is how a query asks.
type QueryOptions struct {
	Recursion bool   // the RD bit
	UDPBytes  uint16 // largest answer over UDP, in an OPT record; 0: no OPT record
	DNSSECOK  bool   // the DO bit; needs UDPBytes
}

// AppendQuery appends a query with id 0 for a name in wire format.
func AppendQuery(b, name []byte, t Type, o QueryOptions) []byte {
	var flags, additional uint16
	if o.Recursion {
		flags = bitDesired
	}
	if o.UDPBytes > 0 {
		additional = 1
	}
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint16(b, flags)
	b = append(b, 0, 1, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, additional)
	b = append(b, name...)
	b = binary.BigEndian.AppendUint16(b, uint16(t))
	b = append(b, 0, 1)
	if o.UDPBytes > 0 {
		b = append(b, 0, 0, byte(TypeOPT))
		b = binary.BigEndian.AppendUint16(b, o.UDPBytes)
		var do byte
		if o.DNSSECOK {
			do = 0x80
		}
		b = append(b, 0, 0, do, 0, 0, 0)
	}
	return b
}

// Query is what a server reads of a query. Name points into the message.
type Query struct {
	ID        uint16
	Recursion bool
	Name      []byte // wire format
	Type      Type
	Question  []byte // the whole question: name, type, class
	UDPBytes  int    // largest answer over UDP; 512 without EDNS
	EDNS      bool
	DNSSECOK  bool
}

// errQuery is a query that a server drops.
var errQuery = errors.New("not a query with one question")

// ParseQuery reads a query. A message that is not a query with one question of class IN is an
// error.
func ParseQuery(m []byte) (Query, error) {
	if len(m) < HeaderBytes {
		return Query{}, errQuery
	}
	flags := binary.BigEndian.Uint16(m[2:])
	if flags&bitResponse != 0 || flags>>11&15 != 0 || binary.BigEndian.Uint16(m[4:]) != 1 {
		return Query{}, errQuery
	}
	end, ok := plainName(m, HeaderBytes)
	if !ok || end+4 > len(m) || binary.BigEndian.Uint16(m[end+2:]) != 1 {
		return Query{}, errQuery
	}
	q := Query{
		ID: binary.BigEndian.Uint16(m), Recursion: flags&bitDesired != 0, Name: m[HeaderBytes:end],
		Type: Type(binary.BigEndian.Uint16(m[end:])), Question: m[HeaderBytes : end+4], UDPBytes: 512,
	}
	// Only an OPT record right behind the question is looked for: every client puts it there.
	if rest := m[end+4:]; len(rest) >= 11 && rest[0] == 0 && Type(binary.BigEndian.Uint16(rest[1:])) == TypeOPT {
		q.EDNS = true
		q.UDPBytes = max(int(binary.BigEndian.Uint16(rest[3:])), 512)
		q.DNSSECOK = rest[7]&0x80 != 0
	}
	return q, nil
}

// plainName returns the end of an uncompressed name.
func plainName(m []byte, at int) (end int, ok bool) {
	for begin := at; at < len(m) && at-begin < maxNameBytes; {
		n := int(m[at])
		switch {
		case n == 0:
			return at + 1, true
		case n > maxLabelBytes:
			return 0, false
		}
		at += n + 1
	}
	return 0, false
}
