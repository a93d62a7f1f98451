package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/wire"
)

// firstBytes are the beginnings of connections and datagrams as the real programs send them, by the
// name shown to people.
var firstBytes = map[string][]string{
	"nothing":       {""},
	"linerate data": {"L", "LNRD2\n", "LNRD2\n123"},
	"SSH":           {"SSH-2.0-OpenSSH_9.2p1\r\n"},
	"HTTP": {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
	"nuttcp":      {"HELO nuttcp v6.1.2\n", "BOD0 !\"#$"},
	"SMTP or FTP": {"220 mail.example ESMTP\r\n", "220-ftp\r\n"},
	"TLS":         {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "\x15\x03\x03\x00\x02\x02\x28"},
	"iperf3": {
		"abcdefghijklmnopqrstuvwxyz234567abcd\x00", "abcdefghijklmnopqrstuvwxyz23",
		"\x09", "\xff", "\xfe", "9876", "6789", "\x15\xcd\x5b\x07", "\x07\x5b\xcd\x15",
	},
	"iperf2": {
		"\x40\x01\x00\x78\x00\x00\x00\x01\x00\x00\x13\x89\x00\x02\x00\x00\x00\x00\x00\x00\xff\xff\xff\x9c",
		"\x44\x01\x00\xa0\x00\x00\x00\x01",
		"0123456789012345678901234567890123456789",
		"\x00\x00\x00\x01\x67\x3d\xaa\xbb\x00\x01\x02\x03\x00\x00\x00\x00\x48\x01\x00\x98\x00\x00\x00\x01\x00\x00" +
			"\x13\x89",
	},
	"ttcp":              {" !\"#$%&'()*+,-./0123456789:;<=>?"},
	"nothing but zeros": {strings.Repeat("\x00", 64), "\x00"},
	"netperf": {
		"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"\x00\x00\x00\x61\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00",
	},
	"sockperf": {"\x00\x00\x00\x00\x00\x00\x00\x07\x00\x03\x00\x00\x00\x40rest of the message"},
	"STAMP": {
		"\x00\x00\x00\x00\xec\x11\x22\x33\x44\x55\x66\x77\x80\x01" + strings.Repeat("\x00", 30),
		"\x00\x00\x00\x09\xec\x11\x22\x33\x44\x55\x66\x77\x00\x01", // TWAMP light of 14 bytes
	},
	"something unknown": {"Lorem ipsum dolor sit amet", "\xde\xad\xbe\xef", "abc"},
}

func TestDialect(t *testing.T) {
	for want, heads := range firstBytes {
		for _, head := range heads {
			if got := wire.Dialect([]byte(head)); got != want {
				t.Errorf("%q: got %s, want %s", head, got, want)
			}
		}
	}
}

// FuzzDialect checks that every beginning gets one of the known names, and that no more bytes are
// examined than promised.
func FuzzDialect(f *testing.F) {
	for _, heads := range firstBytes {
		for _, head := range heads {
			f.Add([]byte(head))
		}
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		name := wire.Dialect(head)
		if _, known := firstBytes[name]; !known {
			t.Fatalf("%q: unknown name %q", head, name)
		}
		if len(head) >= 64 {
			if long := wire.Dialect(append(bytes.Clone(head), 'x')); long != name {
				t.Fatalf("with one more byte the result is %s instead of %s", long, name)
			}
		}
	})
}
