//go:build !linux

package hostfs

import "os"

// LiveSupported is false where there is no /proc and /sys of Linux: a live Snapshot then has what
// Go tells.
const LiveSupported = false

// accessible, like readWhole, is here for the sake of the archive reader only.
func accessible(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// readWhole is here for the archive reader's sake only; nothing calls it live on these systems.
func readWhole(name string, _ []byte) ([]byte, error) { return os.ReadFile(name) }
