package registry

import (
	"errors"
	"strings"
)

// Kind is the type of a value.
type Kind int

// The types that are read; Other is any further one.
const (
	Other Kind = iota
	Number
	Wide // a number of 64 bits
	Text
)

// Value is what the registry holds.
type Value struct {
	Kind   Kind
	Number uint64
	Text   string
}

// Store reads and writes values. Errors satisfy errors.Is with fs.ErrNotExist (no such key or
// value), fs.ErrPermission and [ErrKey].
type Store interface {
	Get(key, name string) (Value, error)
	Set(key, name string, v Value) error
	// Delete removes a value; one that does not exist is fs.ErrNotExist.
	Delete(key, name string) error
	// Exists reports whether a key does.
	Exists(key string) (bool, error)
}

// ErrKey reports a key that is not below HKLM.
var ErrKey = errors.New(`want a key below HKLM\`)

// path takes the root off a key.
func path(key string) (string, error) {
	root, rest, ok := strings.Cut(key, `\`)
	if !ok || !strings.EqualFold(root, "HKLM") && !strings.EqualFold(root, "HKEY_LOCAL_MACHINE") || rest == "" {
		return "", ErrKey
	}
	return rest, nil
}
