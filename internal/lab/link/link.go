package link

import (
	"errors"
	"time"
)

// ErrNotSupported reports that the operating system has no packet sockets.
var ErrNotSupported = errors.New("emulated links need Linux packet sockets")

// Options choose how a link reads its sockets. The zero value is the best choice everywhere.
type Options struct {
	// ForceRing makes the link read through a memory-mapped ring even where the kernel grants a
	// large enough socket buffer; for tests.
	ForceRing bool

	clock func() time.Duration // for tests; nil: the time since the lane began
}

// Counts are the totals of both directions. Out is from the first interface to the second, Back the
// other way.
type Counts struct {
	Out  Counters `json:"out"`
	Back Counters `json:"back"`
}
