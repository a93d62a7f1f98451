package wire

import (
	"errors"
	"net"
	"os"
	"strings"
)

// What may come of reaching another linerate. Every error of Dial, DialData, SSH and of a Conn that
// broke is an *Error of one of these kinds, unless the caller's own context ended it.
var (
	// ErrUnreachable: no connection came about: unknown host, closed port, no route, or no answer
	// in time.
	ErrUnreachable = errors.New("peer unreachable")
	// ErrPortTaken: the port of this end that was asked for has a connection already.
	ErrPortTaken = errors.New("local port taken")
	// ErrWrongKey: a linerate answers, but it was started with another key.
	ErrWrongKey = errors.New("wrong key")
	// ErrNotLinerate: something answers, but it does not speak this protocol.
	ErrNotLinerate = errors.New("not linerate")
	// ErrPeerGone: the connection was up and ended: closed, reset, or silent for too long.
	ErrPeerGone = errors.New("peer gone")
	// ErrProtocol: the peer is authentic but sent something that is no message.
	ErrProtocol = errors.New("protocol violated")
)

// Error says which step with which peer went wrong, of what kind, and what to do about it.
// errors.Is sees both Kind and Err.
type Error struct {
	Op     string // connect to, open data connection to, receive message, …
	Peer   string // host:port or ssh target; empty where Op says all
	Kind   error  // one of the package's sentinels
	Err    error  // cause, with the kernel's or resolver's text; may be nil
	Advice string // one sentence on what to do; may be empty
}

// Error gives "operation subject: kind: cause".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Peer != "" {
		b.WriteString(" " + e.Peer)
	}
	b.WriteString(": " + e.Kind.Error())
	if why := e.Cause(); why != "" {
		b.WriteString(": " + why)
	}
	return b.String()
}

// Cause gives the text of Err without what the layers between repeat; empty if there is none.
func (e *Error) Cause() string {
	if e.Err == nil {
		return ""
	}
	return plain(e.Err).Error()
}

// Unwrap gives kind and cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Hint says what the user can do; empty if nothing is known.
func (e *Error) Hint() string { return e.Advice }

// plain strips the layers that net and os put around an error and that repeat the operation and the
// address; the innermost one has the kernel's words. A DNSError stays whole: it names the host that
// the resolver was asked for.
func plain(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil && op.Op != "remote error" {
		err = op.Err
	}
	var sc *os.SyscallError
	if errors.As(err, &sc) && sc.Err != nil {
		err = sc.Err
	}
	return err
}
