//go:build aix || (!unix && !windows)

package durable

import (
	"errors"
	"os"
)

func lockFile(*os.File) error { return errors.ErrUnsupported }

func renameOS(from, to string) error { return os.Rename(from, to) }

func syncDirOS(string) error { return nil }
