package ceiling_test

import (
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/bus"
	"github.com/linerate/linerate/internal/host/ceiling"
)

// card is a host with one physical card, and changes to it.
func card(change func(*host.Snapshot, *host.Interface)) *host.Snapshot {
	s := &host.Snapshot{Interfaces: []host.Interface{{
		Name: "eth0", Driver: "tg3", MTUBytes: 1500, SpeedBitsPerSec: 1e9,
		Rings: &host.Rings{Rx: host.Ring{Current: 256, Max: 4096}},
	}}}
	if change != nil {
		change(s, &s.Interfaces[0])
	}
	return s
}

// only gives the names of the ceilings that packets set.
func only(s *host.Snapshot) string {
	var names []string
	for _, c := range ceiling.All(s) {
		switch kind, _, _ := strings.Cut(c.Name, ":"); kind {
		case "interrupts", "polling", "ring":
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, " ")
}

// TestPacketCeilings: shown where they can bind, and nowhere else.
func TestPacketCeilings(t *testing.T) {
	coalesce := func(pairs map[string]uint32) func(*host.Snapshot, *host.Interface) {
		return func(_ *host.Snapshot, dev *host.Interface) { dev.Coalesce = pairs }
	}
	budget := func(packets, usecs string) []host.Setting {
		return []host.Setting{{Knob: "sysctl:net.core.netdev_budget", Value: packets},
			{Knob: "sysctl:net.core.netdev_budget_usecs", Value: usecs}}
	}
	for _, c := range []struct {
		name   string
		change func(*host.Snapshot, *host.Interface)
		want   string
	}{
		{"interrupts are not known", nil, ""},
		{"8000/s hold more than the link has", coalesce(map[string]uint32{"rx-usecs": 125}), ""},
		{"3000/s do not, of small frames", coalesce(map[string]uint32{"rx-usecs": 333}), "interrupts:eth0@64B"},
		{"250/s do not, of any", coalesce(map[string]uint32{"rx-usecs": 4000}), "interrupts:eth0"},
		{"adaptive", coalesce(map[string]uint32{"rx-usecs": 4000, "adaptive-rx": 1}), ""},
		{"counted frames", coalesce(map[string]uint32{"rx-usecs": 4000, "rx-frames": 64}), ""},
		{"a mode of some driver", coalesce(map[string]uint32{"rx-usecs": 1}), ""},
		{"a mode of e1000e", func(_ *host.Snapshot, dev *host.Interface) {
			dev.Driver, dev.Coalesce, dev.Rings.Rx.Current = "e1000e", map[string]uint32{"rx-usecs": 4}, 128
		}, "interrupts:eth0@64B"},
		{"four queues", func(_ *host.Snapshot, dev *host.Interface) {
			dev.Coalesce, dev.Channels = map[string]uint32{"rx-usecs": 333}, &host.Channels{Combined: 4}
		}, ""},
		{"four queues, counted in sysfs", func(_ *host.Snapshot, dev *host.Interface) {
			dev.Coalesce = map[string]uint32{"rx-usecs": 333}
			dev.Queues = []host.Queue{{Name: "rx-0"}, {Name: "rx-1"}, {Name: "rx-2"}, {Name: "rx-3"}, {Name: "tx-0"}}
		}, ""},
		{"a budget below the ring", func(s *host.Snapshot, dev *host.Interface) {
			dev.SpeedBitsPerSec, dev.Rings.Rx.Current, dev.Coalesce = 1e10, 4096, map[string]uint32{"rx-usecs": 500}
			s.Settings = budget("300", "0")
		}, "interrupts:eth0@64B polling:eth0"},
		{"2 ms away with 256 descriptors at 1 Gb/s",
			func(s *host.Snapshot, _ *host.Interface) { s.Settings = budget("300", "2000") }, ""},
		{"8 ms away", func(s *host.Snapshot, _ *host.Interface) { s.Settings = budget("300", "8000") },
			"ring:eth0@8ms"},
		{"2 ms away at 10 Gb/s", func(s *host.Snapshot, dev *host.Interface) {
			s.Settings, dev.SpeedBitsPerSec, dev.Rings.Rx.Current = budget("300", "2000"), 1e10, 512
		}, "ring:eth0@2ms"},
		{"a virtual card", func(s *host.Snapshot, dev *host.Interface) {
			s.Settings, dev.Driver, dev.Coalesce = budget("300", "8000"), "virtio_net",
				map[string]uint32{"rx-usecs": 4000}
		}, ""},
		{"no link", func(s *host.Snapshot, dev *host.Interface) {
			s.Settings, dev.SpeedBitsPerSec = budget("300", "8000"), 0
		}, ""},
		{"no rings", func(s *host.Snapshot, dev *host.Interface) { s.Settings, dev.Rings = budget("300", "8000"), nil },
			""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := card(c.change)
			if got := only(s); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			link := s.Interfaces[0].SpeedBitsPerSec
			for _, name := range strings.Fields(c.want) {
				if got := named(t, s, name); got.BitsPerSec >= link {
					t.Errorf("%+v cannot bind", got)
				}
			}
		})
	}
}

