//go:build !linux

package measure

import (
	"context"
	"errors"
	"fmt"
)

// Run measures the cases. It needs Linux.
func Run(context.Context, []Case, Options) ([]Result, error) {
	return nil, fmt.Errorf("measure rules: %w", errors.ErrUnsupported)
}

func able(Case) bool { return false }
