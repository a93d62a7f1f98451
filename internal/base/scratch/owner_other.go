//go:build !unix

package scratch

import "io/fs"

// own always returns false: these systems have no numeric owners.
func own(fs.FileInfo) bool { return false }
