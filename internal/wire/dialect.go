package wire

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// dialectHeadBytes is how many of an unknown peer's first bytes are examined.
const dialectHeadBytes = 64

// Dialect guesses the sender's protocol from the first bytes of a connection or datagram, for
// messages to people: "HTTP", "SSH", "TLS", "iperf3", "iperf2", "nuttcp", "ttcp", "sockperf",
// "netperf", "STAMP", "nothing but zeros", … and "something unknown".
func Dialect(head []byte) string {
	head = head[:min(len(head), dialectHeadBytes)]
	if len(head) == 0 {
		return "nothing"
	}
	// Distinct beginnings come first; a test of a single byte or of numbers at fixed offsets would
	// match too much before them.
	for _, d := range dialects {
		if d.speaks(head) {
			return d.name
		}
	}
	return "something unknown"
}

// dialects are tried in this order.
var dialects = []struct {
	name   string
	speaks func(head []byte) bool
}{
	{"linerate data", func(b []byte) bool {
		return strings.HasPrefix(string(b),
			dataMagic[:min(len(b), len(dataMagic))])
	}},
	{"SSH", func(b []byte) bool { return strings.HasPrefix(string(b), "SSH-") }},
	{"HTTP", isHTTP},
	// The greeting of a control connection, and the first and last datagrams of a test.
	{"nuttcp", func(b []byte) bool { return hasPrefix(b, "HELO nuttcp", "BOD0", "BOD1", "EOD0") }},
	{"SMTP or FTP", func(b []byte) bool { return hasPrefix(b, "220 ", "220-") }},
	// A record of type handshake or alert (RFC 8446 §5.1).
	{"TLS", func(b []byte) bool { return len(b) >= 3 && (b[0] == 0x16 || b[0] == 0x15) && b[1] == 3 }},
	{"iperf3", isIperf3},
	{"iperf2", isIperf2},
	// The classic pattern: all printable characters in order, over and over.
	{"ttcp", func(b []byte) bool { return len(b) >= 8 && strings.HasPrefix(ttcpPattern, string(b)) }},
	{"nothing but zeros", func(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }},
	{"netperf", isNetperf},
	{"sockperf", isSockperf},
	{"STAMP", isSTAMP},
}

// ttcpPattern is the beginning of the payload of ttcp and nuttcp.
const ttcpPattern = " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"

func hasPrefix(b []byte, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(string(b), p) {
			return true
		}
	}
	return false
}

// isHTTP reports whether b is a request line, a status line, or the preface of HTTP/2 (RFC 9113
// §3.4).
func isHTTP(b []byte) bool {
	return hasPrefix(b, "HTTP/", "GET ", "HEAD ", "POST ", "PUT ", "OPTIONS ", "CONNECT ", "DELETE ", "PATCH ",
		"TRACE ", "PRI * HTTP/2")
}

// isIperf3 reports whether b is one of these: the 36 characters of lower-case base 32 and the NUL
// that a client sends first, or a large part of them; the server's single state byte in answer to
// 37 bytes; the hello of a UDP stream or its answer, as text since 3.12, before as a number in
// either byte order.
func isIperf3(b []byte) bool {
	switch len(b) {
	case 1:
		return b[0] == 9 || b[0] == 11 || b[0] >= 0xfe // PARAM_EXCHANGE, SERVER_TERMINATE, SERVER_ERROR, ACCESS_DENIED
	case 4:
		if n := binary.LittleEndian.Uint32(b); hasPrefix(b, "9876", "6789") || n == 123456789 || n == 987654321 {
			return true
		}
		n := binary.BigEndian.Uint32(b)
		return n == 123456789 || n == 987654321
	}
	cookie := b[:min(len(b), 36)]
	if len(cookie) < 16 {
		return false
	}
	for _, c := range cookie {
		if (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return len(b) <= 36 || b[36] == 0
}

// isIperf2 reports whether b is the settings of a client or the payload of a sending server, which
// is digits. The settings begin with a word of flags: its high half announces an extended header
// (0x4001), and its low half holds the length of that header. They come first over TCP, and after
// 16 bytes of numbering over UDP.
func isIperf2(b []byte) bool {
	settings := func(b []byte) bool {
		return len(b) >= 4 && b[0]&0x40 != 0 && b[1] == 1 && b[2] <= 1 && b[3]&1 == 0 && b[3] != 0
	}
	switch {
	case settings(b):
		return true
	case len(b) >= 20 && settings(b[16:]):
		return binary.BigEndian.Uint32(b[8:]) < 1_000_000 // microseconds of the sender's clock
	}
	const digits = "0123456789012345678901234567890123456789"
	return len(b) >= 4 && strings.HasPrefix(digits, string(b[:min(len(b), 40)]))
}

// isNetperf reports whether b is a request on a control connection: 656 bytes of words in network
// byte order, of which the first is the type and the second is unused. The types that begin a
// connection are the settings that precede a test, and the tests.
func isNetperf(b []byte) bool {
	if len(b) < 16 || binary.BigEndian.Uint32(b[4:]) != 0 {
		return false
	}
	switch binary.BigEndian.Uint32(b) {
	case 1, 2, 4, 5, 6, 10, 13, 16, 19, 34, 70, 73, 94, 97, 300, 600:
		return true
	}
	return false
}

// isSockperf reports whether b is a message header: 64 bits of number, 16 of flags (1 from the
// client, 2 answer requested, 4 warm-up), 32 of length.
func isSockperf(b []byte) bool {
	if len(b) < 14 {
		return false
	}
	flags, length := binary.BigEndian.Uint16(b[8:]), binary.BigEndian.Uint32(b[10:])
	return binary.BigEndian.Uint64(b) < 1<<40 && flags >= 1 && flags <= 7 && length >= 14 && length <= 65507
}

// isSTAMP reports whether b is a test packet of a sender (RFC 8762 §4.2.1) or of TWAMP light:
// number, NTP time of this century, an error estimate with a nonzero multiplier, and zeros up to
// byte 44 if the packet is that long.
func isSTAMP(b []byte) bool {
	if len(b) < 14 || binary.BigEndian.Uint32(b) >= 1<<24 || b[4] < 0xc0 || b[13] == 0 {
		return false
	}
	return len(b) < 44 || len(bytes.Trim(b[16:44], "\x00")) == 0
}
