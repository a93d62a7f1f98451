package traffic

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/echo"
)

// TestForgerIsFirst plays a path on which forged datagrams, with good headers and plausible times,
// reach the receiver before the first one of its sender. All of them are strays, and every datagram
// of the sender counts once.
func TestForgerIsFirst(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	for _, direction := range []Direction{Up, Down} {
		t.Run(string(direction), func(t *testing.T) {
			t.Parallel()
			spec := shortSpec(UDP)
			spec.Direction, spec.PacketBytes, spec.RatePacketsPerSec = direction, 100, 2000
			spec.Bytes, spec.Duration = 200*100, 5*time.Minute // the amount ends it
			w := newWorld(t)
			w.withEcho(t)
			w.link.Echo = forgingPath(t, netip.AddrPortFrom(loopback, uint16(w.far.Echo.Port())))
			r := run(t, w, spec, nil)
			if u := r.UDP; u == nil || u.Sent == 0 || u.Received != u.Sent || u.Lost != 0 ||
				*u.Duplicates != 0 || *u.Reordered != 0 || u.DelayVariation.Max > 3600 {
				t.Errorf("%+v", u)
			}
			const want = "5 datagrams arrived that the sender did not send"
			if !strings.Contains(strings.Join(r.Warnings, "\n"), want) {
				t.Errorf("warnings: %q, want %q", r.Warnings, want)
			}
		})
	}
}

// forgingPath relays datagrams between a near socket and a server, and puts forged ones in front of
// the first data. It returns where the near end reaches it.
func forgingPath(t *testing.T, server netip.AddrPort) string {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: loopback.AsSlice()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	go func() {
		var near netip.AddrPort
		forged := false
		p := make([]byte, datagram.MaxBytes)
		for {
			n, from, err := c.ReadFromUDPAddrPort(p)
			if err != nil {
				return
			}
			to := server
			if from == server {
				to = near
			} else {
				near = from
			}
			if !forged && n != echo.HelloBytes {
				forged = true
				for _, number := range []uint64{0, 1, 1 << 20, 1 << 46, 1<<48 - 1} {
					f := make([]byte, 100)
					datagram.NativeHeader{}.Put(f, datagram.Mark{Sequence: number, Sent: sys.Monotonic(), Measured: true})
					_, _ = c.WriteToUDPAddrPort(f, to) // loopback takes it; a loss would fail the test
				}
			}
			_, _ = c.WriteToUDPAddrPort(p[:n], to) // as above
		}
	}()
	return c.LocalAddr().String()
}