// TestPacketCeilingFigures works the formulas out by hand.
func TestPacketCeilingFigures(t *testing.T) {
	s := card(func(s *host.Snapshot, dev *host.Interface) {
		dev.Coalesce = map[string]uint32{"rx-usecs": 4000}
		s.Settings = []host.Setting{{Knob: "sysctl:net.core.netdev_budget", Value: "100"},
			{Knob: "sysctl:net.core.netdev_budget_usecs", Value: "8000"}}
	})
	for name, want := range map[string]struct {
		bits float64
		says []string
	}{
		"interrupts:eth0": {250 * 256 * 1538 * 8,
			[]string{"250 interrupts/s (ethtool -c eth0: rx-usecs 4000) × at most 256 frames", "64.0 k packets/s",
				"1538 bytes"}},
		"polling:eth0": {250 * 100 * 1538 * 8, []string{"netdev_budget 100", "25.0 k packets/s", "time_squeeze"}},
		// The burst: 256 full frames are 3.15 ms at 1 Gb/s, as many of 64 bytes 172 µs.
		"ring:eth0@8ms": {256 * 1538 * 8 / 8e-3, []string{"256 frames back to back", "3.15 ms at 1.00 Gb/s", "172 µs",
			"8.00 ms"}},
	} {
		got := named(t, s, name)
		if !near(got.BitsPerSec, want.bits, 1e-9) {
			t.Errorf("%s: %v, want %v", name, got.BitsPerSec, want.bits)
		}
		for _, part := range want.says {
			if !strings.Contains(got.Why, part) {
				t.Errorf("%s does not say %q: %s", name, part, got.Why)
			}
		}
	}
}

// TestThrottleOfFieldNotes: 8000 interrupts/s as e1000 sets them are the register 488, and its
// inspect reports 8004.6/s.
func TestThrottleOfFieldNotes(t *testing.T) {
	s := card(func(_ *host.Snapshot, dev *host.Interface) {
		dev.Driver, dev.Coalesce, dev.Rings.Rx.Current = "e1000", map[string]uint32{"rx-usecs": 125}, 100
	})
	got := named(t, s, "interrupts:eth0@64B")
	if !near(got.BitsPerSec, 8004.6*100*84*8, 1e-5) || !strings.Contains(got.Why, "8005 interrupts/s") {
		t.Errorf("%+v", got)
	}
}

