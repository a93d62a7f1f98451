package plan_test

import (
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/plan"
	"github.com/linerate/linerate/internal/host"
)

// TestQueuesOfAVirtualMachine checks that the role asks for a queue for each CPU, as far as the NIC
// has them, and for none where one queue or one CPU is all there is.
func TestQueuesOfAVirtualMachine(t *testing.T) {
	for _, c := range []struct {
		cpus           int
		queues, most   uint32
		want           string
		alreadyInForce bool
	}{{4, 1, 8, "4", false}, {8, 1, 2, "2", false}, {1, 1, 8, "", false}, {4, 1, 1, "", false}, {4, 4, 4, "4", true}} {
		h := &host.Snapshot{OS: "linux", Kernel: "6.1.0", MemoryBytes: 8 << 30, CPUs: make([]host.CPU, c.cpus),
			Interfaces: []host.Interface{{Name: "eth0", Driver: "virtio_net", Up: true, SpeedBitsPerSec: 10e9,
				Channels: &host.Channels{Combined: c.queues, MaxCombined: c.most}}}}
		given, err := plan.OfHost(h, "")
		if err != nil {
			t.Fatal(err)
		}
		given.Role, given.RoundTrip = string(plan.Virtual), 10*time.Millisecond
		situation, err := given.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		made, err := plan.Make(situation)
		if err != nil {
			t.Fatal(err)
		}
		got, set := "", false
		for i := range made.Lines {
			if l := &made.Lines[i]; l.Knob == "ethtool:eth0/channels.combined" && !l.WriteUp {
				got, set = l.Value, l.Set
			}
		}
		if got != c.want || set != (c.want != "" && !c.alreadyInForce) {
			t.Errorf("%d CPUs, %d of %d queues: %q, set %v; want %q", c.cpus, c.queues, c.most, got, set, c.want)
		}
	}
}
