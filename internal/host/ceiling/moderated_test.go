package ceiling_test

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/ceiling"
)

// TestModeration: the rate of the field notes to the digit, and the hazards that were known before.
func TestModeration(t *testing.T) {
	dev := func(name, driver, id string, usecs uint32) host.Interface {
		return host.Interface{Name: name, Driver: driver, Coalesce: map[string]uint32{"rx-usecs": usecs},
			Card: &host.Card{PCIID: id}}
	}
	for _, c := range []struct {
		name         string
		cards        []host.Interface
		transactions float64
		hazards      string // severity and parameter of each
	}{
		{"8000/s on an 82540", []host.Interface{dev("eth0", "e1000", "8086:100e", 125)}, 8004.6, ""},
		{"an 82547 at 90 909/s", []host.Interface{dev("eth0", "e1000", "8086:1075", 11)}, 93006,
			"hang InterruptThrottleRate"},
		{"an 82547 without a throttle", []host.Interface{dev("eth0", "e1000", "8086:1019", 0)}, 0,
			"hang InterruptThrottleRate unsuited InterruptThrottleRate"},
		{"two ports that choose for themselves", []host.Interface{dev("eth0", "e1000", "8086:1010", 3),
			dev("eth1", "e1000", "8086:1010", 3)}, 20000, "harmful InterruptThrottleRate"},
		{"two ports at 3000/s", []host.Interface{dev("eth0", "e1000", "8086:1010", 333),
			dev("eth1", "e1000", "8086:1010", 333)}, 3004.8, ""},
		{"e1000e", []host.Interface{dev("eth0", "e1000e", "8086:10d3", 3)}, 20000, ""},
		{"igb has no balanced mode", []host.Interface{dev("eth0", "igb", "8086:1521", 4)}, -1, ""},
		{"another driver", []host.Interface{dev("eth0", "tg3", "14e4:1648", 125)}, -1, ""},
		{"not known", []host.Interface{{Name: "eth0", Driver: "e1000"}}, -1, ""},
	} {
		got := ceiling.Moderation(&host.Snapshot{Interfaces: c.cards})
		if c.transactions < 0 {
			if len(got) != 0 {
				t.Errorf("%s: %+v", c.name, got)
			}
			continue
		}
		if len(got) != len(c.cards) {
			t.Errorf("%s: %+v", c.name, got)
			continue
		}
		var hazards []string
		for _, h := range got[0].Hazards {
			hazards = append(hazards, string(h.Severity), h.Parameter)
			if h.Why == "" || h.Source == "" {
				t.Errorf("%s: %+v", c.name, h)
			}
		}
		if !near(got[0].TransactionsPerSec, c.transactions, 1e-4) || strings.Join(hazards, " ") != c.hazards ||
			got[0].Why == "" {
			t.Errorf("%s: %+v", c.name, got[0])
		}
	}
	// The module also has a setting for a receiver that computes checksums in software.
	card := dev("eth0", "e1000", "8086:100e", 125)
	card.Features = map[string]host.Feature{"rx-checksum": {On: false}}
	if got := ceiling.Moderation(&host.Snapshot{Interfaces: []host.Interface{card}}); len(got) != 1 ||
		len(got[0].Hazards) != 1 || got[0].Hazards[0].Parameter != "XsumRX" {
		t.Errorf("%+v", got)
	}
}
