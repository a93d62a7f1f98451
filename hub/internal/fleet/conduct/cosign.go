package conduct

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/peer/order"
)

// ErrLate reports signatures that have ended.
var ErrLate = errors.New("the time in which the orders are valid is over; make a new plan")

// Cosign lets another person sign orders that others have signed, and returns them with all
// signatures. The orders must be exactly those of the draft, which is what the person has read.
func (d *Draft) Cosign(orders [][]byte, now time.Time, sign func(*order.Envelope)) ([][]byte, error) {
	if _, err := d.Signers(orders); err != nil {
		return nil, err
	}
	if now.Unix() >= d.NotAfter {
		return nil, fmt.Errorf("rollout %s: %w", d.Plan.ID, ErrLate)
	}
	all := make([][]byte, len(orders))
	for i, b := range orders {
		e, err := order.Open(b)
		if err != nil {
			return nil, err
		}
		sign(&e)
		seen := make(map[string]bool)
		for _, s := range e.Signatures {
			if seen[s.Key] {
				return nil, fmt.Errorf("rollout %s: %s has signed already", d.Plan.ID, s.Key)
			}
			seen[s.Key] = true
		}
		if all[i], err = e.Encode(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Signers returns the names of those who have signed every order, sorted. It checks that the orders
// are exactly those of the draft, and no signature: only the hosts know the keys.
func (d *Draft) Signers(orders [][]byte) ([]string, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if _, err := d.signed(orders); err != nil {
		return nil, err
	}
	count := make(map[string]int)
	for _, b := range orders {
		e, err := order.Open(b)
		if err != nil {
			return nil, err
		}
		for _, s := range e.Signatures {
			count[s.Key]++
		}
	}
	var all []string
	for name, n := range count {
		if n != len(orders) {
			return nil, fmt.Errorf("%w: %s has signed %d of %d", ErrUnsigned, name, n, len(orders))
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return all, nil
}
