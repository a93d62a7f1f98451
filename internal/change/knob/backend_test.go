package knob_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/knobtest"
)

// memoryFixture is a host in memory and what may be done to it.
func memoryFixture(*testing.T) (*knob.Memory, knobtest.Fixture) {
	m := knob.NewMemory(map[knob.ID]knob.Value{
		"sysctl:net.ipv4.tcp_rmem":                 "4096 131072 33554432",
		"sysctl:net.core.rmem_max":                 "4194304",
		"sysctl:net.ipv4.conf.eth0/100.rp_filter":  "0",
		"sysctl:net.ipv4.tcp_sack":                 "1",
		"sysctl:net.core.flow_limit_cpu_bitmap":    "0",
		"link:eth0/mtu":                            "1500",
		"ethtool:eth0/feature.rx-gro":              "on",
		"route:default/initcwnd":                   "0",
		"route:10.0.0.0/8/window":                  "0",
		"sysctl:net.ipv4.ip_local_reserved_ports":  "",
		"sysctl:net.a_module.that_nobody_heard_of": "a b",
	})
	m.SetReadOnly("sysctl:net.core.rmem_max", true)
	// A driver that has the NIC but not this operation.
	const unsupported = knob.ID("ethtool:eth0/ring.rx")
	cannot := func(id knob.ID) error {
		if id == unsupported {
			return knob.ErrNotSupported
		}
		return nil
	}
	m.Set(unsupported, "256")
	m.OnRead = func(_ context.Context, id knob.ID) error { return cannot(id) }
	m.OnWrite = func(_ context.Context, id knob.ID, v knob.Value) (knob.Value, error) { return v, cannot(id) }
	return m, knobtest.Fixture{
		Backend:     m,
		Unsupported: unsupported,
		Writable: []knobtest.Pair{
			{Knob: "sysctl:net.ipv4.tcp_rmem", A: "4096 131072 6291456", B: "8192 262144 67108864"},
			{Knob: "sysctl:net.ipv4.conf.eth0/100.rp_filter", A: "1", B: "2"},
			{Knob: "link:eth0/mtu", A: "9000", B: "1400"},
			{Knob: "ethtool:eth0/feature.rx-gro", A: "off", B: "on"},
			{Knob: "route:default/initcwnd", A: "32", B: "0"},
			{Knob: "route:10.0.0.0/8/window", A: "65535", B: "0"},
			{Knob: "sysctl:net.a_module.that_nobody_heard_of", A: "c", B: "d e"},
		},
		Messy: []knobtest.Messy{
			{Knob: "sysctl:net.ipv4.tcp_rmem", Text: "\t4096\t131072   6291456\n", ReadBack: "4096 131072 6291456"},
			{Knob: "sysctl:net.ipv4.tcp_sack", Text: "off", ReadBack: "0"},
			{Knob: "ethtool:eth0/feature.rx-gro", Text: "0", ReadBack: "off"},
			{Knob: "sysctl:net.core.flow_limit_cpu_bitmap", Text: "00000000,000000FF", ReadBack: "ff"},
			{Knob: "sysctl:net.ipv4.ip_local_reserved_ports", Text: "7070,80,81-90,82", ReadBack: "80-90,7070"},
			{Knob: "sysctl:net.a_module.that_nobody_heard_of", Text: " x \t y ", ReadBack: "x y"},
		},
		Invalid: []knob.Setting{
			{Knob: "sysctl:net.ipv4.tcp_rmem", Value: "4096 131072"},
			{Knob: "sysctl:net.ipv4.tcp_rmem", Value: "4096 131072 5000000000"},
			{Knob: "sysctl:net.ipv4.tcp_sack", Value: "banana"},
			{Knob: "link:eth0/mtu", Value: "10"},
		},
		ReadOnly: knob.Setting{Knob: "sysctl:net.core.rmem_max", Value: "8388608"},
		Missing:  []knob.ID{"sysctl:net.core.netdev_budget", "link:eth9/mtu", "route:10.9.0.0/16/window"},
		Foreign:  func(_ *testing.T, s knob.Setting) { m.Set(s.Knob, s.Value) },
		Device:   "link:eth0/mtu",
		Vanish:   func(*testing.T) { m.Remove("link:eth0/mtu") },
	}
}

