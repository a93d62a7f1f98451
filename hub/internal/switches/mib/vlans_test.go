package mib_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/hub/internal/switches/mib"
	"github.com/linerate/linerate/hub/internal/switches/switchtest"
)

var hosts = []net.HardwareAddr{{2, 0, 0, 0, 0, 7}, {2, 0, 0, 0, 0, 8}}

// TestVLANs reads which ports carry which VLANs, and finds hosts in the tables of addresses, also
// where these have other numbers than the VLANs, or several VLANs share one.
func TestVLANs(t *testing.T) {
	a := switchtest.Switch(24, true)
	a.VLAN(1, 1, []int{1, 2, 24}, []int{1, 2, 24})
	for vlan := 10; vlan <= 12; vlan++ {
		a.VLAN(vlan, 100+vlan, []int{3, 24}, []int{3})
	}
	a.VLAN(20, 7, []int{24}, nil)
	a.VLAN(30, 7, []int{24}, nil)
	a.VLAN(4095, 9, []int{2}, nil) // no number of a VLAN
	a.Learnt(111, hosts[0], 24)
	a.Learnt(112, hosts[0], 24) // again at the same port
	a.Learnt(7, hosts[1], 24)
	a.Learnt(1, hosts[1], 0) // 0: learnt, the port is not known
	s := read(t, a, mib.Options{Neighbours: true, Hosts: hosts})
	trunk, access := find(t, s, "Gi0/24"), find(t, s, "Gi0/3")
	if trunk.Untagged.String() != "1" || trunk.Tagged.String() != "10-12,20,30" || access.Untagged.String() != "10-12" ||
		len(access.Tagged) > 0 || len(find(t, s, "Gi0/5").Untagged) > 0 || find(t, s, "Gi0/2").Tagged.Has(4095) {
		t.Errorf("trunk %q and %q, access %q and %q", trunk.Untagged, trunk.Tagged, access.Untagged, access.Tagged)
	}
	want := []mib.Learnt{{Address: hosts[1]}, {Address: hosts[0], VLAN: 11}}
	if !cmp.Equal(trunk.Hosts, want) || len(s.Warnings) > 0 {
		t.Errorf("%s%q", cmp.Diff(want, trunk.Hosts), s.Warnings)
	}
	if !trunk.Tagged.Has(11) || trunk.Tagged.Has(13) || trunk.Tagged.Has(1) {
		t.Error(trunk.Tagged)
	}
}

// TestVLANsConfiguredOnly reads an agent that has the VLANs of its operator alone, whose ports have
// other numbers than their interfaces, and that answers one object at a time.
func TestVLANsConfiguredOnly(t *testing.T) {
	a := switchtest.Switch(4, true)
	a.Set("1.3.6.1.2.1.17.7.1.4.3.1.2.20", switchtest.PortList(51, 52))
	a.Set("1.3.6.1.2.1.17.7.1.4.3.1.4.20", switchtest.PortList(51))
	a.Set("1.3.6.1.2.1.17.1.4.1.2.51", int64(1))
	a.Set("1.3.6.1.2.1.17.1.4.1.2.52", int64(2))
	a.Learnt(20, hosts[0], 52)
	a.Set("1.3.6.1.2.1.17.4.3.1.2.2.0.0.0.0.8", int64(51)) // without VLANs
	s := read(t, oneByOne{a}, mib.Options{Neighbours: true, Hosts: hosts})
	one, two := find(t, s, "Gi0/1"), find(t, s, "Gi0/2")
	if one.Untagged.String() != "20" || two.Tagged.String() != "20" ||
		!cmp.Equal(two.Hosts, []mib.Learnt{{Address: hosts[0], VLAN: 20}}) ||
		!cmp.Equal(one.Hosts, []mib.Learnt{{Address: hosts[1]}}) {
		t.Errorf("%+v\n%+v", one, two)
	}
}

// oneByOne refuses requests for several objects.
type oneByOne struct{ *switchtest.Tree }

func (o oneByOne) Get(ctx context.Context, oids []mib.OID) ([]mib.Binding, error) {
	if len(oids) > 3 || len(oids) > 1 && strings.HasPrefix(oids[0].String(), "1.3.6.1.2.1.17.") {
		return nil, mib.ErrTooBig
	}
	return o.Tree.Get(ctx, oids)
}

// TestManyVLANs reads the most VLANs that there are: the search for a host has a bound, and says
// so.
func TestManyVLANs(t *testing.T) {
	a := switchtest.Switch(2, true)
	for vlan := 1; vlan <= 4094; vlan++ {
		a.VLAN(vlan, vlan, []int{1, 2}, []int{vlan % 2 * 2}[:vlan%2])
	}
	before := a.Asked
	s := read(t, a, mib.Options{Neighbours: true, Hosts: hosts})
	if s.Ports[0].Tagged.String() != "1-4094" || len(s.Ports[1].Tagged) != 2047 ||
		!strings.Contains(strings.Join(s.Warnings, "\n"), "more tables of addresses") {
		t.Errorf("%.60s, %d, %q", s.Ports[0].Tagged, len(s.Ports[1].Tagged), s.Warnings)
	}
	t.Logf("%d requests", a.Asked-before)
	if a.Asked-before > 400 {
		t.Errorf("%d requests", a.Asked-before)
	}
}
