package flows

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/drops"
)

// TestNotLocalDrops checks that drops of bundles reject the queues of the hosts only if too few
// even for the largest bundles. Measured at a tbf of a router: 16 drops cost 451 segments.
func TestNotLocalDrops(t *testing.T) {
	for _, c := range []struct {
		drop drops.Drop
		want string
	}{
		{drops.Drop{}, "Not a queue of either host: no local counter"},
		{drops.Drop{Place: "qdisc.eth0.drops", Total: 1, Stage: drops.Qdisc}, "Not a queue of either host: they dropped 1 "},
		{drops.Drop{Place: "qdisc.eth0.drops", Total: 16, Stage: drops.Qdisc}, "Not ruled out: a queue of a host. " +
			"They dropped 16 packets (qdisc.eth0.drops (near)), each of up to 45 segments, and 451 "},
		{drops.Drop{Place: "nic.eth0.rx_missed_errors", Total: 16, Stage: drops.Ring},
			"Not a queue of either host: they dropped 16 "},
	} {
		f := &evidence.Flow{MSSBytes: 1448}
		f.Sender.Name = "near"
		if c.drop.Total > 0 {
			f.Sender.Run.Drops = []drops.Drop{c.drop}
		}
		if got := notLocalDrops(f, 451); !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.drop, got, c.want)
		}
	}
}
