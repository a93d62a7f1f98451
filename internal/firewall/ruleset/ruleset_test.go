package ruleset_test

import (
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/quick"

	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// accounting is what nft 1.0.6 lists of ../read/testdata/nft/accounting.nft.
func accounting(t *testing.T) *ruleset.Ruleset {
	t.Helper()
	f, err := os.Open("testdata/accounting.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := read.NFT(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func packet(in, source, destination string, protocol uint8, sport, dport uint16, state uint8) ruleset.Packet {
	return ruleset.Packet{In: in, Out: "eth1", Source: netip.MustParseAddr(source),
		Destination: netip.MustParseAddr(destination), Protocol: protocol,
		SourcePort: sport, DestinationPort: dport, State: state}
}

// TestTrace: the rules that a packet meets, the verdict and the counters, worked out by hand from
// the text.
func TestTrace(t *testing.T) {
	r := accounting(t)
	for _, c := range []struct {
		name     string
		packet   ruleset.Packet
		rules    int
		verdict  ruleset.Kind
		counters []uint64 // packets that each of them had
		policy   bool
	}{
		{"established", packet("vlan1", "10.1.0.9", "10.1.0.8", 6, 1, 80, ruleset.StateEstablished), 1, ruleset.Accept,
			nil, false},
		{"invalid", packet("vlan1", "10.1.0.9", "10.1.0.8", 6, 1, 80, ruleset.StateInvalid), 1, ruleset.Drop, nil, false},
		// The jump of the map, the rules of the residence, the return, and then the set of blocked
		// addresses and all the rest.
		{"residence", packet("vlan1", "10.1.0.9", "10.1.0.8", 6, 1, 8079, ruleset.StateNew), 18, ruleset.Reject,
			[]uint64{7, 3}, false},
		{"residence, other port", packet("vlan1", "10.1.0.9", "10.1.0.8", 6, 1, 8081, ruleset.StateNew), 18,
			ruleset.Reject, []uint64{7}, false},
		{"second", packet("vlan2", "10.1.0.9", "10.1.0.8", 6, 1, 80, ruleset.StateNew), 2, ruleset.Drop, nil, false},
		{"blocked", packet("eth9", "10.9.255.255", "10.1.0.8", 6, 1, 80, ruleset.StateNew), 4, ruleset.Drop,
			[]uint64{5}, false},
		{"beside blocked", packet("eth9", "10.10.0.0", "10.8.0.8", 6, 1, 53, ruleset.StateNew), 6, ruleset.Accept,
			nil, false},
		{"pair", packet("eth9", "10.0.0.2", "10.8.0.8", 6, 1, 443, ruleset.StateNew), 5, ruleset.Accept, []uint64{12}, false},
		{"no pair", packet("eth9", "10.0.0.2", "10.8.0.8", 6, 1, 80, ruleset.StateNew), 15, ruleset.Reject, nil, false},
		// The goto does not come back: three rules of the chain, and then the policy of the base chain.
		{"goto", packet("eth9", "10.3.0.77", "10.8.0.8", 17, 1, 80, ruleset.StateNew), 6, ruleset.Drop, nil, true},
		{"ports", packet("eth9", "10.4.0.77", "10.8.0.8", 17, 1023, 1024, ruleset.StateNew), 15, ruleset.Reject,
			[]uint64{0}, false},
		{"IPv6", packet("eth9", "2001:db8::1", "2001:db8::2", 6, 1, 80, ruleset.StateNew), 7, ruleset.Reject,
			[]uint64{0}, false},
		{"IPv6, link-local", packet("eth9", "2001:db8::1", "fe80::2", 6, 1, 80, ruleset.StateNew), 15, ruleset.Drop,
			nil, true},
	} {
		got := r.Trace("forward", c.packet, nil)
		var counters []uint64
		for _, n := range got.Counters {
			counters = append(counters, n.Packets)
		}
		if len(got.Steps) != c.rules || got.Verdict != c.verdict || got.Policy != c.policy ||
			len(counters) != len(c.counters) {
			t.Errorf("%s: %d rules, %s, counters %v, policy %t; want %d, %s, %v, %t", c.name, len(got.Steps), got.Verdict,
				counters, got.Policy, c.rules, c.verdict, c.counters, c.policy)
			continue
		}
		for i := range counters {
			if counters[i] != c.counters[i] {
				t.Errorf("%s: counters %v, want %v", c.name, counters, c.counters)
			}
		}
	}
	// An opaque condition is answered by the caller.
	p := packet("eth9", "10.4.0.77", "10.8.0.8", 6, 1, 80, ruleset.StateNew)
	got := r.Trace("forward", p, func(_ *ruleset.Rule, o ruleset.Opaque) (bool, bool) {
		return strings.HasPrefix(o.Text, "limit"), false
	})
	if last := got.Steps[len(got.Steps)-1]; got.Verdict != ruleset.Accept || !last.Assumed {
		t.Errorf("with the limit not reached: %s after %d rules", got.Verdict, len(got.Steps))
	}
	// Only the first packet of a connection passes nat.
	if n := len(r.Trace("prerouting", p, nil).Steps); n != 3 {
		t.Errorf("%d rules of a new connection at prerouting", n)
	}
	p.State = ruleset.StateEstablished
	if n := len(r.Trace("prerouting", p, nil).Steps); n != 1 {
		t.Errorf("%d rules of an established connection at prerouting", n)
	}
}

// TestCircle: half a file may have what the kernel refuses.
func TestCircle(t *testing.T) {
	jump := func(to string) *ruleset.Rule {
		return &ruleset.Rule{Statements: []ruleset.Statement{ruleset.Verdict{Kind: ruleset.Goto, Chain: to}}}
	}
	table := &ruleset.Table{Family: "ip", Name: "t", Chains: []*ruleset.Chain{
		{Name: "in", Hook: "input", Rules: []*ruleset.Rule{jump("a")}}, {Name: "a", Rules: []*ruleset.Rule{jump("in")}},
		{Name: "out", Hook: "output", Rules: []*ruleset.Rule{jump("gone")}}}}
	r := ruleset.Ruleset{Tables: []*ruleset.Table{table}}
	p := packet("", "10.0.0.1", "10.0.0.2", 1, 0, 0, ruleset.StateNew)
	for _, hook := range []string{"input", "output"} {
		if got := r.Trace(hook, p, nil); !got.Cut || got.Verdict != ruleset.Drop {
			t.Errorf("%s: %s, cut %t", hook, got.Verdict, got.Cut)
		}
	}
}

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		field ruleset.Field
		r     ruleset.Range
		want  string
	}{
		{ruleset.Source, ruleset.Prefix(netip.MustParsePrefix("10.1.2.3/8")), "10.0.0.0/8"},
		{ruleset.Source, ruleset.Prefix(netip.MustParsePrefix("0.0.0.0/0")), "0.0.0.0/0"},
		{ruleset.Source, ruleset.Prefix(netip.MustParsePrefix("2001:db8::/33")), "2001:db8::/33"},
		{ruleset.Source, ruleset.Prefix(netip.MustParsePrefix("::/0")), "::/0"},
		{ruleset.Source, ruleset.Range{First: ruleset.Address(netip.MustParseAddr("10.0.0.1")),
			Last: ruleset.Address(netip.MustParseAddr("10.0.0.2"))}, "10.0.0.1-10.0.0.2"},
		{ruleset.InInterface, ruleset.Names("eth*"), `"eth*"`},
		{ruleset.InInterface, ruleset.Names("eth0"), `"eth0"`},
		{ruleset.DestinationPort, ruleset.Numbers(80, 90), "80-90"},
		{ruleset.Protocol, ruleset.Numbers(6, 6), "tcp"},
		{ruleset.State, ruleset.Numbers(64, 64), "untracked"},
	} {
		if got := c.field.FormatRange(c.r); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	if !ruleset.Names("eth*").Contains(ruleset.Name("eth")) || ruleset.Names("eth*").Contains(ruleset.Name("et")) ||
		ruleset.Names("eth*").Contains(ruleset.Name("eti")) {
		t.Error("a wildcard holds what it must not, or not what it must")
	}
}

// TestWithout: a value is in the ranges or in what is without them, never in both.
func TestWithout(t *testing.T) {
	if err := quick.Check(func(ends [6]uint16, v uint16) bool {
		var ranges []ruleset.Range
		in := false
		for i := 0; i < len(ends); i += 2 {
			a, b := min(ends[i], ends[i+1]), max(ends[i], ends[i+1])
			ranges = append(ranges, ruleset.Numbers(uint64(a), uint64(b)))
			in = in || a <= v && v <= b
		}
		held := func(ranges []ruleset.Range) int {
			n := 0
			for _, r := range ranges {
				if r.Contains(ruleset.Number(uint64(v))) {
					n++
				}
			}
			return n
		}
		merged, rest := held(ruleset.Merge(ranges)), held(ruleset.Without(ruleset.DestinationPort, ranges))
		return in && merged == 1 && rest == 0 || !in && merged == 0 && rest == 1
	}, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}

// TestFind: the search of a sorted set finds what a look at every element finds.
func TestFind(t *testing.T) {
	if err := quick.Check(func(starts []uint16, v uint16) bool {
		var fast, slow ruleset.Set
		for _, s := range starts {
			e := ruleset.Element{Key: []ruleset.Range{ruleset.Numbers(uint64(s&^15), uint64(s&^15|7))}}
			fast.Elements, slow.Elements = append(fast.Elements, e), append(slow.Elements, e)
		}
		fast.Sort()
		key := []ruleset.Value{ruleset.Number(uint64(v))}
		return (fast.Find(key) == nil) == (slow.Find(key) == nil)
	}, nil); err != nil {
		t.Error(err)
	}
}

func TestParsePacket(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"in eth0 tcp 10.1.2.3:80 -> 10.2.3.4:5000", "in eth0 tcp 10.1.2.3:80 -> 10.2.3.4:5000 new"},
		{"in eth0 out eth1 udp 10.1.2.3 → 10.2.3.4:53 established",
			"in eth0 out eth1 udp 10.1.2.3:0 -> 10.2.3.4:53 established"},
		{"10.1.2.3:1->10.2.3.4:2", "tcp 10.1.2.3:1 -> 10.2.3.4:2 new"},
		{"icmp 10.1.2.3 -> 10.2.3.4 invalid", "icmp 10.1.2.3 -> 10.2.3.4 invalid"},
		{"tcp [2001:db8::1]:80 -> [2001:db8::2]:81", "tcp [2001:db8::1]:80 -> [2001:db8::2]:81 new"},
	} {
		p, err := ruleset.ParsePacket(c.text)
		if err != nil || p.Text() != c.want {
			t.Errorf("%s: %s, %v; want %s", c.text, p.Text(), err, c.want)
		}
	}
	for _, bad := range []string{"", "10.1.2.3", "10.1.2.3 10.2.3.4", "10.1.2.3 -> 2001:db8::1",
		"icmp 10.1.2.3:1 -> 10.2.3.4:2", "tcp 10.1.2.3:70000 -> 10.2.3.4:2", "frob 10.1.2.3 -> 10.2.3.4", "-> 10.1.2.3",
		"10.1.2.3 -> 10.2.3.4 -> 10.3.4.5"} {
		if p, err := ruleset.ParsePacket(bad); err == nil {
			t.Errorf("%q is %s", bad, p.Text())
		}
	}
}
