//go:build !linux

package sockdiag

import (
	"errors"
	"fmt"
)

// Each returns errors.ErrUnsupported, since this system has no sock_diag.
func Each(q Query, _ func(*Socket) bool) error {
	return fmt.Errorf("list %s sockets: %w: sock_diag exists on Linux only", q.Protocol, errors.ErrUnsupported)
}
