//go:build !linux

package lab

import (
	"errors"
	"fmt"
)

// applyToMachine returns errors.ErrUnsupported.
func applyToMachine(name, _ string) (func(), error) {
	return nil, fmt.Errorf("set %s: %w", name, errors.ErrUnsupported)
}
