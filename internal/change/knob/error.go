package knob

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// sentinel is an error that is a special case of a more general one.
//
// errors.Is finds both: callers that check only for fs.ErrPermission need not know the reason.
type sentinel struct {
	text string
	of   error
}

func (s *sentinel) Error() string { return s.text }
func (s *sentinel) Unwrap() error { return s.of }

// The answers of parsing, catalogue and backends. fs.ErrNotExist (no such knob on this host) and
// fs.ErrPermission (not permitted) complete them.
var (
	// ErrUnknown: no kind has this name, or the catalogue has no entry for it.
	ErrUnknown error = errors.New("unknown knob")
	// ErrReadOnly: the knob exists, and no process can write it from here. It is an
	// fs.ErrPermission.
	ErrReadOnly error = &sentinel{"read-only here", fs.ErrPermission}
	// ErrGlobal: the knob belongs to the whole host and this is a container or network namespace.
	// It is an fs.ErrPermission.
	ErrGlobal error = &sentinel{"belongs to the whole host and cannot be changed from inside a container",
		fs.ErrPermission}
	// ErrInvalid: the value has the wrong form or is out of range; *RangeError names the allowed
	// values.
	ErrInvalid error = errors.New("value not accepted")
	// ErrNotSupported: this kernel, driver or operating system has no such operation.
	ErrNotSupported = nl.ErrNotSupported
)

// Error is a failed operation on one knob.
//
// The hint is not in the text, since further layers put their own words before the text; the code
// that prints the error gets the hint from the method.
type Error struct {
	Op   string // parse, read, write, check
	Knob ID
	Err  error
	hint string
}

// Error is "operation knob: cause".
func (e *Error) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Knob, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// WithHint adds the remedy, in one sentence.
func (e *Error) WithHint(hint string) *Error {
	e.hint = hint
	return e
}

// Hint returns the remedy, in one sentence, or "".
func (e *Error) Hint() string { return e.hint }

// RangeError is a value that a knob does not accept. It is an ErrInvalid.
type RangeError struct {
	Value   Value
	Allowed string // in words: "an integer from 1 to 2147483647 (bytes)"
	Err     error  // what the kernel said, if it was asked
}

// Error names the value and what is allowed.
func (e *RangeError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("value %q: want %s: %v", string(e.Value), e.Allowed, e.Err)
	}
	return fmt.Sprintf("value %q: want %s", string(e.Value), e.Allowed)
}

// Unwrap returns what the kernel said.
func (e *RangeError) Unwrap() error { return e.Err }

// Is makes a RangeError an ErrInvalid.
func (e *RangeError) Is(target error) bool { return target == ErrInvalid }

// cause takes the outer operation off, for an error that is reported under another one.
//
// Without it a failed check would read "check X: read X: …".
func cause(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func hintOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.hint
	}
	return ""
}
