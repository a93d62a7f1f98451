package executor

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/peer/order"
	"github.com/linerate/linerate/internal/peer/policy"
)

// The files that join a host to a fleet. Only root may be able to change them.
const (
	DefaultDir = "/etc/linerate"

	hostName   = "host.id"     // one line: the id of this host
	keysName   = "order.keys"  // see order.ParseKeys
	policyName = "policy.yaml" // see package policy; absent: the fleet changes nothing

	maxHostBytes = 100
	maxKeysBytes = 16 << 10
)

// Files are the files of one directory.
type Files struct {
	FS  durable.FS
	Dir string
}

// Host returns the id of this host. A missing file is fs.ErrNotExist: the host has not joined.
func (f Files) Host() (string, error) {
	data, err := policy.ReadTrusted(f.FS, filepath.Join(f.Dir, hostName), maxHostBytes)
	if err != nil {
		return "", fmt.Errorf("read id of this host: %w", err)
	}
	id := strings.TrimSuffix(string(data), "\n")
	if !order.ValidName(id) {
		return "", fmt.Errorf("read id of this host: %s: %q is not an id", filepath.Join(f.Dir, hostName), id)
	}
	return id, nil
}

// Keys returns the keys of the people who may order changes.
func (f Files) Keys() (order.Keys, error) {
	data, err := policy.ReadTrusted(f.FS, filepath.Join(f.Dir, keysName), maxKeysBytes)
	if err != nil {
		return nil, fmt.Errorf("read order keys: %w", err)
	}
	keys, err := order.ParseKeys(data)
	if err != nil {
		return nil, fmt.Errorf("read order keys: %s: %w", filepath.Join(f.Dir, keysName), err)
	}
	return keys, nil
}

// Policy returns what this host allows.
func (f Files) Policy() (policy.Policy, error) {
	return policy.Read(f.FS, filepath.Join(f.Dir, policyName))
}
