package link

import "errors"

// ErrNotSupported is answered where the OS has no packet sockets.
var ErrNotSupported = errors.New("emulated links need Linux packet sockets")

// Options say how a link is moved.
type Options struct {
	// ForceRing makes the link read through a memory-mapped ring even where the socket's buffer can
	// be made large enough; for tests.
	ForceRing bool
}

// Counts are the totals of both directions. Out is from the first interface to the second, Back the
// other way.
type Counts struct {
	Out  Counters `json:"out"`
	Back Counters `json:"back"`
}
