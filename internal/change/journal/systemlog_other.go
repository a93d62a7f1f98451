//go:build !unix

package journal

// systemLog has no counterpart here: these systems have no guards yet.
func systemLog(string) {}
