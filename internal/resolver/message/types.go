package message

import (
	"fmt"
	"strconv"
	"strings"
)

// Type is the type of a resource record.
type Type uint16

// The types with a name here; others are written TYPE123 (RFC 3597).
const (
	TypeA     Type = 1
	TypeNS    Type = 2
	TypeCNAME Type = 5
	TypeSOA   Type = 6
	TypePTR   Type = 12
	TypeMX    Type = 15
	TypeTXT   Type = 16
	TypeAAAA  Type = 28
	TypeSRV   Type = 33
	TypeOPT   Type = 41
	TypeDNAME Type = 39
)

var typeNames = map[Type]string{
	TypeA: "A", TypeNS: "NS", TypeCNAME: "CNAME", TypeSOA: "SOA", TypePTR: "PTR", TypeMX: "MX", TypeTXT: "TXT",
	TypeAAAA: "AAAA", TypeSRV: "SRV", TypeOPT: "OPT", TypeDNAME: "DNAME", 13: "HINFO", 35: "NAPTR", 43: "DS",
	46: "RRSIG", 47: "NSEC", 48: "DNSKEY", 50: "NSEC3", 51: "NSEC3PARAM", 52: "TLSA", 44: "SSHFP", 64: "SVCB",
	65: "HTTPS", 99: "SPF", 255: "ANY", 257: "CAA",
}

// String returns the mnemonic of a type.
func (t Type) String() string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return "TYPE" + strconv.Itoa(int(t))
}

// ParseType reads the mnemonic of a type in any case, TYPE123 and 123 included.
func ParseType(s string) (Type, error) {
	upper := strings.ToUpper(s)
	for t, name := range typeNames {
		if name == upper {
			return t, nil
		}
	}
	// The number alone is how captures of packets are printed.
	if n, err := strconv.ParseUint(strings.TrimPrefix(upper, "TYPE"), 10, 16); err == nil {
		return Type(n), nil
	}
	return 0, fmt.Errorf("read record type %.80q: it is neither a mnemonic nor TYPE and a number", s)
}

// RCode is a response code, of twelve bits with EDNS.
type RCode uint16

// The response codes that the load has expectations about.
const (
	NoError        RCode = 0
	FormatError    RCode = 1
	ServerFailure  RCode = 2
	NameError      RCode = 3 // NXDOMAIN
	NotImplemented RCode = 4
	Refused        RCode = 5
	BadVersion     RCode = 16
)

var codeNames = map[RCode]string{
	NoError: "NOERROR", FormatError: "FORMERR", ServerFailure: "SERVFAIL", NameError: "NXDOMAIN",
	NotImplemented: "NOTIMP", Refused: "REFUSED", 6: "YXDOMAIN", 7: "YXRRSET", 8: "NXRRSET", 9: "NOTAUTH",
	10: "NOTZONE", BadVersion: "BADVERS", 23: "BADCOOKIE",
}

// String returns the mnemonic of a response code.
func (r RCode) String() string {
	if name, ok := codeNames[r]; ok {
		return name
	}
	return "RCODE" + strconv.Itoa(int(r))
}

// ParseRCode reads the mnemonic of a response code in any case.
func ParseRCode(s string) (RCode, error) {
	for r, name := range codeNames {
		if strings.EqualFold(name, s) {
			return r, nil
		}
	}
	return 0, fmt.Errorf("read response code %q: no response code has this name", s)
}

// Kind is a fault of a received message.
type Kind uint8

// The kinds. The first is no fault. Those before OtherServer are seen in a message alone, the
// others need what was sent.
const (
	Sound           Kind = iota
	Short                // fewer octets than a header
	NotAnAnswer          // the bit of a response is not set
	OtherOpcode          // the answer to something else than a query
	NoQuestion           // the answer repeats no question, or several
	OtherQuestion        // name, type or class differ from what was asked
	CompressionLoop      // a compressed name points at itself or ahead
	Malformed            // a record or name does not fit the message
	Trailing             // octets after the last record
	BadEDNS              // two OPT records, or one with a name
	Oversize             // more octets than the query allowed
	OtherCode            // another response code than the list of names expects
	OtherContent         // none of the addresses that the list of names expects
	UnknownID            // no query with this id is waiting
	OtherServer          // sent from another address or port than the server's
	Kinds                // how many there are
)

var kindNames = [Kinds]string{"sound", "short", "not-an-answer", "other-opcode", "no-question", "other-question",
	"compression-loop", "malformed", "trailing-octets", "bad-edns", "oversize", "other-code", "other-content",
	"unknown-id", "other-server"}

// String returns the kind as documents name it.
func (k Kind) String() string {
	if k < Kinds {
		return kindNames[k]
	}
	return "kind-" + strconv.Itoa(int(k))
}
