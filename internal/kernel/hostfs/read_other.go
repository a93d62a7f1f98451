//go:build !linux

package hostfs

import "os"

// LiveSupported is false on systems without Linux's /proc and /sys: a live Snapshot then has only
// what Go reports.
const LiveSupported = false

// accessible, like readWhole, is needed only by the archive reader.
func accessible(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// readWhole is needed only by the archive reader; on these systems no live reading calls it.
func readWhole(name string, _ []byte) ([]byte, error) { return os.ReadFile(name) }