func TestCore(t *testing.T) {
	dev := &host.Interface{Name: "eth0", MTUBytes: 1500}
	// A microsecond a packet is a million packets a second, which as full frames are more than 10
	// Gb/s.
	if got, ok := ceiling.Core(dev, time.Microsecond); !ok || got.Name != "core:eth0" ||
		!near(got.BitsPerSec, 1e6*1538*8, 1e-9) || !strings.Contains(got.Why, "1.00 µs") {
		t.Errorf("%+v %v", got, ok)
	}
	for _, cost := range []time.Duration{0, -1} {
		if got, ok := ceiling.Core(dev, cost); ok {
			t.Errorf("%v: %+v", cost, got)
		}
	}
	if _, ok := ceiling.Core(&host.Interface{}, time.Microsecond); ok {
		t.Error("a card without an MTU has an estimate")
	}
}

// TestOldBuses: ISA shows neither width nor clock, so its ceiling is the most that a card can get.
func TestOldBuses(t *testing.T) {
	for kind, want := range map[string]float64{"isa": 8 * 5.556e6, "eisa": 8 * 16.67e6} {
		s := card(func(_ *host.Snapshot, dev *host.Interface) {
			dev.Bus = &host.Bus{Kind: kind}
			if kind == "eisa" {
				dev.Bus.CapacityBitsPerSec = 32 * bus.ISAClock
			}
		})
		if got := named(t, s, "bus:eth0"); !near(got.BitsPerSec, want, 0.001) {
			t.Errorf("%s: %+v, want %v", kind, got, want)
		}
	}
	s := card(func(_ *host.Snapshot, dev *host.Interface) { dev.Bus = &host.Bus{Kind: "platform"} })
	if got := named(t, s, "bus:eth0"); got.Name != "" {
		t.Errorf("a bus of which nothing is known: %+v", got)
	}
}

// TestPayloadOfPackets: packets of 128 bytes cost a PCIe link a twelfth of what packets of 256
// bytes carry; what is not known is said to be assumed.
func TestPayloadOfPackets(t *testing.T) {
	slot := func(payload int) ceiling.Rate {
		return named(t, card(func(_ *host.Snapshot, dev *host.Interface) {
			dev.Bus = &host.Bus{Kind: "pcie", CapacityBitsPerSec: 16e9, Width: 4, SpeedGigatransfers: 5}
			dev.Card = &host.Card{PayloadBytes: payload}
		}), "bus:eth0")
	}
	small, large, unknown := slot(128), slot(256), slot(0)
	if !near(small.BitsPerSec, 16e9*128/152*0.93, 1e-9) || !near(large.BitsPerSec, 16e9*256/280*0.93, 1e-9) ||
		unknown.BitsPerSec != large.BitsPerSec {
		t.Errorf("%v, %v, %v", small.BitsPerSec, large.BitsPerSec, unknown.BitsPerSec)
	}
	if strings.Contains(large.Why, "assumed") || !strings.Contains(unknown.Why, "assumed") {
		t.Errorf("%q and %q", large.Why, unknown.Why)
	}
}

// TestGathered: what a full link brings for each interrupt, from the numbers of AP-450: 1538 bytes
// at 1 Gb/s are 81 274 frames a second.
func TestGathered(t *testing.T) {
	s := &host.Snapshot{Interfaces: []host.Interface{{Name: "eth0", Driver: "e1000", SpeedBitsPerSec: 1e9, MTUBytes: 1500,
		Coalesce: map[string]uint32{"rx-usecs": 1000}, Rings: &host.Rings{Rx: host.Ring{Current: 64, Max: 4096}}}}}
	got := named(t, s, "interrupts:eth0").Why
	for _, want := range []string{"a full link brings 81 frames for each interrupt",
		"holds them from 1270 interrupts/s on"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}

// TestISAWithMemory: a card that receives a frame before it is copied delivers less than either.
func TestISAWithMemory(t *testing.T) {
	s := &host.Snapshot{Interfaces: []host.Interface{{Name: "eth0", Driver: "wd", MTUBytes: 1500,
		Bus: &host.Bus{Kind: "isa"}}}}
	if got := named(t, s, "bus:eth0").Why; !strings.Contains(got, "delivers 7.82 Mb/s of TCP payload") {
		t.Errorf("%q", got)
	}
}
