package stamp

import (
	"net/netip"
	"time"
)

// wakeEvery bounds the sleep of a socket, so that its owner checks the clock and the end of the
// test even if a wake came too early.
const wakeEvery = 200 * time.Millisecond

// arrival is the metadata of a received packet.
type arrival struct {
	from   netip.AddrPort
	at     int64 // nanoseconds since 1970: the kernel's time of the packet, or the program's
	kernel bool  // at is the kernel's time
	ttl    uint8 // or hop limit; 0: unknown
}
