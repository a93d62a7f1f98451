//go:build !linux

package work

import (
	"context"
	"io"
)

// Run returns ErrNotSupported.
func Run(context.Context, Work, io.Writer) error { return ErrNotSupported }
