package nuttcp

import (
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// path is what the kernel of a sender knows of a connection that it has made. The zero path is
// unknown.
type path struct {
	to       netip.Addr
	mssBytes uint32
	rtt      time.Duration
}

// pathTo returns the path of a new connection, whose round trip is that of its handshake.
func pathTo(to netip.Addr, conn *engine.Blocking) path {
	info, err := conn.Info()
	if err != nil {
		return path{}
	}
	return path{to: to, mssBytes: info.SndMSSBytes, rtt: time.Duration(info.RTTMicros) * time.Microsecond}
}

// retransmitted returns how many segments connections have sent again; <0: unknown.
func retransmitted(conns []*engine.Blocking) (segments int64) {
	for _, c := range conns {
		info, err := c.Info()
		if err != nil {
			return -1
		}
		segments += int64(info.TotalRetrans)
	}
	return segments
}
