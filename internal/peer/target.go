package peer

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/dialect"
	"github.com/linerate/linerate/internal/wire"
)

// DefaultPort is where `linerate serve` listens by default.
const DefaultPort = 7070

// ErrTarget reports a target that is malformed, or of a kind that this version cannot reach: a
// mistake in what the user typed.
var ErrTarget = errors.New("bad target")

// Target is a far host as users type it.
type Target struct {
	Addr string          // host:port of a running serve; empty for ssh
	SSH  *wire.SSHTarget // nil for a running serve
}

// String returns the target as users type it.
func (t Target) String() string {
	if t.SSH != nil {
		return t.SSH.String()
	}
	return t.Addr
}

// ParseTarget parses HOST[:PORT] (default port 7070; IPv6 addresses with or without brackets) or
// ssh://[USER@]HOST[:PORT]. Errors are ErrTarget.
func ParseTarget(text string) (Target, error) {
	bad := func(format string, args ...any) (Target, error) {
		return Target{}, fmt.Errorf("%w %q: %s", ErrTarget, text, fmt.Sprintf(format, args...))
	}
	if scheme, _, has := strings.Cut(text, "://"); has {
		switch {
		case scheme == "ssh":
			t, err := wire.ParseSSHTarget(text)
			if err != nil {
				return Target{}, fmt.Errorf("%w: %w", ErrTarget, err)
			}
			return Target{SSH: &t}, nil
		case scheme == "iperf":
			return bad("iperf2 and iperf3 do not understand each other; write which of the two runs there, as in iperf3://HOST")
		case slices.Contains(dialect.Names(), scheme):
			return bad("%s can be measured and diagnosed and nothing else; run `linerate serve` there, or use ssh://",
				scheme)
		}
		return bad("%s:// is not known; the forms are HOST[:PORT] and ssh://[USER@]HOST[:PORT], "+
			"and for measure and diagnose those of other programs, as in iperf3://HOST[:PORT]", scheme)
	}
	host, port := text, strconv.Itoa(DefaultPort)
	literal := text
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		literal = text[1 : len(text)-1]
	}
	// Addresses come first: otherwise the colons of a bare IPv6 address would separate a port. The
	// zone of an address may contain anything; a bracket in it means that the text is no plain
	// address.
	if a, err := netip.ParseAddr(literal); err == nil && !strings.ContainsAny(literal, "[]") {
		host = a.String()
	} else if strings.Contains(text, ":") {
		h, p, err := net.SplitHostPort(text)
		if err != nil {
			return bad("the form is HOST[:PORT], with an IPv6 address in brackets")
		}
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			if h == "disk" {
				return bad("disk:PATH goes with tune alone; `linerate disk PATH` measures a disk")
			}
			return bad("port %q is not a number from 1 to 65535", p)
		}
		host, port = h, p
	}
	switch {
	case host == "":
		return bad("no host; the form is HOST[:PORT]")
	case strings.Contains(host, "@"):
		return bad("a user goes with ssh only: ssh://%s", text)
	case strings.HasPrefix(host, "-") ||
		strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || strings.ContainsRune("/[]\"'", r) }):
		return bad("%q is not a host name or address", host)
	}
	return Target{Addr: net.JoinHostPort(host, port)}, nil
}
