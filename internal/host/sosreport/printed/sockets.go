package printed

import (
	"math"
	"net/netip"
	"strconv"
	"strings"
)

// Socket is one socket of TCP or UDP as ss(8) shows it.
type Socket struct {
	Protocol string // tcp or udp
	State    string // LISTEN, ESTAB, UNCONN, …: ss's words
	// ReceiveQueue and SendQueue are bytes; for a listener the connections that wait to be accepted
	// and their limit.
	ReceiveQueue, SendQueue uint32
	Local, Remote           netip.AddrPort // Remote is invalid without a peer
	// the kernel's number of the socket, good until the host restarts; 0: not known
	Cookie uint64
	Memory SocketMemory
}

// SocketMemory is what a socket holds and may hold (skmem of ss(8), SK_MEMINFO of sock_diag(7));
// zero if ss ran without -m.
type SocketMemory struct {
	ReceiveBytes      int64  // r
	ReceiveLimitBytes int64  // rb
	SendBytes         int64  // t
	SendLimitBytes    int64  // tb
	ForwardBytes      int64  // f
	QueuedBytes       int64  // w
	OptionBytes       int64  // o
	BacklogBytes      int64  // bl
	Drops             uint64 // d: 32 bits in the kernel
}

// ParseSockets parses "ss -peaonmi": a line for each socket, and since iproute2 4 the output of -m
// and -i on a line of its own after a tab. Sockets of other protocols, and of Unix, are left out.
func ParseSockets(text string) []Socket {
	var all []Socket
	var last *Socket // that the next line may continue; nil: of a kind that is left out
	for line := range lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if line[0] != '\t' && line[0] != ' ' {
			s, ok := parseSocket(words)
			if last = nil; !ok {
				continue
			}
			all = append(all, s)
			last = &all[len(all)-1]
		}
		if last == nil {
			continue
		}
		// Older versions print everything on one line, so each line is searched whole.
		for _, w := range words {
			if cookie, ok := strings.CutPrefix(w, "sk:"); ok {
				last.Cookie, _ = strconv.ParseUint(cookie, 16, 64) // An invalid number stays unknown.
			}
			if memory, ok := strings.CutPrefix(w, "skmem:("); ok {
				last.Memory = parseMemory(strings.TrimSuffix(memory, ")"))
			}
		}
	}
	return all
}

// parseSocket parses "tcp LISTEN 2 1 127.0.0.1:5000 0.0.0.0:* …".
func parseSocket(words []string) (Socket, bool) {
	if len(words) < 6 || words[0] != "tcp" && words[0] != "udp" {
		return Socket{}, false
	}
	s := Socket{Protocol: words[0], State: words[1]}
	var ok, okSend, okLocal bool
	s.ReceiveQueue, ok = small(words[2])
	s.SendQueue, okSend = small(words[3])
	s.Local, okLocal = parseEndpoint(words[4])
	s.Remote, _ = parseEndpoint(words[5]) // "0.0.0.0:*" is no peer.
	return s, ok && okSend && okLocal
}

// parseEndpoint parses "127.0.0.1:22", "[::1]:22", "*:22" (any address of both versions),
// "127.0.0.53%lo:53", "[fe80::1]%eth0:546".
func parseEndpoint(text string) (netip.AddrPort, bool) {
	colon := strings.LastIndexByte(text, ':')
	if colon < 0 {
		return netip.AddrPort{}, false
	}
	port, err := strconv.ParseUint(text[colon+1:], 10, 16)
	if err != nil {
		return netip.AddrPort{}, false
	}
	// The interface after % is outside the brackets, where no parser of addresses expects it; it is
	// not needed here.
	host, _, _ := strings.Cut(text[:colon], "%")
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	// An IPv6 socket that accepts IPv4 as well; one for IPv4 only is printed as 0.0.0.0.
	if host == "*" {
		host = "::"
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(port)), true
}

// parseMemory parses "r0,rb131072,t0,tb16384,f0,w0,o0,bl0,d0": letters and a number each; bl came
// with Linux 3.4 and d with 4.7.
func parseMemory(text string) SocketMemory {
	var m SocketMemory
	into := map[string]*int64{
		"r": &m.ReceiveBytes, "rb": &m.ReceiveLimitBytes, "t": &m.SendBytes, "tb": &m.SendLimitBytes,
		"f": &m.ForwardBytes, "w": &m.QueuedBytes,
		"o": &m.OptionBytes, "bl": &m.BacklogBytes,
	}
	for part := range strings.SplitSeq(text, ",") {
		name := strings.TrimRight(part, "0123456789")
		n, ok := count(part[len(name):])
		switch field := into[name]; {
		case !ok || n > math.MaxInt64:
		case field != nil:
			*field = int64(n)
		case name == "d":
			m.Drops = n
		}
	}
	return m
}
