package loop

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host"
)

// TestAsked checks what becomes of the settings of a file at two hosts: each on the NIC that
// carries the path there, the last value of a knob, and a reason wherever a trial cannot help.
func TestAsked(t *testing.T) {
	v := path(3e8)
	near := &fakeHost{values: map[knob.ID]knob.Value{
		"sysctl:net.ipv4.tcp_rmem": "4096 131072 6291456", "sysctl:net.ipv4.tcp_sack": "1",
		"ethtool:eth0/coalesce.rx-usecs": "50", "ethtool:eth0/ring.rx": "256",
		"sysctl:net.core.netdev_budget": "600"}}
	far := &fakeHost{values: map[knob.ID]knob.Value{
		"sysctl:net.ipv4.tcp_rmem": "4096 87380 16777216", "sysctl:net.ipv4.tcp_sack": "1",
		"ethtool:eth1/coalesce.rx-usecs": "0", "sysctl:net.core.netdev_budget": "100"}}
	hosts := map[tune.Side]reader{tune.Near: near, tune.Far: far}
	asked := []Asked{
		{Knob: "sysctl:net.ipv4.tcp_rmem", Value: "4096 87380 4194304", Why: "line 1"},
		{Knob: "sysctl:net.ipv4.tcp_tw_recycle", Value: "1", Why: "line 2", Refused: "removed: it broke NAT"},
		{Knob: "sysctl:vm.nosuch", Value: "1", Why: "line 3"},
		{Knob: "ethtool:enp3s0/coalesce.rx-usecs", Value: "0", Why: "line 4"},
		{Knob: "sysctl:net.ipv4.tcp_rmem", Value: "4096 87380 16777216", Why: "line 5"},
		{Knob: "ethtool:*/ring.rx", Value: "4096", Why: "line 6"},
		{Knob: "sysctl:net.ipv4.tcp_sack", Value: "maybe", Why: "line 7"},
		{Knob: "sysctl:net.core.netdev_budget", Value: "300", Why: "line 8", AtLeast: true},
	}
	all, reasons := askedFor(t.Context(), v, asked, hosts)
	o := TuneOptions{Allow: knob.DisturbsNewSockets}
	refused := refusals{allow: o.Allow, asked: reasons}
	p := &Plan{}
	p.fill(t.Context(), o, all, refused, hosts)
	var got []string
	for _, c := range p.Candidates {
		got = append(got, fmt.Sprintf("%s %s %s→%v (%s) %s", c.Side, c.Knob, c.From, c.Levels, c.Why, c.Refused))
	}
	want := []string{
		"near sysctl:net.ipv4.tcp_rmem 4096 131072 6291456→[4096 87380 16777216] (line 5) ",
		"far sysctl:net.ipv4.tcp_rmem 4096 87380 16777216→[4096 87380 16777216] (line 5) " +
			"this host has it already",
		"near sysctl:net.ipv4.tcp_tw_recycle →[1] (line 2) removed: it broke NAT",
		"near sysctl:vm.nosuch →[1] (line 3) not in the catalogue",
		"near ethtool:eth0/coalesce.rx-usecs 50→[0] (line 4) ",
		"far ethtool:eth1/coalesce.rx-usecs 0→[0] (line 4) this host has it already",
		"near ethtool:eth0/ring.rx 256→[4096] (line 6) " +
			"disturbs running traffic (class d2, allowed is d1; --allow d2 widens)",
		"far ethtool:eth1/ring.rx →[4096] (line 6) " +
			"disturbs running traffic (class d2, allowed is d1; --allow d2 widens)",
		`near sysctl:net.ipv4.tcp_sack 1→[maybe] (line 7) value "maybe": want 0 or 1`,
		`far sysctl:net.ipv4.tcp_sack 1→[maybe] (line 7) value "maybe": want 0 or 1`,
		"near sysctl:net.core.netdev_budget 600→[300] (line 8) this host has it already",
		"far sysctl:net.core.netdev_budget 100→[300] (line 8) ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestOnPath(t *testing.T) {
	card := &host.Interface{Name: "eth0.100"}
	for _, c := range []struct {
		id, want knob.ID
	}{
		{"sysctl:net.ipv4.tcp_sack", "sysctl:net.ipv4.tcp_sack"},
		{"sysctl:net.ipv4.conf.all.rp_filter", "sysctl:net.ipv4.conf.all.rp_filter"},
		{"sysctl:net.ipv6.conf.ens3.accept_ra", "sysctl:net.ipv6.conf.eth0/100.accept_ra"},
		{"link:link/mtu", "link:eth0.100/mtu"},
		{"queue:eth3/rx-0/rps_cpus", "queue:eth0.100/rx-0/rps_cpus"},
	} {
		if got := onPath(c.id, card); got != c.want {
			t.Errorf("%s: %s, want %s", c.id, got, c.want)
		}
		if got := onPath(c.id, nil); got != c.id {
			t.Errorf("%s without a card: %s", c.id, got)
		}
	}
}
