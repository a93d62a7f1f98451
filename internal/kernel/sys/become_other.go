//go:build !unix

package sys

import "io/fs"

// Owner does not know the owners of this system.
func Owner(fs.FileInfo) (uid, gid int, known bool) { return 0, 0, false }

// Become is not supported.
func Become(int, int) error { return ErrNotSupported }
