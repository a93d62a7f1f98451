package nl

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
)

// Error is a failed call. errors.Is tells the three answers apart: fs.ErrNotExist (no such link,
// route or namespace), fs.ErrPermission (CAP_NET_ADMIN missing), ErrNotSupported (this kernel or
// driver has no such operation).
type Error struct {
	Op      string // what was tried: "set mtu", "read rings"
	Subject string // link, route or address; may be empty
	Kernel  string // the kernel's own sentence, when it sent one
	Err     error  // errno or our own sentinel
}

// Error is "operation subject: cause: kernel text".
func (e *Error) Error() string {
	var b strings.Builder
	// An error on its way up to Wrap has no operation yet.
	if e.Op != "" {
		b.WriteString(e.Op)
		if e.Subject != "" {
			b.WriteString(" " + e.Subject)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Err.Error())
	if e.Kernel != "" {
		b.WriteString(": " + e.Kernel)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is adds the errnos that the standard library does not translate: a missing link is ENODEV or
// ENXIO and a missing route ESRCH, none of which is an fs.ErrNotExist to package syscall.
func (e *Error) Is(target error) bool {
	var errno syscall.Errno
	if !errors.As(e.Err, &errno) {
		return false
	}
	switch target {
	// fs.ErrPermission needs no line: package syscall translates EPERM and EACCES by itself.
	case fs.ErrNotExist:
		return errno == syscall.ENODEV || errno == syscall.ENXIO || errno == syscall.ESRCH
	case ErrNotSupported:
		return errno == syscall.EOPNOTSUPP || errno == syscall.ENOSYS || errno == syscall.EAFNOSUPPORT
	}
	return false
}

// Wrap gives a failed call its operation and subject. A nil error stays nil; an *Error from below
// (a part that already knows its subject) is not wrapped a second time.
func Wrap(op, subject string, err error) error {
	if err == nil {
		return nil
	}
	// Only an *Error that stands bare is opened: one below a text ("read back: …") keeps that text,
	// which says which of several requests it was.
	if bare, ok := err.(*Error); ok && bare.Op == "" { //nolint:errorlint // the chain below is not to be opened
		return &Error{Op: op, Subject: subject, Kernel: bare.Kernel, Err: bare.Err}
	}
	var e *Error
	if errors.As(err, &e) && e.Op != "" {
		return err
	}
	return &Error{Op: op, Subject: subject, Err: err}
}
