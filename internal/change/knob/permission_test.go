package knob_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
)

func TestPermission(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text    string
		id      knob.ID
		allowed bool
	}{
		{"d1", "sysctl:net.ipv4.tcp_rmem", true},
		{"d1", "ethtool:eth0/ring.rx", false}, // d2
		{"d2", "ethtool:eth0/ring.rx", true},
		{"d2", "ethtool:eth0/link.mode", false}, // d3
		{"d3", "ethtool:eth0/link.mode", true},
		{"d3", "module:e1000/InterruptThrottleRate", false}, // d4
		{"d4", "ethtool:eth0/rss.key", false},               // a secret
		{"d4", "sysctl:kernel.core_pattern", false},         // not in the catalogue
		{"sysctl:net.ipv4.*", "sysctl:net.ipv4.tcp_rmem", true},
		{"sysctl:net.ipv4.*", "sysctl:net.core.rmem_max", false},
		{"d0,sysctl:net.ipv4.*", "sysctl:net.ipv4.tcp_congestion_control", false},
		{"ethtool:eth1/*,d2", "ethtool:eth1/ring.rx", true},
		{"ethtool:eth1/*,d2", "ethtool:eth0/ring.rx", false},
		{"queue:eth0/*", "queue:eth0/rx-0/rps_cpus", true},
		{"sysctl:net.ipv4.tcp_rmem", "sysctl:net.ipv4.tcp_rmem", true},
		{"sysctl:net.ipv4.tcp_rmem", "sysctl:net.ipv4.tcp_wmem", false},
		// Part of a name finds knobs where a user browses; it is no permission.
		{"sysctl:net.ipv4.tcp_r*", "sysctl:net.ipv4.tcp_wmem", false},
	} {
		p, err := knob.ParsePermission(tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		if again, err := knob.ParsePermission(p.String()); err != nil || again.String() != p.String() {
			t.Errorf("%s: reads back as %s, %v", p, again, err)
		}
		err = p.Check(tc.id)
		if (err == nil) != tc.allowed {
			t.Errorf("%s of %s: %v", tc.id, tc.text, err)
		}
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, knob.ErrUnknown) {
			t.Errorf("%s of %s: %v is no refusal", tc.id, tc.text, err)
		}
	}
	for _, text := range []string{"", "d5", "d1,d2", "nosuch", "d1,", "true", "tcp_rmem"} {
		if p, err := knob.ParsePermission(text); err == nil {
			t.Errorf("%q was read as %s", text, p)
		}
	}
}
