//go:build !linux

package world

import (
	"context"
	"io"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// Enter is not supported.
func Enter(context.Context, []string, io.Writer, io.Writer) (int, error) {
	return 0, &sys.UnsupportedError{Feature: "network namespaces"}
}

// Furnish is not supported.
func Furnish() error { return &sys.UnsupportedError{Feature: "network namespaces"} }
