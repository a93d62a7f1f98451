package read_test

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

func blind(t *testing.T, name string) (*ruleset.Ruleset, error) {
	t.Helper()
	b, err := os.ReadFile("testdata/blind/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return read.Any(b)
}

// TestBlind: which rules of strangers match a packet, by hand. A question mark is behind a rule
// of which a condition is not modelled.
func TestBlind(t *testing.T) {
	const tcp, udp = 6, 17
	for _, c := range []struct {
		file, in, source, destination string
		protocol                      uint8
		sport, dport                  uint16
		matched                       string
		verdict                       ruleset.Kind
	}{
		{"target-first.v6", "eth0", "2001:db8::1", "2001:db8::2", tcp, 9, 80, "2", ruleset.Accept},
		{"target-first.v6", "eth0", "2001:db8::1", "2001:db8::2", tcp, 9, 81, "5", ruleset.Reject},
		{"target-first.v6", "eth0", "2001:db8::1", "2001:db8::2", udp, 9, 80, "4 5", ruleset.Reject},
		{"target-first.v6", "eth0", "2001:db9::1", "2001:db8::2", udp, 9, 80, "5", ruleset.Reject},
		{"old-negation.v4", "eth0", "192.0.2.1", "127.0.0.1", tcp, 9, 80, "2", ruleset.Reject},
		{"old-negation.v4", "lo", "127.0.0.1", "127.0.0.1", tcp, 9, 80, "1", ruleset.Accept},
		{"old-negation.v4", "eth0", "10.9.0.1", "192.0.2.1", udp, 9, 80, "3", ruleset.Drop},
		{"old-negation.v4", "eth0", "10.9.0.1", "192.0.2.1", tcp, 9, 80, "", ruleset.Accept},
		{"old-negation.v4", "eth0", "192.0.2.7", "192.0.2.1", tcp, 9, 80, "5?", ruleset.Accept},
		{"forms.pf", "em0", "10.0.0.9", "192.0.2.2", tcp, 28, 1024, "1 2", ruleset.Drop},
		{"forms.pf", "em0", "10.0.0.10", "192.0.2.2", tcp, 28, 1024, "1 5?", ruleset.Reject},
		{"forms.pf", "em1", "192.0.2.1", "192.0.2.2", udp, 28, 53, "1 3 5?", ruleset.Accept},
		{"forms.pf", "em9", "192.0.2.1", "192.0.2.2", udp, 28, 123, "1 4? 5?", ruleset.Reject},
		{"forms.pf", "em9", "192.0.2.1", "192.0.2.2", udp, 28, 99, "1 5? 6?", ruleset.Reject},
		{"blocks.ipfw", "em1", "192.0.2.9", "192.0.2.2", udp, 28, 53, "1? 2? 3", ruleset.Accept},
		{"blocks.ipfw", "em2", "192.0.2.9", "192.0.2.2", udp, 28, 53, "1? 2? 3", ruleset.Accept},
	} {
		r, err := blind(t, c.file)
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		hook := "input"
		if r.Tables[0].Chains[0].Hook == read.BSDHook {
			hook = read.BSDHook
		}
		got := r.Trace(hook, ruleset.Packet{In: c.in, Source: netip.MustParseAddr(c.source),
			Destination: netip.MustParseAddr(c.destination), Protocol: c.protocol, SourcePort: c.sport,
			DestinationPort: c.dport, State: ruleset.StateNew}, nil)
		var matched []string
		for _, s := range got.Steps {
			switch {
			case s.Assumed:
				matched = append(matched, fmt.Sprint(s.Index+1, "?"))
			case s.Matched:
				matched = append(matched, fmt.Sprint(s.Index+1))
			}
		}
		if m := strings.Join(matched, " "); m != c.matched || got.Verdict != c.verdict {
			t.Errorf("%s: %s %s:%d -> %s:%d: rules %q, %s; want %q, %s", c.file, c.in, c.source, c.sport, c.destination,
				c.dport, m, got.Verdict, c.matched, c.verdict)
		}
	}
}

// TestBlindRefused: what cannot be read whole is refused with its reason.
func TestBlindRefused(t *testing.T) {
	for file, want := range map[string]string{
		"mixed.v6":   "line 4: chain POSTROUTING, rule 1: -s: not an address of the table's family",
		"gaps.v4":    `line 3: chain INPUT, rule 1: -s: mask "255.0.255.255" has gaps`,
		"anchors.pf": "line 3: an anchor with rules of its own",
	} {
		if _, err := blind(t, file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

// TestBlindNAT: brackets are around an address of IPv6 alone, so that nft loads what is written.
func TestBlindNAT(t *testing.T) {
	r, err := blind(t, "nat.json")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	const want = "dnat to tcp dport map { 1000 : 1.1.1.1, 2000 : 2.2.2.2 }:tcp dport map"
	if err := ruleset.WriteNFT(&b, r); err != nil || !strings.Contains(b.String(), want) {
		t.Errorf("%v\n%s", err, b.String())
	}
}
