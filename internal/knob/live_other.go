//go:build !linux

package knob

import "context"

// Live reads and writes the running system. On this operating system it supports no knob yet.
type Live struct{}

// NewLive gives the backend of the running system.
func NewLive() *Live { return &Live{} }

// Read answers ErrNotSupported.
func (*Live) Read(_ context.Context, id ID) (Value, error) {
	return "", &Error{Op: "read", Knob: id, Err: ErrNotSupported}
}

// Write answers ErrNotSupported.
func (*Live) Write(_ context.Context, id ID, _ Value) error {
	return &Error{Op: "write", Knob: id, Err: ErrNotSupported}
}

// CheckWrite answers ErrNotSupported.
func (*Live) CheckWrite(_ context.Context, id ID, _ Value) error {
	return &Error{Op: "check", Knob: id, Err: ErrNotSupported}
}

// Instances answers ErrNotSupported.
func (*Live) Instances(_ context.Context, d Definition) ([]ID, error) {
	return nil, &Error{Op: "list", Knob: d.Pattern, Err: ErrNotSupported}
}

// Here tells where this process stands; on this operating system it is not known.
func Here() Place { return Place{} }
