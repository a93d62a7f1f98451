//go:build !linux

package setting

import (
	"errors"
	"fmt"
)

// Here answers errors.ErrUnsupported.
func Here(name, _ string) (func(), error) {
	return nil, fmt.Errorf("set %s: %w", name, errors.ErrUnsupported)
}
