package stamp

import (
	"net/netip"
	"time"
)

// wakeEvery bounds the sleep of a socket, so that its owner looks at the clock and at the end of
// the test even when a wake came too early.
const wakeEvery = 200 * time.Millisecond

// arrival is what came with a packet.
type arrival struct {
	from   netip.AddrPort
	at     int64 // nanoseconds since 1970: the kernel's time of the packet, or when the program saw it
	kernel bool  // the former
	ttl    uint8 // or hop limit; 0: not known
}
