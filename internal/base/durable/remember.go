package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// ErrForgotten says that a file holds nothing that Remember has written, or of another version.
var ErrForgotten = errors.New("holds nothing that is known")

// remembered is the content of such a file.
type remembered struct {
	Version int             `json:"version"`
	Value   json.RawMessage `json:"value"`
}

// Remember replaces a file with a value as JSON, readable by its owner alone, and makes the
// directory it lies in. It is for what a program wants to know after a restart and can do without;
// what it cannot do without belongs into a Log. A reader with another version forgets it.
func Remember(fsys FS, name string, version int, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		data, err = json.Marshal(remembered{version, data})
	}
	if err != nil {
		return fmt.Errorf("remember %s: %w", name, err)
	}
	if err := MkdirAll(fsys, filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("remember %s: %w", name, err)
	}
	return Replace(fsys, name, data, 0o600)
}

// Recall reads what Remember has written. False without an error: there is no such file. The error
// is ErrForgotten for what cannot be understood; into is then as it was, or has a part of it.
func Recall(fsys FS, name string, version int, into any) (bool, error) {
	data, err := fsys.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("recall %s: %w", name, err)
	}
	var r remembered
	if err = json.Unmarshal(data, &r); err == nil && r.Version == version {
		err = json.Unmarshal(r.Value, into)
	} else if err == nil {
		err = fmt.Errorf("version %d is not %d", r.Version, version)
	}
	if err != nil {
		return false, fmt.Errorf("recall %s: %w: %w", name, ErrForgotten, err)
	}
	return true, nil
}
