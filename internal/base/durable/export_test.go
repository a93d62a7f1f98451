package durable

import (
	"errors"
	"io/fs"
	"os"
)

// NewNamedDraft is [NewDraft] where the system makes no files without a name.
func NewNamedDraft(name string, perm fs.FileMode) (*Draft, error) {
	return newDraft(name, perm, func(string) (*os.File, error) { return nil, errors.ErrUnsupported })
}
