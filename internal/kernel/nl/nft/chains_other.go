//go:build !linux

package nft

import "errors"

// Chains returns errors.ErrUnsupported, since nftables exists on Linux only.
func Chains() ([]Chain, error) { return nil, errors.ErrUnsupported }
