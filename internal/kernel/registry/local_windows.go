package registry

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/windows/registry"
)

// Local is the registry of the running system.
type Local struct{}

func open(key string, access uint32) (registry.Key, error) {
	below, err := path(key)
	if err != nil {
		return 0, err
	}
	// The view of 64 bits, also for a program of 32.
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, below, access|registry.WOW64_64KEY)
	return k, translate(err)
}

// translate makes a missing value one that does not exist.
func translate(err error) error {
	if errors.Is(err, registry.ErrNotExist) {
		return fs.ErrNotExist
	}
	return err
}

// Get implements Store.
func (Local) Get(key, name string) (Value, error) {
	k, err := open(key, registry.QUERY_VALUE)
	if err != nil {
		return Value{}, err
	}
	defer func() { _ = k.Close() }() // opened for reading
	_, kind, err := k.GetValue(name, nil)
	if err != nil {
		return Value{}, translate(err)
	}
	switch kind {
	case registry.DWORD, registry.QWORD:
		n, _, err := k.GetIntegerValue(name)
		v := Value{Kind: Number, Number: n}
		if kind == registry.QWORD {
			v.Kind = Wide
		}
		return v, translate(err)
	case registry.SZ, registry.EXPAND_SZ:
		s, _, err := k.GetStringValue(name)
		return Value{Kind: Text, Text: s}, translate(err)
	}
	return Value{}, nil
}

// Set implements Store.
func (Local) Set(key, name string, v Value) error {
	k, err := open(key, registry.SET_VALUE)
	if err != nil {
		return err
	}
	switch v.Kind {
	case Number:
		err = k.SetDWordValue(name, uint32(v.Number))
	case Wide:
		err = k.SetQWordValue(name, v.Number)
	case Text:
		err = k.SetStringValue(name, v.Text)
	default:
		err = errors.ErrUnsupported
	}
	return errors.Join(err, k.Close())
}

// Delete implements Store.
func (Local) Delete(key, name string) error {
	k, err := open(key, registry.SET_VALUE)
	if err != nil {
		return err
	}
	err = translate(k.DeleteValue(name))
	if closeErr := k.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Exists implements Store.
func (Local) Exists(key string) (bool, error) {
	k, err := open(key, registry.QUERY_VALUE)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, k.Close()
}
