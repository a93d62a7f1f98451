//go:build !linux

package equal

import (
	"context"
	"errors"
	"fmt"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// Kernel returns errors.ErrUnsupported, since network namespaces exist on Linux only.
func Kernel(context.Context, *ruleset.Ruleset, *ruleset.Ruleset, []ruleset.Packet, int) (KernelResult, error) {
	return KernelResult{}, fmt.Errorf("compare rules in the kernel: %w", errors.ErrUnsupported)
}
