package advice

import (
	"fmt"
	"strings"
)

// specials are the settings whose value has to be computed with before anything can be said.
var specials = map[string]func(value string) (rule, bool){
	"sysctl:net.ipv4.tcp_mem":  func(value string) (rule, bool) { return memory(value, "TCP", 16) },
	"sysctl:net.ipv4.udp_mem":  func(value string) (rule, bool) { return memory(value, "UDP", 8) },
	"sysctl:net.ipv4.tcp_rmem": func(value string) (rule, bool) { return tcpBuffer(value, "receive", 64<<10) },
	"sysctl:net.ipv4.tcp_wmem": func(value string) (rule, bool) { return tcpBuffer(value, "send", 16<<10) },
	"netsh:ip/dynamicport":     portRange,
	"netsh:ipv6/dynamicport":   portRange,
}

// portRange finds the ranges of ports that netsh refuses: a first port and a number of ports that
// go past the last one.
func portRange(value string) (rule, bool) {
	start, ok := numberAt(value, 0)
	count, ok2 := numberAt(value, 1)
	if !ok || !ok2 || start >= 1025 && count >= 255 && start+count <= 1<<16 {
		return rule{}, false
	}
	return rule{
		Verdict: Ignored, Today: "start=1025 num=64511 is the most there is",
		Why:    "netsh refuses it: the first port is at least 1025, there are at least 255, and none above 65535.",
		Source: "learn.microsoft.com: article 929851",
	}, true
}

// tcpBuffer judges the first two numbers of tcp_rmem and tcp_wmem, which pages copy from the third
// or leave at the sizes of the 1990s. The facts judge the third. The initial size has grown over
// the releases: smallest, in bytes, is below all of its defaults (87380 of Linux 2.4 for receiving,
// 16384 for sending).
func tcpBuffer(value, direction string, smallest int64) (rule, bool) {
	least, ok := numberAt(value, 0)
	start, ok2 := numberAt(value, 1)
	if !ok || !ok2 {
		return rule{}, false
	}
	r := rule{
		Verdict: Harmful, Today: "leave the first two numbers at their defaults",
		Source: "Documentation/networking/ip-sysctl.rst (tcp_rmem, tcp_wmem); tcp(7)",
	}
	const large = 1 << 20 // 1 MiB for each of a thousand connections is a gigabyte
	switch most, ok := numberAt(value, 2); {
	case ok && most < start:
		r.Why = fmt.Sprintf(
			"The third number, to which a buffer may grow, is below the second, with which it starts: it stays at %d bytes.",
			start)
	case start >= 4*large && least < large:
		r.Why = fmt.Sprintf(
			"The second number is what every connection starts with: %s for each, which automatic growth gives only to those "+
				"that can use it.", mebibytes(start))
	case least >= large:
		r.Why = fmt.Sprintf(
			"The first number is what every connection may keep while memory is short: %s for each, "+
				"so that a thousand idle ones can hold %s.",
			mebibytes(least), mebibytes(1000*min(least, 1<<40)))
	case start < smallest:
		// The window that is offered is the part of the buffer that the kernel takes for payload,
		// half of it until it has measured more.
		of := ""
		if direction == "receive" {
			of = ", and about half of it is the first window"
		}
		r.Why = fmt.Sprintf(
			"The second number is what every connection starts with%s: %d bytes is under every default there has been, "+
				"and the first round trips carry less.", of, start)
	default:
		return rule{}, false
	}
	return r, true
}

