//go:build !unix

package sys

// Exec is not supported.
func Exec(string, []string, []string) error { return ErrNotSupported }
