package message

import (
	"bytes"
	"encoding/binary"
)

// Answer is what a sound answer says.
type Answer struct {
	Code          RCode // with the upper bits of EDNS
	Truncated     bool  // the TC bit: the whole answer needs TCP
	Authoritative bool
	Authentic     bool // the AD bit: the server says that it verified the signatures
	EDNS          bool // the answer has an OPT record
	Records       int  // in the answer section
	// MinTTL is the smallest time to live of the answer section in seconds; 0 without records.
	MinTTL uint32
	// Addresses of the answer section: where their data begins in the message, and its length. Only
	// the first ones are kept.
	addresses [maxAddresses]int
	count     int
}

// maxAddresses bounds the addresses that an expectation is compared with.
const maxAddresses = 8

// HasAddress reports whether one of the first eight A or AAAA records of the answer m holds the
// address, 4 or 16 octets long.
func (a *Answer) HasAddress(m, address []byte) bool {
	for _, at := range a.addresses[:a.count] {
		if at+len(address) <= len(m) && int(binary.BigEndian.Uint16(m[at-2:])) == len(address) &&
			bytes.Equal(m[at:at+len(address)], address) {
			return true
		}
	}
	return false
}

// Check checks the answer m to a question (name, type, class, as sent) and returns what it says, or
// the kind of its first fault. It does not allocate, and its time is linear in the length of m.
func Check(m, question []byte, a *Answer) Kind {
	*a = Answer{}
	if len(m) < HeaderBytes {
		return Short
	}
	flags := binary.BigEndian.Uint16(m[2:])
	switch {
	case flags&bitResponse == 0:
		return NotAnAnswer
	case flags>>11&15 != 0:
		return OtherOpcode
	case binary.BigEndian.Uint16(m[4:]) != 1:
		return NoQuestion
	case len(m) < HeaderBytes+len(question):
		return OtherQuestion
	}
	if !bytes.Equal(m[HeaderBytes:HeaderBytes+len(question)], question) &&
		!sameQuestion(m[HeaderBytes:HeaderBytes+len(question)], question) {
		return OtherQuestion
	}
	a.Code = RCode(flags & 15)
	a.Truncated = flags&bitTruncated != 0
	a.Authoritative = flags&bitAuthoritative != 0
	a.Authentic = flags&bitAuthentic != 0
	w := walker{m: m, at: HeaderBytes + len(question)}
	a.Records = int(binary.BigEndian.Uint16(m[6:]))
	for i := range a.Records {
		if k := w.record(a, true, i == 0); k != Sound {
			return k
		}
	}
	rest := int(binary.BigEndian.Uint16(m[8:])) + int(binary.BigEndian.Uint16(m[10:]))
	for range rest {
		if k := w.record(a, false, false); k != Sound {
			return k
		}
	}
	if w.at != len(m) {
		return Trailing
	}
	return Sound
}

// sameQuestion compares two questions without regard to the case of letters (RFC 4343). A byte of
// type or class that happens to be a letter must not be folded, so these four are compared alone.
func sameQuestion(a, b []byte) bool {
	n := len(b) - 4
	if n < 0 || !bytes.Equal(a[n:], b[n:]) {
		return false
	}
	for i := range n {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		// The length of a label is below 64 and therefore never taken for a letter.
		if x|0x20 != y|0x20 || x|0x20 < 'a' || x|0x20 > 'z' {
			return false
		}
	}
	return true
}

// walker is at one place of a message.
type walker struct {
	m  []byte
	at int
	// budget counts the labels that names may still have, all names of the message together: many
	// names that share long tails would otherwise cost the square of the message.
	seen int
}

// maxLabels bounds the labels of one message. A full one of 65 535 octets with names of average
// length has fewer; a message made to be expensive has more.
const maxLabels = 1 << 16

// name steps over a name, and follows its pointers to check where they end. A pointer must point
// before the name that holds it (RFC 1035 §4.1.4: a prior occurrence), so each hop goes back and
// the walk ends.
func (w *walker) name() Kind {
	m, at := w.m, w.at
	limit := at // a pointer must point below this
	length, jumped := 0, false
	for {
		if at >= len(m) {
			return Malformed
		}
		c := int(m[at])
		switch c & 0xc0 {
		case 0:
			at++
			length += c + 1
			if w.seen++; length > maxNameBytes || w.seen > maxLabels || at+c > len(m) {
				return Malformed
			}
			if c == 0 {
				if !jumped {
					w.at = at
				}
				return Sound
			}
			at += c
		case 0xc0:
			if at+1 >= len(m) {
				return Malformed
			}
			to := c&0x3f<<8 | int(m[at+1])
			if !jumped {
				w.at, jumped = at+2, true
			}
			if to >= limit {
				return CompressionLoop
			}
			if to < HeaderBytes {
				return Malformed
			}
			at, limit = to, to
		default: // 0x40 and 0x80 are reserved (RFC 6891 §5, RFC 1035)
			return Malformed
		}
	}
}

// record steps over one resource record.
func (w *walker) record(a *Answer, answer, first bool) Kind {
	begin := w.at
	if k := w.name(); k != Sound {
		return k
	}
	m, at := w.m, w.at
	if at+10 > len(m) {
		return Malformed
	}
	t := Type(binary.BigEndian.Uint16(m[at:]))
	ttl := binary.BigEndian.Uint32(m[at+4:])
	length := int(binary.BigEndian.Uint16(m[at+8:]))
	data := at + 10
	end := data + length
	if end > len(m) {
		return Malformed
	}
	if t == TypeOPT {
		if a.EDNS || m[begin] != 0 || answer {
			return BadEDNS
		}
		a.EDNS = true
		a.Code |= RCode(ttl>>24) << 4
		w.at = end
		return Sound
	}
	if answer && (first || ttl < a.MinTTL) {
		a.MinTTL = ttl
	}
	names, before := 0, 0
	switch t {
	case TypeA, TypeAAAA:
		want := 4
		if t == TypeAAAA {
			want = 16
		}
		if length != want {
			return Malformed
		}
		if answer && a.count < maxAddresses {
			a.addresses[a.count] = data
			a.count++
		}
	case TypeNS, TypeCNAME, TypePTR, TypeDNAME:
		names = 1
	case TypeMX:
		names, before = 1, 2
	case TypeSRV:
		names, before = 1, 6
	case TypeSOA:
		names = 2
	}
	if names > 0 {
		w.at = data + before
		for range names {
			if k := w.name(); k != Sound {
				return k
			}
		}
		if t == TypeSOA {
			w.at += 20
		}
		if w.at != end {
			return Malformed
		}
	}
	w.at = end
	return Sound
}

// FirstAddress returns the data of the first A or AAAA record of the answer m.
func (a *Answer) FirstAddress(m []byte) (address []byte, ok bool) {
	if a.count == 0 {
		return nil, false
	}
	at := a.addresses[0]
	return m[at : at+int(binary.BigEndian.Uint16(m[at-2:]))], true
}
