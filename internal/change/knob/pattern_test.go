package knob

import "testing"

// TestOverlap: two globs overlap when there is a name that both fit; a name without a star stands
// for itself.
func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"ethtool:eth0/*", "ethtool:*/ring.rx", true},
		{"ethtool:eth0/*", "ethtool:eth0/ring.rx", true},
		{"ethtool:eth0/*", "ethtool:eth1/ring.rx", false},
		{"queue:eth0/rx-*/*", "queue:*/tx-*/xps_cpus", false},
		{"queue:eth0/*/*", "queue:*/tx-*/xps_cpus", true},
		{"route:10.0.0.0/8/*", "route:*/window", true},
		{"sysctl:net.ipv4.conf.eth0/100.*", "sysctl:net.ipv4.conf.*.rp_filter", true},
		{"link:*/mtu", "link:*/txqueuelen", false},
		{"*", "", true}, {"", "*", true}, {"", "", true}, {"a", "", false},
		{"a*b", "*ab*", true}, {"a*b", "b*a", false},
		{"***************************a", "***************************b", false},
	} {
		if got := Overlap(c.a, c.b); got != c.want {
			t.Errorf("Overlap(%q, %q) = %v", c.a, c.b, got)
		}
		if Overlap(c.a, c.b) != Overlap(c.b, c.a) {
			t.Errorf("Overlap(%q, %q) depends on the order", c.a, c.b)
		}
	}
}
