package read_test

import (
	"net/netip"
	"testing"

	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// TestUnknownDoesNotMatter: a rule cannot match when one of its conditions fails, whatever an
// unknown one before it would answer.
func TestUnknownDoesNotMatter(t *testing.T) {
	for _, c := range []struct {
		text    string
		assumed bool
	}{
		{"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m time --timestart 01:00 -p tcp --dport 23 -j DROP\nCOMMIT\n", false},
		{"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m time --timestart 01:00 -p tcp --dport 22 -j DROP\nCOMMIT\n", true},
		{"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m time --timestart 01:00 -j DROP\nCOMMIT\n", true},
		{chain("limit rate 1/second tcp dport 23 drop"), false},
		{chain("limit rate 1/second tcp dport 22 drop"), true},
		{chain("limit rate 1/second counter tcp dport vmap { 23 : drop }"), false},
		{chain("limit rate 1/second counter tcp dport vmap { 22 : drop }"), true},
		// A statement between them could change what the last condition sees.
		{chain("limit rate 1/second tcp dport set 23 tcp dport 23 drop"), true},
	} {
		r, err := read.Any([]byte(c.text))
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		for _, holds := range []bool{false, true} {
			got := r.Trace("input", ruleset.Packet{Source: netip.MustParseAddr("10.0.0.1"), Protocol: 6,
				Destination: netip.MustParseAddr("10.0.0.2"), DestinationPort: 22, State: ruleset.StateNew},
				func(*ruleset.Rule, ruleset.Opaque) (bool, bool) { return holds, false })
			if s := got.Steps[0]; s.Assumed != c.assumed {
				t.Errorf("%s: assumed %t, matched %t", c.text, s.Assumed, s.Matched)
			}
		}
	}
}

// chain is a base chain of nftables with one rule.
func chain(rule string) string {
	return "table ip t {\n chain c {\n  type filter hook input priority 0; policy accept;\n  " + rule + "\n }\n}\n"
}
