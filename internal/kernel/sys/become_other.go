//go:build !unix

package sys

// Become is not supported.
func Become(int, int) error { return ErrNotSupported }
