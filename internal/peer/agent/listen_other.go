//go:build !linux

package agent

import (
	"context"
	"errors"
	"fmt"
)

// Serve works on Linux alone: elsewhere it is errors.ErrUnsupported.
func Serve(context.Context, Config, func(socket string)) error {
	return fmt.Errorf("agent: %w on this system", errors.ErrUnsupported)
}
