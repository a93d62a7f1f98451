package ruleset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
)

// Field is one of the properties of a packet that matches are modelled on.
type Field uint8

// The fields. Zero is none.
const (
	InInterface     Field = iota + 1 // name of the interface that received the packet
	OutInterface                     // name of the interface that will send it
	Source                           // address
	Destination                      // address
	Protocol                         // transport protocol, by IANA's number
	SourcePort                       // of TCP, UDP, UDP-Lite, SCTP and DCCP
	DestinationPort                  // of the same
	State                            // of the connection: one of the bits StateInvalid to StateUntracked
	Family                           // NFPROTO_IPV4 (2) or NFPROTO_IPV6 (10)
)

// Fields are all fields, in the order that cells are cut.
var Fields = [...]Field{InInterface, OutInterface, Source, Destination, Protocol, SourcePort, DestinationPort,
	State, Family}

// The states of a connection, as bits of include/uapi/linux/netfilter/nf_conntrack_common.h.
const (
	StateInvalid     = 1
	StateEstablished = 2
	StateRelated     = 4
	StateNew         = 8
	StateUntracked   = 64
)

// The network protocols of [Family], of include/uapi/linux/netfilter.h.
const (
	IPv4 = 2
	IPv6 = 10
)

// Value is one value of a field: sixteen bytes, compared from the left.
type Value [16]byte

// Number returns the value of a port, a protocol, a state or a family.
func Number(n uint64) (v Value) {
	binary.BigEndian.PutUint64(v[8:], n)
	return v
}

// Address returns the value of an address; IPv4 addresses become IPv4-mapped ones.
func Address(a netip.Addr) Value { return a.As16() }

// Name returns the value of an interface's name, of which the kernel keeps fifteen bytes.
func Name(s string) (v Value) {
	copy(v[:15], s)
	return v
}

// Number returns the last eight bytes as a number.
func (v Value) Number() uint64 { return binary.BigEndian.Uint64(v[8:]) }

// Addr returns the value as an address, IPv4 if it is an IPv4-mapped one.
func (v Value) Addr() netip.Addr { return netip.AddrFrom16(v).Unmap() }

// Compare returns -1, 0 or 1.
func (v Value) Compare(w Value) int { return bytes.Compare(v[:], w[:]) }

// Next returns the value after v; false after the last one.
func (v Value) Next() (Value, bool) {
	for i := len(v) - 1; i >= 0; i-- {
		if v[i]++; v[i] != 0 {
			return v, true
		}
	}
	return v, false
}

// Previous returns the value before v; false before the first one.
func (v Value) Previous() (Value, bool) {
	for i := len(v) - 1; i >= 0; i-- {
		v[i]--
		if v[i] != 0xff {
			return v, true
		}
	}
	return v, false
}

// masked returns v with all but its first bits zero.
func (v Value) masked(bits int) Value {
	for i := range v {
		switch keep := bits - 8*i; {
		case keep <= 0:
			v[i] = 0
		case keep < 8:
			v[i] &= 0xff << (8 - keep)
		}
	}
	return v
}

// filled returns v with all but its first bits one.
func (v Value) filled(bits int) Value {
	for i := range v {
		switch keep := bits - 8*i; {
		case keep <= 0:
			v[i] = 0xff
		case keep < 8:
			v[i] |= 0xff >> keep
		}
	}
	return v
}

// Range is the values from First to Last, both included.
type Range struct{ First, Last Value }

// One returns the range of a single value.
func One(v Value) Range { return Range{v, v} }

// Numbers returns the range of numbers from a to b.
func Numbers(a, b uint64) Range { return Range{Number(a), Number(b)} }

// Prefix returns the addresses of a prefix.
func Prefix(p netip.Prefix) Range {
	bits := p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	v := Address(p.Addr())
	return Range{v.masked(bits), v.filled(bits)}
}

