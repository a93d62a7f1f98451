//go:build !linux

package journal

import (
	"context"
	"errors"
)

// startSecondLine needs systemd.
func startSecondLine(GuardConfig, string) (stop func()) { return func() {} }

// SecondLine needs systemd.
func SecondLine(context.Context, Options, string) error { return errors.ErrUnsupported }
