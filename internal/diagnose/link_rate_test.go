package diagnose

import (
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

// TestOutrunLink checks that a link does not count that the flow outran: another interface carried
// it, or the speed is a number. Its payload capacity is no limit then, and no verdict.
func TestOutrunLink(t *testing.T) {
	card := func(speed float64, address string) host.Interface {
		return host.Interface{Name: "eth0", Up: true, SpeedBitsPerSec: speed, MTUBytes: 1500, Addresses: []string{address}}
	}
	for _, c := range []struct {
		rate, near, far, want float64 // bits per second
	}{
		{941e6, 1e9, 1e9, 1e9}, {941e6, 100e6, 1e9, 1e9}, {941e6, 100e6, 100e6, 0}, {941e6, 10e9, 1e9, 1e9},
	} {
		r := traffic.Result{Test: traffic.Stream, Direction: traffic.Up, DurationSeconds: 3, Streams: 1,
			ThroughputBitsPerSec: c.rate, Bytes: int64(c.rate * 3 / 8)}
		f := evidence.FlowsOf(&evidence.Case{Runs: []traffic.Result{r}, NearAddress: "192.0.2.1", FarAddress: "192.0.2.2",
			Near: &host.Snapshot{Name: "a", OS: "linux", Interfaces: []host.Interface{card(c.near, "192.0.2.1/24")}},
			Far:  &host.Snapshot{Name: "b", OS: "linux", Interfaces: []host.Interface{card(c.far, "192.0.2.2/24")}}})[0]
		link, _, ok := f.SlowestLink()
		if ok != (c.want > 0) || ok && link.SpeedBitsPerSec != c.want {
			t.Errorf("%+v: slowest link %v %+v", c, ok, link)
		}
		if x := linkRateReached(f); (x != nil) != ok {
			t.Errorf("%+v: verdict %+v", c, x)
		}
	}
}
