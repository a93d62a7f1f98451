//go:build !unix

package journal

// systemLog has no counterpart here: the log of a guard is its file alone.
func systemLog(string) {}