// mebibytes writes an amount of memory in MiB or GiB, without a fraction.
func mebibytes(bytes int64) string {
	if bytes >= 10<<30 {
		return fmt.Sprintf("%d GiB", bytes>>30)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// pageBytes is the size of a page on nearly every machine that tuning advice is written for.
const pageBytes = 4096

// memory judges tcp_mem and udp_mem, which count pages of the whole host and are often mistaken for
// bytes of one socket.
//
// The kernel sets the middle number of tcp_mem to a sixteenth of the memory that can hold buffers
// and the last one to 3/32 of it (tcp_init_mem in net/ipv4/tcp.c; 575796 pages on a host of 23.5
// GiB with Linux 6.18); those of udp_mem are twice as large (udp_init). part is that sixteenth or
// eighth. This gives the host size above which given numbers are lower than the kernel's choice.
func memory(value, protocol string, part int64) (rule, bool) {
	low, ok := numberAt(value, 0)
	pressure, ok2 := numberAt(value, 1)
	high, ok3 := numberAt(value, 2)
	if !ok || !ok2 || !ok3 || low <= 0 || pressure <= 0 || pressure > 1<<40 || high > 1<<40 {
		return rule{}, false
	}
	source := "Documentation/networking/ip-sysctl.rst (" + strings.ToLower(protocol) + "_mem, in pages); net/ipv4/tcp.c " +
		"(tcp_init_mem); net/ipv4/udp.c (udp_init)"
	// The order is that of plainness: numbers that are surely bytes, numbers too large for any
	// host, and the rest.
	host := pressure * part * pageBytes >> 30 // GiB of memory at which the kernel would choose the same
	r := rule{Verdict: Harmful, Source: source, Today: "leave it out"}
	switch {
	// 87380 and 16384 are the second numbers of tcp_rmem and tcp_wmem in tcp(7), and of no other
	// setting.
	case strings.Contains(value, "87380") || strings.Contains(value, "16384 ") && low == pageBytes:
		r.Why = fmt.Sprintf(
			"The numbers are those of tcp_rmem or tcp_wmem, in bytes. Here they count pages of the whole host: "+
				"%s is under memory pressure from %d MiB on.", protocol, pressure*pageBytes>>20)
	case high >= 16<<30/pageBytes:
		r.Why = fmt.Sprintf(
			"Counts pages, not bytes: this lets %s take %d GiB before it is limited, which the kernel itself allows on "+
				"hosts of %d GiB and more. On a smaller one it is no limit at all.", protocol, high*pageBytes>>30,
			high*pageBytes*part*2/3>>30)
	default:
		r.Why = fmt.Sprintf(
			"A cap in pages for all sockets together (pressure at %d MiB), which the kernel works out from the memory of "+
				"the host. This one is lower than the default on every host with more than %d GiB. On a smaller one it lets them "+
				"take more than the kernel would. It makes no single one faster.",
			pressure*pageBytes>>20, max(host, 1))
	}
	return r, true
}

// elsewhere names the counterpart of a setting on another system, where there is one that does the
// same. A pair of settings that merely sound alike would be the next wrong page, and is left out.
func elsewhere(s Setting, o OS) string {
	bare := s.Knob[strings.LastIndexAny(s.Knob, `/\:.`)+1:]
	return counterparts[strings.ToLower(bare)][o.family()]
}

// receive, send and ceiling are what the systems call the same three things.
var (
	receive = map[OS]string{
		Linux: "net.ipv4.tcp_rmem (its default grows automatically)", FreeBSD: "net.inet.tcp.recvbuf_max",
		Solaris: "ipadm set-prop -p recv_buf=BYTES tcp",
		Windows: "netsh int tcp set global autotuninglevel=normal (the default)",
	}
	send = map[OS]string{
		Linux: "net.ipv4.tcp_wmem (its default grows automatically)", FreeBSD: "net.inet.tcp.sendbuf_max",
		Solaris: "ipadm set-prop -p send_buf=BYTES tcp", Windows: "nothing: the send buffer follows the connection",
	}
	ceiling = map[OS]string{
		Linux: "net.core.rmem_max and net.core.wmem_max", FreeBSD: "kern.ipc.maxsockbuf",
		Solaris: "ipadm set-prop -p max_buf=BYTES tcp",
	}
	scaling = map[OS]string{
		Linux: "net.ipv4.tcp_window_scaling=1 (the default)", FreeBSD: "net.inet.tcp.rfc1323=1 (the default)",
		Solaris: "ipadm set-prop -p _wscale_always=1 tcp (the default)",
		Windows: "netsh int tcp set global autotuninglevel=normal (the default)",
	}
)

// counterparts maps the last part of a name, in small letters, to what has its effect elsewhere.
// Only buffers and window scaling have one on every system; timers and queues differ too much in
// what they mean.
var counterparts = map[string]map[OS]string{
	"tcp_rmem": receive, "recvspace": receive, "tcp_recv_hiwat": receive, "recv_buf": receive, "tcpwindowsize": receive,
	"recvbuf_max": receive,
	"tcp_wmem":    send, "sendspace": send, "tcp_xmit_hiwat": send, "send_buf": send, "sendbuf_max": send,
	"rmem_max": ceiling, "wmem_max": ceiling, "maxsockbuf": ceiling, "tcp_max_buf": ceiling, "max_buf": ceiling,
	"globalmaxtcpwindowsize": ceiling,
	"tcp_window_scaling":     scaling, "rfc1323": scaling, "tcp1323opts": scaling, "tcp_wscale_always": scaling,
}
