//go:build !linux

package nft

import "errors"

// Chains returns errors.ErrUnsupported, since nftables exists on Linux only.
func Chains() ([]Chain, error) { return nil, errors.ErrUnsupported }

// Legacy returns errors.ErrUnsupported, since x_tables exist on Linux only.
func Legacy(string) ([]Chain, error) { return nil, errors.ErrUnsupported }

// Generation returns errors.ErrUnsupported, since nftables exists on Linux only.
func Generation() (uint32, error) { return 0, errors.ErrUnsupported }
