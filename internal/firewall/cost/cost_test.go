package cost_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/firewall/cost"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

func iptables(t testing.TB, text string) *ruleset.Ruleset {
	t.Helper()
	r, err := read.IPTables(strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const counted = `*filter
:FORWARD DROP [10:600]
:house - [0:0]
:tcp - [0:0]
[500:30000] -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
[400:24000] -A FORWARD -s 10.1.0.0/16 -j house
[90:5400] -A FORWARD -s 10.2.0.0/16 -g tcp
[0:0] -A FORWARD -s 10.9.0.0/16 -j ACCEPT
[100:6000] -A house -s 10.1.1.0/24
[300:18000] -A house -p tcp -j tcp
[390:20000] -A tcp -p tcp -m tcp --dport 80 -j ACCEPT
COMMIT
`

// TestRulesPerPacket: by hand. 990 packets enter: 500 leave at the first rule, 490 see the second.
// 400 go to the chain house with two rules, of which 300 see the chain tcp with one, where 390 of
// 390 are accepted. The 100 others come back and see two more rules.
func TestRulesPerPacket(t *testing.T) {
	report := cost.Of(iptables(t, counted), cost.Prices{Legacy: 1})
	if len(report.Hooks) != 1 {
		t.Fatalf("%d hooks", len(report.Hooks))
	}
	h := report.Hooks[0]
	// Entering: 500 + 10 by the policy + 300 and 90 that tcp decided = 900; of the packets at house
	// 100 come back, 90 of which the goto takes, and 10 see the last rule.
	looks := 900.0 + 400 + 400*2 + 300 + 100 + 90 + 10
	if h.Packets != 900 || math.Abs(h.PerPacket-looks/900) > 1e-9 || math.Abs(h.Nanoseconds-looks/900) > 1e-9 {
		t.Errorf("%v packets, %v rules (%v looks), %v ns; want %v looks",
			h.Packets, h.PerPacket, h.PerPacket*h.Packets, h.Nanoseconds, looks)
	}
	if !h.Counted || h.Rules != 7 || report.NeverHit != 1 {
		t.Errorf("counted %t, %d rules, %d never hit", h.Counted, h.Rules, report.NeverHit)
	}
	if d := report.Costly[0]; d.Chain != "FORWARD" || d.Position != 2 || d.Hits != 400 || d.Looks != 400 {
		t.Errorf("costly: %+v", d)
	}
}

// TestUncounted: without any packet a rule set costs what a packet that matches nothing meets.
func TestUncounted(t *testing.T) {
	report := cost.Of(iptables(t, `*filter
:INPUT ACCEPT [0:0]
:more - [0:0]
-A INPUT -s 10.1.0.0/16 -j ACCEPT
-A INPUT -j more
-A INPUT -s 10.2.0.0/16 -j DROP
-A more -s 10.3.0.0/16 -j ACCEPT
-A more -s 10.4.0.0/16 -j ACCEPT
COMMIT
`), cost.Measured())
	if h := report.Hooks[0]; h.Counted || h.PerPacket != 5 || h.Packets != 0 {
		t.Errorf("%+v", h)
	}
}

// TestSkip: ipfw's skipto takes packets past rules.
func TestSkip(t *testing.T) {
	r, err := read.IPFW(strings.NewReader(`00100 80 800 skipto 1000 ip from 10.1.0.0/24 to any
00200 0 0 count ip from 10.2.0.0/24 to any
00300 0 0 count ip from 10.3.0.0/24 to any
01000 30 300 count tcp from 10.1.0.0/24 to any
65535 100 1000 deny ip from any to any
`))
	if err != nil {
		t.Fatal(err)
	}
	if h := cost.Of(r, cost.Measured()).Hooks[0]; h.Packets != 100 || h.PerPacket != (100+20+20+100+100)/100.0 {
		t.Errorf("%+v", h)
	}
}

func TestFindings(t *testing.T) {
	report := cost.Of(iptables(t, `*filter
:INPUT ACCEPT [0:0]
-A INPUT -s 10.1.0.0/16 -p tcp -m tcp --dport 80 -j DROP
-A INPUT -s 10.0.0.0/8 -j ACCEPT
-A INPUT -s 10.5.0.0/16 -j DROP
-A INPUT -s 10.6.0.0/16 -j ACCEPT
-A INPUT -s 10.7.0.0/16 -m limit --limit 1/s -j DROP
-A INPUT -s 192.0.2.0/24
-A INPUT -s 192.0.2.0/25 -i eth0 -j DROP
-A INPUT ! -s 192.0.2.0/24 -j DROP
-A INPUT -s 198.51.100.0/24 -j ACCEPT
-A INPUT -j DROP
COMMIT
`), cost.Measured())
	var got []string
	for _, f := range report.Findings {
		got = append(got, fmt.Sprintf("%d %s by %d", f.Position, f.Relation, f.ByOther))
	}
	want := []string{"1 generalised by 2", "3 shadowed by 2", "4 redundant by 2", "5 shadowed by 2", "2 generalised by 8",
		"4 generalised by 8", "9 shadowed by 8"}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// BenchmarkTenThousand is the size that the report must bear in a second.
func BenchmarkTenThousand(b *testing.B) {
	var text strings.Builder
	text.WriteString("*filter\n:FORWARD ACCEPT [5:300]\n")
	for i := range 10_000 {
		fmt.Fprintf(&text, "[%d:1000] -A FORWARD -s 10.%d.%d.0/24 -p tcp -m tcp --dport %d -j %s\n",
			i%7, i/256%256, i%256, i, []string{"ACCEPT", "DROP"}[i%2])
	}
	text.WriteString("COMMIT\n")
	for b.Loop() {
		cost.Of(iptables(b, text.String()), cost.Measured())
	}
}

// TestTypical: the rules that diagnose only counts have the prices of their kind.
func TestTypical(t *testing.T) {
	p := cost.Measured()
	if got, want := p.Typical(ruleset.NFT), p.Rule+p.Meta+p.Compare; math.Abs(got-want) > 1e-9 {
		t.Errorf("nft: %v ns, want %v", got, want)
	}
	if got, want := p.Typical(ruleset.IPTablesLegacy), p.Legacy+p.LegacyMatch/2; math.Abs(got-want) > 1e-9 {
		t.Errorf("iptables-legacy: %v ns, want %v", got, want)
	}
}
