//go:build !linux

package nft

import "errors"

// Chains lists the base chains of nftables, which is Linux alone: the error is
// errors.ErrUnsupported.
func Chains() ([]Chain, error) { return nil, errors.ErrUnsupported }
