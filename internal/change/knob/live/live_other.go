//go:build !linux && !freebsd && !solaris && !windows

package live

import (
	"context"

	"github.com/linerate/linerate/internal/change/knob"
)

// Host reads and writes the running system. On this operating system it supports no knob yet.
type Host struct{}

// New returns the backend of the running system.
func New() *Host { return &Host{} }

// Read answers ErrNotSupported.
func (*Host) Read(_ context.Context, id knob.ID) (knob.Value, error) {
	return "", &knob.Error{Op: "read", Knob: id, Err: knob.ErrNotSupported}
}

// Write answers ErrNotSupported.
func (*Host) Write(_ context.Context, id knob.ID, _ knob.Value) error {
	return &knob.Error{Op: "write", Knob: id, Err: knob.ErrNotSupported}
}

// CheckWrite answers ErrNotSupported.
func (*Host) CheckWrite(_ context.Context, id knob.ID, _ knob.Value) error {
	return &knob.Error{Op: "check", Knob: id, Err: knob.ErrNotSupported}
}

// Instances answers ErrNotSupported.
func (*Host) Instances(_ context.Context, d knob.Definition) ([]knob.ID, error) {
	return nil, &knob.Error{Op: "list", Knob: d.Pattern, Err: knob.ErrNotSupported}
}

// Here returns where this process stands; on this operating system it is not known.
func Here() knob.Place { return knob.Place{} }