// Names returns the names that a pattern matches: a name, or its beginning and an asterisk.
func Names(pattern string) Range {
	begin, wild := strings.CutSuffix(pattern, "*")
	v := Name(begin)
	if !wild {
		return One(v)
	}
	return Range{v, v.filled(8 * min(len(begin), 15))}
}

// Contains reports whether v is one of the values.
func (r Range) Contains(v Value) bool { return r.First.Compare(v) <= 0 && v.Compare(r.Last) <= 0 }

// Covers reports whether every value of s is one of r.
func (r Range) Covers(s Range) bool {
	return r.First.Compare(s.First) <= 0 && s.Last.Compare(r.Last) <= 0
}

// Overlaps reports whether the ranges share a value.
func (r Range) Overlaps(s Range) bool {
	return r.First.Compare(s.Last) <= 0 && s.First.Compare(r.Last) <= 0
}

// Bits returns the length of the prefix, of 128 bits, that the range is; false if it is not one.
func (r Range) Bits() (int, bool) {
	bits := 128
	for i := range r.First {
		if d := r.First[i] ^ r.Last[i]; d != 0 {
			for bits = 8 * i; d&0x80 == 0; d <<= 1 {
				bits++
			}
			break
		}
	}
	return bits, r.First == r.First.masked(bits) && r.Last == r.First.filled(bits)
}

// universe is all values of a field.
func universe(f Field) Range {
	switch f {
	case Protocol:
		return Numbers(0, 255)
	case SourcePort, DestinationPort:
		return Numbers(0, 65535)
	case State:
		return Numbers(StateInvalid, StateUntracked)
	case Family:
		return Numbers(IPv4, IPv6)
	}
	return Range{Value{}, Value{}.filled(0)}
}

// Universe returns all values that a packet's field can have. Not every number in it is a state or
// a family.
func Universe(f Field) Range { return universe(f) }

// Merge returns the union of ranges as disjoint ranges in order, those that touch joined.
func Merge(ranges []Range) []Range {
	all := slices.Clone(ranges)
	sorting.Func(all, func(a, b Range) int { return a.First.Compare(b.First) })
	var out []Range
	for _, r := range all {
		if n := len(out); n > 0 {
			after, more := out[n-1].Last.Next()
			if !more || r.First.Compare(after) <= 0 {
				if r.Last.Compare(out[n-1].Last) > 0 {
					out[n-1].Last = r.Last
				}
				continue
			}
		}
		out = append(out, r)
	}
	return out
}

// Without returns the values of a field that are in none of the ranges.
func Without(f Field, ranges []Range) []Range {
	all := universe(f)
	var out []Range
	next, more := all.First, true
	for _, r := range Merge(ranges) {
		if before, ok := r.First.Previous(); ok && more && next.Compare(r.First) < 0 {
			out = append(out, Range{next, before})
		}
		next, more = r.Last.Next()
	}
	if more && next.Compare(all.Last) <= 0 {
		out = append(out, Range{next, all.Last})
	}
	return out
}

// protocols are the names that nft prints for numbers.
var protocols = map[uint64]string{1: "icmp", 2: "igmp", 4: "ipencap", 6: "tcp", 17: "udp", 33: "dccp", 41: "ipv6",
	47: "gre", 50: "esp", 51: "ah", 58: "ipv6-icmp", 89: "ospf", 103: "pim", 108: "comp", 112: "vrrp", 132: "sctp",
	136: "udplite"}

// ProtocolNumber returns IANA's number for a protocol's name or decimal number.
func ProtocolNumber(name string) (uint64, bool) {
	if n, err := strconv.ParseUint(name, 10, 8); err == nil {
		return n, true
	}
	switch name {
	case "icmpv6", "icmp6":
		return 58, true
	case "ipcomp":
		return 108, true
	case "ipip", "ip4", "ipv4":
		return 4, true
	}
	for n, s := range protocols {
		if s == name {
			return n, true
		}
	}
	return 0, false
}

