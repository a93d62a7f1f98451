package read_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

const ipfwList = `00100    12     3400 allow ip from any to any via lo0
00200   800    90000 skipto 1000 ip from 10.1.0.0/24 to any in recv vlan1
00210    70     7000 skipto 2000 ip from 10.2.0.0/24,10.3.0.0/24 to any in recv vlan2
00300     9      900 allow tcp from any to me dst-port 22,80-90 setup keep-state
01000   700    80000 count tcp from 10.1.0.0/24 to any // house one
01010   800    90000 allow ip from any to any
02000    70     7000 count udp from any 53 to not 10.0.0.0/8 out xmit em0
02010     1      100 deny log logamount 5 ip from any to any
65535     0        0 deny ip from any to any
`

const pfList = `@0 scrub in all fragment reassemble
  [ Evaluations: 1000      Packets: 500       Bytes: 40000       States: 0     ]
  [ Inserted: uid 0 pid 1 State Creations: 0     ]
@1 block drop in log all label "default"
  [ Evaluations: 900       Packets: 90        Bytes: 9000        States: 0     ]
  [ Inserted: uid 0 pid 1 State Creations: 0     ]
@2 pass in quick on em0 inet proto tcp from 10.1.0.0/16 to any port = ssh flags S/SA keep state
  [ Evaluations: 800       Packets: 80        Bytes: 8000        States: 2     ]
  [ Inserted: uid 0 pid 1 State Creations: 2     ]
@3 pass in on em0 inet proto udp from any to ! 10.2.0.0/16 port 1024:2000 keep state
  [ Evaluations: 700       Packets: 70        Bytes: 7000        States: 3     ]
  [ Inserted: uid 0 pid 1 State Creations: 3     ]
`

func sum(counters []*ruleset.Counter) (n uint64) {
	for _, c := range counters {
		n += c.Packets
	}
	return n
}

func TestIPFW(t *testing.T) {
	r, err := read.IPFW(strings.NewReader(ipfwList))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, in, out, source, destination string
		protocol                           uint8
		sport                              uint16
		rules                              int
		verdict                            ruleset.Kind
		counted                            uint64
	}{
		{"house one", "vlan1", "", "10.1.0.5", "192.0.2.1", 6, 1, 4, ruleset.Accept, 800 + 700 + 800},
		{"house one, udp", "vlan1", "", "10.1.0.5", "192.0.2.1", 17, 1, 4, ruleset.Accept, 800 + 800},
		{"house two", "vlan2", "", "10.3.0.5", "192.0.2.1", 17, 1, 5, ruleset.Drop, 70 + 1},
		{"out", "", "em0", "10.3.0.5", "192.0.2.1", 17, 53, 6, ruleset.Accept, 800},
	} {
		got := r.Trace(read.BSDHook, ruleset.Packet{In: c.in, Out: c.out, Source: netip.MustParseAddr(c.source),
			Destination: netip.MustParseAddr(c.destination), Protocol: c.protocol, SourcePort: c.sport}, nil)
		if len(got.Steps) != c.rules || got.Verdict != c.verdict || sum(got.Counters) != c.counted {
			t.Errorf("%s: %d rules, %s, counted %d; want %d, %s, %d", c.name, len(got.Steps), got.Verdict, sum(got.Counters),
				c.rules, c.verdict, c.counted)
		}
	}
	chain := r.Tables[0].Chains[0]
	if c := chain.Rules[4].Comment; c != "house one" {
		t.Errorf("comment %q", c)
	}
	if !chain.Rules[3].Barrier() || chain.Rules[4].Barrier() {
		t.Error("keep-state is a barrier, and counting is none")
	}
}

func TestPF(t *testing.T) {
	r, err := read.PF(strings.NewReader(pfList))
	if err != nil {
		t.Fatal(err)
	}
	yes := func(*ruleset.Rule, ruleset.Opaque) (bool, bool) { return true, false }
	for _, c := range []struct {
		name, destination string
		protocol          uint8
		port              uint16
		rules             int
		verdict           ruleset.Kind
	}{
		{"quick", "192.0.2.1", 6, 22, 3, ruleset.Accept},
		{"last match", "192.0.2.1", 17, 1500, 4, ruleset.Accept},
		{"negated", "10.2.0.1", 17, 1500, 4, ruleset.Drop},
		{"default", "192.0.2.1", 17, 2001, 4, ruleset.Drop},
	} {
		got := r.Trace(read.BSDHook, ruleset.Packet{In: "em0", Source: netip.MustParseAddr("10.1.9.9"),
			Destination: netip.MustParseAddr(c.destination), Protocol: c.protocol, DestinationPort: c.port}, yes)
		if len(got.Steps) != c.rules || got.Verdict != c.verdict {
			t.Errorf("%s: %d rules, %s; want %d, %s", c.name, len(got.Steps), got.Verdict, c.rules, c.verdict)
		}
	}
	if rule := r.Tables[0].Chains[0].Rules[1]; rule.Comment != "default" || rule.Evaluations != 900 ||
		rule.Counters()[0].Packets != 90 {
		t.Errorf("%+v", rule)
	}
}

// TestPFEmptyLabel reads a label that is empty: pf prints its quotation marks all the same.
func TestPFEmptyLabel(t *testing.T) {
	r, err := read.PF(strings.NewReader(strings.ReplaceAll(pfList, `"default"`, `""`)))
	if err != nil {
		t.Fatal(err)
	}
	rules := r.Tables[0].Chains[0].Rules
	if len(rules) != 4 || rules[1].Comment != "" || rules[1].Counters()[0].Packets != 90 {
		t.Errorf("%d rules, %+v", len(rules), rules[1])
	}
}

func TestBSDBad(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no counters", "00100 allow ip from any to any\n65535 deny ip from any to any\n", "no counters"},
		{"half", "00100 1 2 allow ip from any to any\n", "rule 65535 is missing"},
		{"newer action", "00100 1 2 teleport ip from any to any\n65535 0 0 deny ip from any to any\n", `action "teleport"`},
		{"other text", "*filter\n", "is no rule"},
	} {
		if _, err := read.IPFW(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("ipfw, %s: %v, want %q", c.name, err, c.want)
		}
	}
	for _, c := range []struct{ name, text, want string }{
		{"no counters", "@0 pass in all\n@1 pass out all\n", "no counters"},
		{"half", "@0 pass in all\n", "the last rule has no counters"},
		{"not verbose", "pass in all\n", "pfctl -vvsr"},
		{"newer action", "@0 teleport in all\n", `action "teleport"`},
	} {
		if _, err := read.PF(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("pf, %s: %v, want %q", c.name, err, c.want)
		}
	}
}

func FuzzBSD(f *testing.F) {
	f.Add(ipfwList, pfList)
	f.Fuzz(func(t *testing.T, ipfw, pf string) {
		for _, r := range []func() (*ruleset.Ruleset, error){
			func() (*ruleset.Ruleset, error) { return read.IPFW(strings.NewReader(ipfw)) },
			func() (*ruleset.Ruleset, error) { return read.PF(strings.NewReader(pf)) },
		} {
			if rules, err := r(); err == nil {
				rules.Trace(read.BSDHook, ruleset.Packet{In: "em0"}, nil)
			}
		}
	})
}
