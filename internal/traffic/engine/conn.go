package engine

import (
	"net/netip"
	"time"
)

// ConnOptions are socket options of one TCP connection. The zero value leaves everything to the
// host. [Adopt] sets what an established connection accepts; MSSBytes and LocalPort, and a window
// wider than the host's own buffers can announce, need [DialControl] or [ListenControl].
type ConnOptions struct {
	NoDelay           bool    // switch Nagle's algorithm off
	Congestion        string  // congestion control of this end; empty: the host's own
	WindowBytes       int     // SO_SNDBUF and SO_RCVBUF, as requested (the kernel doubles it); 0: automatic tuning
	MSSBytes          int     // TCP_MAXSEG, only before connect: it bounds both directions; 0: the kernel's
	TOS               int     // IP TOS or IPv6 traffic class, 0 to 255; TCP keeps the two ECN bits to itself
	PacingBytesPerSec float64 // of a sender, in payload: a schedule, spread by SO_MAX_PACING_RATE; 0: none
	LocalPort         int     // only before connect; 0: the kernel chooses
	// From is the near address, only before connect; the zero value: the route chooses
	From netip.Addr
}

// wakeEvery bounds the sleep of a blocking call, so that a worker on a stalled connection sees the
// end of the test even if the shutdown that should wake it came before the call. It costs nothing
// while data flow.
const wakeEvery = 200 * time.Millisecond
