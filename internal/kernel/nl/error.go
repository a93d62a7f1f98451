package nl

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
)

// Error describes a failed call. errors.Is distinguishes three causes: fs.ErrNotExist (no such
// link, route or namespace), fs.ErrPermission (CAP_NET_ADMIN missing), and ErrNotSupported (this
// kernel or driver lacks the operation).
type Error struct {
	Op      string // the attempted operation: "set mtu", "read rings"
	Subject string // link, route or address; may be empty
	Kernel  string // the kernel's own message, if it sent one
	Err     error  // errno or a sentinel of this package
}

// Error returns "operation subject: cause: kernel text".
func (e *Error) Error() string {
	var b strings.Builder
	// Before Wrap, an error has no operation.
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

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is handles the errnos that package syscall does not map to fs.ErrNotExist: a missing link is
// ENODEV or ENXIO, and a missing route is ESRCH.
func (e *Error) Is(target error) bool {
	var errno syscall.Errno
	if !errors.As(e.Err, &errno) {
		return false
	}
	switch target {
	// fs.ErrPermission needs no case: package syscall maps EPERM and EACCES to it.
	case fs.ErrNotExist:
		return errno == syscall.ENODEV || errno == syscall.ENXIO || errno == syscall.ESRCH
	case ErrNotSupported:
		return errno == syscall.EOPNOTSUPP || errno == syscall.ENOSYS || errno == syscall.EAFNOSUPPORT
	}
	return false
}

// Wrap adds the operation and the subject to a failed call. A nil error remains nil. An *Error that
// already has an operation and subject is not wrapped a second time.
func Wrap(op, subject string, err error) error {
	if err == nil {
		return nil
	}
	// Only a bare *Error is opened. An *Error below a text ("read back: …") keeps that text, which
	// names the request that failed.
	if bare, ok := err.(*Error); ok && bare.Op == "" { //nolint:errorlint // a wrapped error keeps its text
		return &Error{Op: op, Subject: subject, Kernel: bare.Kernel, Err: bare.Err}
	}
	var e *Error
	if errors.As(err, &e) && e.Op != "" {
		return err
	}
	return &Error{Op: op, Subject: subject, Err: err}
}
