package procfs

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// BoundSocket is one line of the tables of sockets: a UDP socket, or a TCP socket in one of its
// states.
type BoundSocket struct {
	Local   netip.AddrPort // IPv4 addresses in IPv6 form are IPv4
	State   int            // as in include/net/tcp_states.h: 10 listens, 1 is established
	Queued  uint64         // of UDP and a connection bytes, of a listener connections
	Inode   uint64
	Drops   uint64 // of a UDP socket, since it was opened; 0 for TCP
	Foreign netip.AddrPort
}

// ParseSocketTable reads /proc/net/{udp,udp6,tcp,tcp6} (udp4_format_sock in net/ipv4/udp.c,
// get_tcp4_sock in net/ipv4/tcp_ipv4.c). Addresses are words of 32 bits in host byte order, given
// by bigEndian; ports are not swapped. A UDP line has 13 columns, the last of them drops (since
// Linux 2.6.27).
func ParseSocketTable(b []byte, bigEndian bool) ([]BoundSocket, error) {
	var all []BoundSocket
	datagrams := false
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if f[0] == "sl" {
			datagrams = f[len(f)-1] == "drops"
			continue
		}
		if len(f) < 10 || datagrams && len(f) < 13 {
			return all, fmt.Errorf("line %.60q: %w", line, ErrFormat)
		}
		var s BoundSocket
		var ok [3]bool
		s.Local, ok[0] = socketAddress(f[1], bigEndian)
		s.Foreign, ok[1] = socketAddress(f[2], bigEndian)
		state, err := strconv.ParseUint(f[3], 16, 8)
		_, queued, cut := strings.Cut(f[4], ":")
		n, errQueued := strconv.ParseUint(queued, 16, 64)
		inode, errInode := strconv.ParseUint(f[9], 10, 64)
		ok[2] = err == nil && cut && errQueued == nil && errInode == nil
		if datagrams {
			s.Drops, err = strconv.ParseUint(f[12], 10, 64)
			ok[2] = ok[2] && err == nil
		}
		if !ok[0] || !ok[1] || !ok[2] {
			return all, fmt.Errorf("line %.60q: %w", line, ErrFormat)
		}
		s.State, s.Queued, s.Inode = int(state), n, inode
		all = append(all, s)
	}
	return all, nil
}

// socketAddress reads 0100007F:0035.
func socketAddress(text string, bigEndian bool) (netip.AddrPort, bool) {
	words, port, ok := strings.Cut(text, ":")
	p, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || len(words) != 8 && len(words) != 32 {
		return netip.AddrPort{}, false
	}
	b := make([]byte, 0, 16)
	for i := 0; i < len(words); i += 8 {
		w, err := strconv.ParseUint(words[i:i+8], 16, 32)
		if err != nil {
			return netip.AddrPort{}, false
		}
		if bigEndian {
			b = append(b, byte(w>>24), byte(w>>16), byte(w>>8), byte(w))
		} else {
			b = append(b, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
		}
	}
	a, _ := netip.AddrFromSlice(b) // 4 or 16 bytes
	return netip.AddrPortFrom(a.Unmap(), uint16(p)), true
}

// UnixListener is a listening socket of the local host with a path.
type UnixListener struct {
	Inode uint64
	Path  string // as the program bound it; @ marks an abstract name
}

// ParseUnixListeners reads /proc/net/unix (unix_seq_show in net/unix/af_unix.c): Num RefCount
// Protocol Flags Type St Inode Path. The flag 0x10000 marks a socket that listens (__SO_ACCEPTCON).
func ParseUnixListeners(b []byte) []UnixListener {
	var all []UnixListener
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.Join(strings.Fields(line), " "), " ", 8)
		if len(f) < 8 || f[0] == "Num" {
			continue
		}
		flags, err := strconv.ParseUint(f[3], 16, 32)
		inode, errInode := strconv.ParseUint(f[6], 10, 64)
		if err == nil && errInode == nil && flags&0x10000 != 0 {
			all = append(all, UnixListener{inode, f[7]})
		}
	}
	return all
}

// ParseSchedStat reads /proc/PID/task/TID/schedstat (proc_pid_schedstat in fs/proc/base.c): the
// time that the thread ran, and the time that it waited for a CPU, in nanoseconds.
func ParseSchedStat(b []byte) (run, wait uint64, err error) {
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0, 0, fmt.Errorf("schedstat %.60q: %w", b, ErrFormat)
	}
	run, err1 := strconv.ParseUint(f[0], 10, 64)
	wait, err2 := strconv.ParseUint(f[1], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, 0, fmt.Errorf("schedstat %.60q: %w", b, ErrFormat)
	}
	return run, wait, nil
}
