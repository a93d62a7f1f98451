package owner

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSetsOfTuneD reads a profile that builds on another, with a section that has a name of its
// own.
func TestSetsOfTuneD(t *testing.T) {
	found := Find(tree(map[string]string{
		"run/tuned/tuned.pid":      "17",
		"etc/tuned/active_profile": "ours",
		"etc/tuned/ours/tuned.conf": "[main]\nsummary=x\ninclude=network-throughput, ours\n\n[big rings]\ntype=net\n" +
			"devices=eth*\nring=rx 4096\n" +
			"# [sysctl]\n[cpu]\ngovernor=performance\n",
		"usr/lib/tuned/network-throughput/tuned.conf": "[sysctl]\nnet.ipv4.tcp_rmem=\"4096 131072 16777216\"\n" +
			"net/core/somaxconn = >2048\n",
	}), map[string]bool{"tuned": true})
	if len(found) != 1 {
		t.Fatalf("found %+v", found)
	}
	o := found[0]
	want := []string{"cpu:*/scaling_governor", "ethtool:*/ring.*", "sysctl:net.core.somaxconn",
		"sysctl:net.ipv4.tcp_rmem"}
	if diff := cmp.Diff(want, o.Sets); diff != "" {
		t.Errorf("sets (-want +got):\n%s", diff)
	}
	if got := o.Reapplies("ethtool:eth0/ring.rx"); got != "tuned sets it with its profile ours" {
		t.Errorf("ring of eth0: %q", got)
	}
	if got := o.Reapplies("sysctl:net.ipv4.tcp_wmem"); got != "" {
		t.Errorf("not in the profile, yet %q", got)
	}
}

func TestReapplies(t *testing.T) {
	for _, c := range []struct {
		owner      Owner
		knob, want string
	}{
		{Owner{Name: "irqbalance", Running: true}, "irq:45/affinity", "irqbalance redistributes interrupts"},
		{Owner{Name: "irqbalance"}, "irq:45/affinity", ""}, // a file it left behind turns nothing
		{Owner{Name: "irqbalance", Running: true}, "irq:45/effective_affinity", ""},
		{Owner{Name: "NetworkManager", Running: true}, "link:eth0/mtu", "NetworkManager sets it"},
		{Owner{Name: "NetworkManager", Running: true}, "sysctl:net.ipv4.tcp_rmem", ""},
		{Owner{Name: "bpftune", Running: true}, "sysctl:net.core.netdev_budget_usecs", "bpftune changes it"},
		{Owner{Name: "bpftune", Running: true}, "sysctl:net.ipv6.neigh.default.gc_thresh3", "bpftune changes it"},
		{Owner{Name: "cloud-init"}, "link:eth0/mtu", ""}, // writes at boot, and a trial is over long before
	} {
		got := c.owner.Reapplies(c.knob)
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, %s: %q, want %q", c.owner.Name, c.knob, got, c.want)
		}
	}
}

// TestClaimsNameKnownPrograms: a claim under a name that Find never gives would be dead.
func TestClaimsNameKnownPrograms(t *testing.T) {
	for name := range claims {
		found := false
		for _, p := range programs {
			found = found || p.name == name
		}
		if !found {
			t.Errorf("no program %q", name)
		}
	}
}
