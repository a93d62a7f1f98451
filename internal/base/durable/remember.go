package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// ErrForgotten reports that Remember did not write a file's content, or wrote another version.
var ErrForgotten = errors.New("unknown content")

// remembered is the content of such a file.
type remembered struct {
	Version int             `json:"version"`
	Value   json.RawMessage `json:"value"`
}

// Remember replaces a file with a value as JSON, readable only by its owner, and creates its
// directory. It is for data that a program needs after a restart but can do without; indispensable
// data belongs in a Log. Recall ignores data of another version.
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

// Recall reads the value that Remember wrote. It returns false without an error if the file does
// not exist. For content it cannot read, the error is ErrForgotten; into may then have been partly
// overwritten.
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