func TestMemory(t *testing.T) {
	knobtest.Suite(t, func(t *testing.T) knobtest.Fixture {
		_, f := memoryFixture(t)
		return f
	})
}

func TestDryRun(t *testing.T) {
	knobtest.Suite(t, func(t *testing.T) knobtest.Fixture {
		m, f := memoryFixture(t)
		before := m.Values()
		foreign, vanished := false, false
		f.Backend = knob.NewDryRun(m)
		set, vanish := f.Foreign, f.Vanish
		f.Foreign = func(t *testing.T, s knob.Setting) { foreign = true; set(t, s) }
		f.Vanish = func(t *testing.T) { vanished = true; vanish(t) }
		t.Cleanup(func() {
			if diff := cmp.Diff(before, m.Values()); diff != "" && !foreign && !vanished {
				t.Errorf("a dry run changed the host (-before +after):\n%s", diff)
			}
		})
		return f
	})
}

func TestDryRunRemembersInOrder(t *testing.T) {
	m := knob.NewMemory(map[knob.ID]knob.Value{"link:a/mtu": "1500", "link:b/mtu": "1500"})
	d := knob.NewDryRun(m)
	for _, s := range []knob.Setting{{Knob: "link:b/mtu", Value: "9000"}, {Knob: "link:a/mtu", Value: " 1400 "},
		{Knob: "link:b/mtu", Value: "1500"}} {
		if err := d.Write(t.Context(), s.Knob, s.Value); err != nil {
			t.Fatal(err)
		}
	}
	want := []knob.Setting{{Knob: "link:b/mtu", Value: "9000"}, {Knob: "link:a/mtu", Value: "1400"},
		{Knob: "link:b/mtu", Value: "1500"}}
	if diff := cmp.Diff(want, d.Writes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMemoryHooks(t *testing.T) {
	m := knob.NewMemory(map[knob.ID]knob.Value{"link:a/mtu": "1500", "link:b/mtu": "1500"})
	broken := errors.New("driver error")
	// A driver that rounds up to 256, and another that fails.
	m.OnWrite = func(_ context.Context, id knob.ID, v knob.Value) (knob.Value, error) {
		if id == "link:b/mtu" {
			return "", broken
		}
		var n int
		if _, err := fmt.Sscan(string(v), &n); err != nil {
			return "", err
		}
		return knob.Value(fmt.Sprint((n + 255) / 256 * 256)), nil
	}
	if err := m.Write(t.Context(), "link:a/mtu", "1400"); err != nil {
		t.Fatal(err)
	}
	if v, _ := m.Read(t.Context(), "link:a/mtu"); v != "1536" {
		t.Errorf("rounded to %q", v)
	}
	if err := m.Write(t.Context(), "link:b/mtu", "1400"); !errors.Is(err, broken) {
		t.Errorf("write: %v", err)
	}
	m.OnRead = func(context.Context, knob.ID) error { return broken }
	if _, err := m.Read(t.Context(), "link:a/mtu"); !errors.Is(err, broken) {
		t.Errorf("read: %v", err)
	}
	if diff := cmp.Diff([]knob.ID{"link:a/mtu", "link:b/mtu"}, m.IDs()); diff != "" {
		t.Error(diff)
	}
}

// A map given to NewMemory belongs to the caller.
func TestMemoryCopies(t *testing.T) {
	values := map[knob.ID]knob.Value{"link:a/mtu": "1500"}
	before := maps.Clone(values)
	m := knob.NewMemory(values)
	var wg sync.WaitGroup
	wg.Go(func() { m.Set("link:a/mtu", "1") })
	wg.Wait()
	if diff := cmp.Diff(before, values); diff != "" {
		t.Error(diff)
	}
}
