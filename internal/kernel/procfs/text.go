package procfs

import (
	"bytes"
	"strconv"
	"strings"
)

// ParseUint reads a decimal number of the kernel, without sign and blanks. A few columns are
// printed signed (snmp's Tcp.MaxConn is -1 for "dynamic", RFC 1213). Those are not counts, and the
// result is false, as for anything that does not fit 64 bits.
//
// It replaces strconv.ParseUint, which takes a string: seven hundred conversions per reading would
// be seven hundred allocations.
func ParseUint(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	// A byte below '0' becomes a large d, so one comparison catches both sides.
	var n uint64
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || n > (1<<64-1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// parseHex reads one column of softnet_stat: lower-case digits as printed by %08x, up to the 16
// that fit 64 bits.
func parseHex(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 16 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return 0, false
		}
		n = n<<4 | uint64(c)
	}
	return n, true
}

// word splits the next blank-separated word from line. It replaces bytes.Fields because it does not
// allocate.
func word(line []byte) (first, rest []byte) {
	start := 0
	for start < len(line) && (line[start] == ' ' || line[start] == '\t') {
		start++
	}
	end := start
	for end < len(line) && line[end] != ' ' && line[end] != '\t' {
		end++
	}
	return line[start:end], line[end:]
}

// cutLine splits the next line off b.
func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte{'\n'})
	return line, rest
}

// KernelAtLeast reports whether a release such as "6.18.44-fc" or "5.14.0-503.el9"
// (/proc/sys/kernel/osrelease) is at least a version. It is false for an unreadable release.
// Distributions backport later work into kernels with an early number. Use it only for behaviour
// that no file reveals; if a file or a column exists, check that instead.
func KernelAtLeast(release string, major, minor int) bool {
	first, rest, _ := strings.Cut(release, ".")
	// The second number ends before any suffix: ".0", "-rc1", "+" or nothing.
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	maj, err := strconv.Atoi(first)
	if err != nil {
		return false
	}
	min, err := strconv.Atoi(rest[:end])
	if err != nil {
		return false
	}
	return maj > major || maj == major && min >= minor
}
