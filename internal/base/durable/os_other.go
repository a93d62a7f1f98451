//go:build aix || (!unix && !windows)

package durable

import (
	"errors"
	"os"
)

func lockFile(*os.File) error { return errors.ErrUnsupported }

func renameOS(from, to string) error { return os.Rename(from, to) }

func syncDirOS(string) error { return nil }

const noFollow, noWait = 0, 0 // this system has no such flags

func isLink(error) bool { return false }

// trusted does not know how this system protects files.
func trusted(string) error { return nil }
