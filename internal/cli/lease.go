package cli

import (
	"errors"
	"fmt"

	"github.com/linerate/linerate/internal/traffic/lease"
)

// loads takes the right to load this host for as long as a command tests, and returns what gives it
// back. A fleet and a schedule of the hub keep away meanwhile. The user who types a command decides
// alone: beside another test it runs too, and warns that both share the figures.
func (a *app) loads(command string) (release func(), err error) {
	release, err = (&lease.Lease{Name: a.lease}).Take()
	if errors.Is(err, lease.ErrBusy) {
		a.warn("%s: %v, and takes part of what this one measures", command, err)
		return func() {}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	return release, nil
}
