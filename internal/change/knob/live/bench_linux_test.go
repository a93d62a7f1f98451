package live_test

import (
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
)

// BenchmarkLiveRead shows what one look at a knob costs: it is paid for every knob of a trial, not
// inside a measurement.
func BenchmarkLiveRead(b *testing.B) {
	host := live.New()
	for _, id := range []knob.ID{"sysctl:net.ipv4.tcp_rmem", "link:lo/mtu", "ethtool:lo/feature.rx-gro"} {
		b.Run("knob="+id.Kind(), func(b *testing.B) {
			for b.Loop() {
				if _, err := host.Read(b.Context(), id); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
