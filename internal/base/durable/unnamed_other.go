//go:build !linux

package durable

import (
	"errors"
	"os"
)

// openUnnamed always fails: this system makes no files without a name.
func openUnnamed(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// nameFile is not called: there is no file without a name.
func nameFile(*os.File, string) error { return errors.ErrUnsupported }