// states are the names of the states, by bit.
var states = []struct {
	bit  uint64
	name string
}{{StateInvalid, "invalid"}, {StateEstablished, "established"}, {StateRelated, "related"}, {StateNew, "new"},
	{StateUntracked, "untracked"}}

// StateNumber returns the bit of a state's name, in any case.
func StateNumber(name string) (uint64, bool) {
	for _, s := range states {
		if strings.EqualFold(s.name, name) {
			return s.bit, true
		}
	}
	return 0, false
}

// Format returns a value as nft writes it.
func (f Field) Format(v Value) string {
	switch f {
	case InInterface, OutInterface:
		return strconv.Quote(string(bytes.TrimRight(v[:], "\x00")))
	case Source, Destination:
		return v.Addr().String()
	case Protocol:
		if s, ok := protocols[v.Number()]; ok {
			return s
		}
	case State:
		for _, s := range states {
			if s.bit == v.Number() {
				return s.name
			}
		}
	case Family:
		switch v.Number() {
		case IPv4:
			return "ipv4"
		case IPv6:
			return "ipv6"
		}
	}
	return strconv.FormatUint(v.Number(), 10)
}

// FormatRange returns a range as nft writes it: a value, a prefix, a pattern or two ends.
func (f Field) FormatRange(r Range) string {
	if r.First == r.Last {
		return f.Format(r.First)
	}
	switch f {
	case InInterface, OutInterface:
		return strconv.Quote(string(bytes.TrimRight(r.First[:], "\x00")) + "*")
	case Source, Destination:
		if bits, ok := r.Bits(); ok {
			if a := r.First.Addr(); a.Is4() && bits >= 96 {
				return fmt.Sprintf("%s/%d", a, bits-96)
			}
			return fmt.Sprintf("%s/%d", netip.AddrFrom16(r.First), bits)
		}
	}
	return f.Format(r.First) + "-" + f.Format(r.Last)
}

// String returns the field's name in messages.
func (f Field) String() string {
	names := [...]string{"", "iif", "oif", "saddr", "daddr", "protocol", "sport", "dport", "ct state", "family"}
	if int(f) < len(names) {
		return names[f]
	}
	return "field " + strconv.Itoa(int(f))
}

// Packet is the shape of a packet: the fields that the model knows. The zero value of a field is a
// value like any other, except for interfaces: a packet that was not received has no In.
type Packet struct {
	In, Out             string
	Source, Destination netip.Addr
	Protocol            uint8
	SourcePort          uint16 // of protocols with ports
	DestinationPort     uint16
	State               uint8 // one of the bits StateInvalid to StateUntracked
	Bytes               uint64
}

// hasPorts reports whether a protocol's header begins with two ports.
func hasPorts(protocol uint8) bool {
	switch protocol {
	case 6, 17, 33, 132, 136:
		return true
	}
	return false
}

// Value returns the packet's value of a field; false if the packet has none.
func (p Packet) Value(f Field) (Value, bool) {
	switch f {
	case InInterface:
		return Name(p.In), true
	case OutInterface:
		return Name(p.Out), true
	case Source:
		return Address(p.Source), p.Source.IsValid()
	case Destination:
		return Address(p.Destination), p.Destination.IsValid()
	case Protocol:
		return Number(uint64(p.Protocol)), true
	case SourcePort:
		return Number(uint64(p.SourcePort)), hasPorts(p.Protocol)
	case DestinationPort:
		return Number(uint64(p.DestinationPort)), hasPorts(p.Protocol)
	case State:
		return Number(uint64(p.State)), true
	case Family:
		return Number(p.Family()), true
	}
	return Value{}, false
}

// Family returns [IPv4] or [IPv6], by the addresses.
func (p Packet) Family() uint64 {
	if p.Source.Is4() || p.Source.Is4In6() || p.Destination.Is4() || p.Destination.Is4In6() {
		return IPv4
	}
	return IPv6
}
