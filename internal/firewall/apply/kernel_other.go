//go:build !linux

package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

var errNoTables = fmt.Errorf("change rules: %w", errors.ErrUnsupported)

type keeper struct{}

func hold(context.Context, bool) (*keeper, error) { return nil, errNoTables }

func (k *keeper) release() {}

func (k *keeper) load(context.Context, ruleset.Program, string, string) error { return errNoTables }

func (k *keeper) table(context.Context, ruleset.Program, string, string) (*ruleset.Table, error) {
	return nil, errNoTables
}

func generation(ruleset.Program) (uint32, error) { return 0, errNoTables }

func settle() error { return errNoTables }

// Rehearse returns errors.ErrUnsupported, since nftables exists on Linux only.
func Rehearse(context.Context, ruleset.Program, *ruleset.Table, *ruleset.Table) (*Plan, error) {
	return nil, errNoTables
}
