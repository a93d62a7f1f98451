//go:build !linux

package agent

import (
	"context"
	"errors"
	"fmt"
)

// Serve returns errors.ErrUnsupported on systems other than Linux.
func Serve(context.Context, Config, func(socket string)) error {
	return fmt.Errorf("agent: %w on this system", errors.ErrUnsupported)
}
