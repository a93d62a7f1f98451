package cost_test

import (
	"math"
	"net/netip"
	"testing"

	"github.com/linerate/linerate/internal/firewall/cost"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// from is a condition on the source, and prefix its range.
func from(header, prefix string) ruleset.Match {
	return ruleset.Match{Key: []ruleset.Term{{Field: ruleset.Source, Header: header}},
		Plain: []ruleset.Range{ruleset.Prefix(netip.MustParsePrefix(prefix))}}
}

func chain(family, name string, priority int, rules ...[]ruleset.Statement) *ruleset.Table {
	c := &ruleset.Chain{Name: name, Hook: "input", Priority: priority, Policy: ruleset.Accept}
	for _, statements := range rules {
		c.Rules = append(c.Rules, &ruleset.Rule{Statements: statements})
	}
	return &ruleset.Table{Family: family, Name: name, Chains: []*ruleset.Chain{c}}
}

func count(n uint64) *ruleset.Counter { return &ruleset.Counter{Packets: n} }

// TestHookShared: nftables counts for no policy, so a chain whose rules saw little was passed by
// what the other chains of the hook let through. By hand: 1000 packets come, 100 are dropped first.
func TestHookShared(t *testing.T) {
	rules := &ruleset.Ruleset{Program: ruleset.NFT, Tables: []*ruleset.Table{
		chain("inet", "first", -10, []ruleset.Statement{count(1000)},
			[]ruleset.Statement{from("ip", "10.9.0.0/16"), count(100), ruleset.Verdict{Kind: ruleset.Drop}}),
		chain("ip", "silent", 0, []ruleset.Statement{from("ip", "10.1.0.0/16"), count(0)}),
		chain("ip", "seldom", 5, []ruleset.Statement{from("ip", "10.2.0.0/16"), count(7)}),
		chain("ip6", "other", 0, []ruleset.Statement{from("ip6", "fd00::/8"), count(0)}),
	}}
	h := cost.Of(rules, cost.Prices{Rule: 1}).Hooks[0]
	for i, want := range []float64{1000, 900, 900, 1} {
		if got := h.Chains[i].Packets; got != want {
			t.Errorf("%s: %v packets, want %v", h.Chains[i].Table, got, want)
		}
	}
	// Of 1000 packets all meet two rules, and 900 two more; no packet of IPv6 is known.
	if want := (2*1000 + 2*900) / 1000.0; math.Abs(h.PerPacket-want) > 1e-9 || math.Abs(h.Nanoseconds-want) > 1e-9 ||
		h.Chains[3].Counted {
		t.Errorf("%v rules and %v ns per packet, want %v", h.PerPacket, h.Nanoseconds, want)
	}
}

// TestOperations: what the kernel does for a condition, priced with one digit each.
func TestOperations(t *testing.T) {
	p := cost.Prices{Rule: 1, Compare: 10, Mask: 100, Copy: 1e3, Meta: 1e4, Range: 1e5, Statement: 1e6, Hash: 1e7,
		Bitmap: 1e8, Joined: 1e9, Jump: 1e10}
	port := func(header string) ruleset.Term { return ruleset.Term{Field: ruleset.DestinationPort, Header: header} }
	one := func(types ...string) *ruleset.Set {
		return &ruleset.Set{Types: types, Elements: []ruleset.Element{
			{Key: make([]ruleset.Range, len(types)), Verdict: ruleset.Verdict{Kind: ruleset.Jump, Chain: "x"}}}}
	}
	source := ruleset.Term{Field: ruleset.Source, Header: "ip"}
	for _, c := range []struct {
		family     string
		statements []ruleset.Statement
		missed     float64 // of a packet that does not match
	}{
		{"ip", []ruleset.Statement{from("ip", "10.1.2.3/32")}, 11},
		{"ip", []ruleset.Statement{from("ip", "10.1.0.0/16")}, 11},
		{"ip", []ruleset.Statement{from("ip", "10.1.2.0/24")}, 1011},
		{"ip", []ruleset.Statement{from("ip", "10.1.0.0/20")}, 111},
		{"ip6", []ruleset.Statement{from("ip6", "fd00::1/128")}, 1011},
		{"inet", []ruleset.Statement{from("ip", "10.1.2.3/32")}, 10_011},
		{"inet", []ruleset.Statement{from("ip", "10.1.2.3/32"), from("ip", "10.1.2.3/32")}, 10_011},
		{"ip", []ruleset.Statement{ruleset.Match{Key: []ruleset.Term{port("tcp")},
			Plain: []ruleset.Range{ruleset.Numbers(80, 80)}}}, 10_011},
		{"ip", []ruleset.Statement{ruleset.Match{Key: []ruleset.Term{port("tcp")},
			Plain: []ruleset.Range{ruleset.Numbers(80, 90)}}}, 110_011},
		// The protocol is not what most packets fail at, and it is compared once.
		{"ip", []ruleset.Statement{ruleset.Match{Key: []ruleset.Term{{Field: ruleset.Protocol, Header: "meta"}},
			Plain: []ruleset.Range{ruleset.Numbers(6, 6)}},
			ruleset.Match{Key: []ruleset.Term{port("tcp")}, Plain: []ruleset.Range{ruleset.Numbers(80, 80)}}}, 10_011},
		{"ip", []ruleset.Statement{ruleset.Match{Key: []ruleset.Term{source}, Set: one("ipv4_addr")}}, 10_000_011},
		{"ip", []ruleset.Statement{ruleset.Match{Key: []ruleset.Term{port("th")}, Set: one("inet_service")}}, 100_000_011},
		{"ip", []ruleset.Statement{ruleset.Match{Key: []ruleset.Term{source, port("th")},
			Set: one("ipv4_addr", "inet_service")}}, 1_000_000_021},
		{"ip", []ruleset.Statement{ruleset.VerdictMap{Key: []ruleset.Term{source}, Set: one("ipv4_addr")}}, 10_000_011},
		{"ip", []ruleset.Statement{count(0), ruleset.Verdict{Kind: ruleset.Continue}}, 2_000_001},
	} {
		rules := &ruleset.Ruleset{Program: ruleset.NFT, Tables: []*ruleset.Table{chain(c.family, "t", 0, c.statements)}}
		if got := cost.Time(rules, p); got != c.missed {
			t.Errorf("%s %s: %v, want %v", c.family, cost.Text(rules.Tables[0].Chains[0].Rules[0]), got, c.missed)
		}
	}
}
