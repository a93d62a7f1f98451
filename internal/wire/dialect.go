package wire

import (
	"bytes"
	"strings"
)

// dialectHeadBytes is how much of a stranger's first bytes is looked at.
const dialectHeadBytes = 64

// Dialect guesses from the first bytes of a connection what its sender speaks, for messages to people: "HTTP", "SSH", "TLS",
// "iperf3", "iperf2", "nothing but zeros", … and "something unknown".
func Dialect(head []byte) string {
	// Clear beginnings come first; what is told by a single byte or a set of letters would match too much before them.
	text := string(head)
	switch {
	case len(head) == 0:
		return "nothing"
	case strings.HasPrefix(text, dataMagic[:min(len(text), len(dataMagic))]):
		return "linerate data"
	case strings.HasPrefix(text, "SSH-"):
		return "SSH"
	case strings.HasPrefix(text, "HTTP/") || hasHTTPMethod(text):
		return "HTTP"
	case strings.HasPrefix(text, "HELO nuttcp"):
		return "nuttcp"
	case strings.HasPrefix(text, "220 ") || strings.HasPrefix(text, "220-"):
		return "SMTP or FTP"
	case len(head) >= 3 && (head[0] == 0x16 || head[0] == 0x15) && head[1] == 3:
		return "TLS"
	case isIperf3Cookie(head):
		return "iperf3"
	case len(head) == 1 && (head[0] == 9 || head[0] == 0xff):
		return "iperf3" // the server's state bytes PARAM_EXCHANGE and ACCESS_DENIED in answer to 37 bytes
	case len(head) >= 4 && head[0]&0x40 != 0 && head[1] == 1 && head[2] == 0:
		return "iperf2" // flags word: extended header present, its length in the low half
	case strings.HasPrefix("0123456789012345678901234567890123456789", text[:min(len(text), 40)]) && len(text) >= 4:
		return "iperf2"
	case len(bytes.Trim(head, "\x00")) == 0:
		return "nothing but zeros"
	}
	return "something unknown"
}

// hasHTTPMethod tells a request line of HTTP.
func hasHTTPMethod(text string) bool {
	for _, method := range []string{"GET ", "HEAD ", "POST ", "PUT ", "OPTIONS ", "CONNECT ", "DELETE ", "PRI * HTTP/2"} {
		if strings.HasPrefix(text, method) {
			return true
		}
	}
	return false
}

// isIperf3Cookie tells the 36 characters of lower-case base 32 and the NUL that an iperf3 client sends first, or a good part of them.
func isIperf3Cookie(head []byte) bool {
	cookie := head[:min(len(head), 36)]
	if len(cookie) < 16 {
		return false
	}
	for _, c := range cookie {
		if (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return len(head) <= 36 || head[36] == 0
}
