package wire

import (
	"errors"
	"net"
	"os"
	"strings"
)

// Kinds of errors. Every error of Dial, DialData, SSH and of a broken Conn is an *Error of one of
// these kinds, unless the caller's own context ended it.
var (
	// ErrUnreachable reports that no connection was established: unknown host, closed port, no
	// route, or no answer in time.
	ErrUnreachable = errors.New("peer unreachable")
	// ErrPortTaken reports that the requested local port already has a connection.
	ErrPortTaken = errors.New("local port taken")
	// ErrWrongKey reports that a linerate answers, but with another key.
	ErrWrongKey = errors.New("wrong key")
	// ErrNotLinerate reports that the peer answers, but does not speak this protocol.
	ErrNotLinerate = errors.New("not linerate")
	// ErrPeerGone reports that an established connection ended: closed, reset, or silent for too
	// long.
	ErrPeerGone = errors.New("peer gone")
	// ErrProtocol reports that an authentic peer sent an invalid message.
	ErrProtocol = errors.New("protocol violated")
)

// Error describes the step that failed, the peer, the kind of failure, and the remedy. errors.Is
// matches both Kind and Err.
type Error struct {
	Op     string // connect to, open data connection to, receive message, …
	Peer   string // host:port or ssh target; empty if Op suffices
	Kind   error  // one of the package's sentinels
	Err    error  // cause, with the kernel's or resolver's text; may be nil
	Advice string // one sentence on what to do; may be empty
}

// Error returns "operation subject: kind: cause".
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

// Cause returns the text of Err without the parts that the layers between repeat; it is empty if
// Err is nil.
func (e *Error) Cause() string {
	if e.Err == nil {
		return ""
	}
	return plain(e.Err).Error()
}

// Unwrap returns kind and cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Hint returns advice for the user; it is empty if none is known.
func (e *Error) Hint() string { return e.Advice }

// plain strips the layers that net and os put around an error and that repeat the operation and the
// address; the innermost layer has the kernel's text. It keeps a DNSError whole, because that names
// the host looked up.
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
