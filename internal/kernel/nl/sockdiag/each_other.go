//go:build !linux

package sockdiag

import (
	"errors"
	"fmt"
)

// Each says that this system has no sock_diag.
func Each(q Query, _ func(*Socket) bool) error {
	return fmt.Errorf("list %s sockets: %w: sock_diag is Linux's", q.Protocol, errors.ErrUnsupported)
}
