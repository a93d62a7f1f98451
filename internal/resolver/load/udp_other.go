//go:build !linux

package load

// newEngine opens the sockets of a load.
func newEngine(o Options) (engine, error) { return newLinks(o) }
