package mib

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// OID is the identifier of an object.
type OID []uint32

// longestOID is how many numbers an identifier may have (RFC 3416 section 4.1).
const longestOID = 128

// ParseOID parses dotted numbers, with or without a dot in front.
func ParseOID(text string) (OID, error) {
	text = strings.TrimPrefix(text, ".")
	if len(text) > longestOID*11 {
		return nil, errors.New("parse identifier: too long")
	}
	var o OID
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil || len(o) == longestOID {
			return nil, errors.New("parse identifier: not up to 128 numbers with dots between")
		}
		o = append(o, uint32(n))
	}
	return o, nil
}

func (o OID) String() string {
	b := make([]byte, 0, 4*len(o))
	for i, n := range o {
		if i > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendUint(b, uint64(n), 10)
	}
	return string(b)
}

// Compare orders identifiers as the agents' trees do.
func (o OID) Compare(p OID) int { return slices.Compare(o, p) }

// Below returns what follows the identifier of a column; false if o is not below it.
func (o OID) Below(column OID) (OID, bool) {
	if len(o) <= len(column) || !slices.Equal(o[:len(column)], column) {
		return nil, false
	}
	return o[len(column):], true
}

// with returns a new identifier with more numbers at its end.
func (o OID) with(more ...uint32) OID { return slices.Concat(o, OID(more)) }

// byOID orders the keys of a table, which are identifiers as text.
func byOID(a, b string) int {
	x, _ := ParseOID(a)
	y, _ := ParseOID(b)
	return cmp.Or(x.Compare(y), strings.Compare(a, b))
}

// Tables and scalars, from the documents that the package comment names.
var (
	system     = OID{1, 3, 6, 1, 2, 1, 1}
	engine     = OID{1, 3, 6, 1, 6, 3, 10, 2, 1}
	ifEntry    = OID{1, 3, 6, 1, 2, 1, 2, 2, 1}
	ifXEntry   = OID{1, 3, 6, 1, 2, 1, 31, 1, 1, 1}
	etherEntry = OID{1, 3, 6, 1, 2, 1, 10, 7, 2, 1}
	pauseEntry = OID{1, 3, 6, 1, 2, 1, 10, 7, 10, 1}
	lldpLocal  = OID{1, 0, 8802, 1, 1, 2, 1, 3, 7, 1}
	lldpRemote = OID{1, 0, 8802, 1, 1, 2, 1, 4, 1, 1}
	bridgePort = OID{1, 3, 6, 1, 2, 1, 17, 1, 4, 1}
	bridgeFDB  = OID{1, 3, 6, 1, 2, 1, 17, 4, 3, 1}

	vlanFDB     = OID{1, 3, 6, 1, 2, 1, 17, 7, 1, 2, 2, 1}
	vlanCurrent = OID{1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 2, 1}
	vlanStatic  = OID{1, 3, 6, 1, 2, 1, 17, 7, 1, 4, 3, 1}
)
