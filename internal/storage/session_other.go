//go:build !linux

package storage

import (
	"context"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// Session is an open target; only Linux has it.
type Session struct {
	Subject Subject
}

// Open is Linux only.
func Open(context.Context, Target, func(float64)) (*Session, error) {
	return nil, &sys.UnsupportedError{Feature: "the measurement of disks"}
}

// Close closes nothing.
func (s *Session) Close() error { return nil }

// Run is Linux only.
func (s *Session) Run(context.Context, Spec, func(Sample)) (*Result, error) {
	return nil, &sys.UnsupportedError{Feature: "the measurement of disks"}
}
