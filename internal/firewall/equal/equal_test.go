package equal_test

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/firewall/equal"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// rules reads the body of a table filter of iptables. Rules are called by their comments: a rule's
// counter is that of the rule with the same comment before.
func rules(t *testing.T, body string, before *ruleset.Ruleset) *ruleset.Ruleset {
	t.Helper()
	r, err := read.IPTables(strings.NewReader("*filter\n"+strings.TrimSpace(body)+"\nCOMMIT\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]*ruleset.Counter)
	if before != nil {
		for _, c := range before.Tables[0].Chains {
			for _, rule := range c.Rules {
				known[rule.Comment] = rule.Counters()[0]
			}
		}
	}
	for _, c := range r.Tables[0].Chains {
		for _, rule := range c.Rules {
			for i, s := range rule.Statements {
				if _, ok := s.(*ruleset.Counter); ok && known[rule.Comment] != nil {
					rule.Statements[i] = known[rule.Comment]
				}
			}
		}
	}
	return r
}

// TestProve: what is equal, and what differs with a packet that shows it.
func TestProve(t *testing.T) {
	const head = ":FORWARD ACCEPT\n:a -\n:b -\n"
	for _, c := range []struct {
		name, before, after string
		want                equal.Answer
		what                string
	}{
		{"rules apart change places",
			"-A FORWARD -s 10.1.0.0/16 -m comment --comment x -j DROP\n" +
				"-A FORWARD -s 10.2.0.0/16 -m comment --comment y -j ACCEPT",
			"-A FORWARD -s 10.2.0.0/16 -m comment --comment y -j ACCEPT\n" +
				"-A FORWARD -s 10.1.0.0/16 -m comment --comment x -j DROP", equal.Equal, ""},
		{"rules that only count change places",
			"-A FORWARD -s 10.1.0.0/16 -m comment --comment x\n-A FORWARD -d 10.0.0.0/8 -m comment --comment y",
			"-A FORWARD -d 10.0.0.0/8 -m comment --comment y\n-A FORWARD -s 10.1.0.0/16 -m comment --comment x",
			equal.Equal, ""},
		{"rules that overlap do not",
			"-A FORWARD -s 10.1.0.0/16 -m comment --comment x -j DROP\n" +
				"-A FORWARD -d 10.0.0.0/8 -m comment --comment y -j ACCEPT",
			"-A FORWARD -d 10.0.0.0/8 -m comment --comment y -j ACCEPT\n" +
				"-A FORWARD -s 10.1.0.0/16 -m comment --comment x -j DROP",
			equal.Different, "drop before, accept after"},
		{"a prefix too wide",
			"-A FORWARD -s 10.1.0.0/17 -m comment --comment x\n-A FORWARD -d 10.0.0.0/8 -m comment --comment y -j DROP",
			"-A FORWARD -s 10.1.0.0/16 -m comment --comment x\n-A FORWARD -d 10.0.0.0/8 -m comment --comment y -j DROP",
			equal.Different, "counter of"},
		{"a jump by prefix",
			"-A FORWARD -s 10.1.1.0/24 -m comment --comment x\n" +
				"-A FORWARD -s 10.1.2.0/24 -p tcp --dport 80 -m comment --comment y -j DROP",
			"-A FORWARD -s 10.1.0.0/16 -j a\n-A a -s 10.1.2.0/24 -p tcp --dport 80 -m comment --comment y -j DROP\n" +
				"-A a -s 10.1.1.0/24 -m comment --comment x", equal.Equal, ""},
		{"a jump that misses some",
			"-A FORWARD -s 10.1.1.0/24 -m comment --comment x\n-A FORWARD -s 10.1.2.0/24 -m comment --comment y -j DROP",
			"-A FORWARD -s 10.1.0.0/23 -j a\n-A a -s 10.1.1.0/24 -m comment --comment x\n" +
				"-A a -s 10.1.2.0/24 -m comment --comment y -j DROP",
			equal.Different, "drop before, accept after"},
		{"a return leaves its chain",
			"-A FORWARD -s 10.0.0.0/8 -j a\n-A a -d 10.1.0.0/16 -j RETURN\n-A a -p tcp -m comment --comment x -j DROP",
			"-A FORWARD -s 10.0.0.0/8 ! -d 10.1.0.0/16 -p tcp -m comment --comment x -j DROP\n" +
				"-A a -d 10.1.0.0/16 -j RETURN\n-A a -p tcp -j DROP",
			equal.Equal, ""},
		{"a goto does not come back",
			"-A FORWARD -s 10.0.0.0/8 -g a\n-A FORWARD -m comment --comment x -j DROP\n-A a -p tcp -m comment --comment y",
			"-A FORWARD -s 10.0.0.0/8 -j a\n-A FORWARD -m comment --comment x -j DROP\n-A a -p tcp -m comment --comment y",
			equal.Different, "accept before, drop after"},
		{"one condition that is not modelled, and its opposite order",
			"-A FORWARD -m mark --mark 0x1 -m comment --comment x -j DROP\n-A FORWARD -p tcp -m comment --comment y -j ACCEPT",
			"-A FORWARD -p tcp -m comment --comment y -j ACCEPT\n-A FORWARD -m mark --mark 0x1 -m comment --comment x -j DROP",
			equal.Different, "drop before, accept after"},
		{"the same condition in rules that are apart",
			"-A FORWARD -s 10.1.0.0/16 -m mark --mark 0x1 -m comment --comment x -j DROP\n" +
				"-A FORWARD -s 10.2.0.0/16 -m comment --comment y -j ACCEPT",
			"-A FORWARD -s 10.2.0.0/16 -m comment --comment y -j ACCEPT\n" +
				"-A FORWARD -s 10.1.0.0/16 -m mark --mark 0x1 -m comment --comment x -j DROP",
			equal.Equal, ""},
		{"a log line is lost to a rule before it",
			"-A FORWARD -p tcp -j LOG\n-A FORWARD -p tcp --dport 80 -m comment --comment x -j DROP",
			"-A FORWARD -p tcp --dport 80 -m comment --comment x -j DROP\n-A FORWARD -p tcp -j LOG", equal.Different, "effects"},
		{"marks in another order",
			"-A FORWARD -p tcp -j MARK --set-xmark 0x1/0xffffffff\n-A FORWARD -p tcp -j MARK --set-xmark 0x2/0xffffffff",
			"-A FORWARD -p tcp -j MARK --set-xmark 0x2/0xffffffff\n-A FORWARD -p tcp -j MARK --set-xmark 0x1/0xffffffff",
			equal.Different, "effects"},
		{"a limit before and behind a rule that it sees",
			"-A FORWARD -p tcp -m limit --limit 1/sec -m comment --comment x -j DROP\n" +
				"-A FORWARD -s 10.0.0.0/8 -m comment --comment y -j ACCEPT",
			"-A FORWARD -s 10.0.0.0/8 -m comment --comment y -j ACCEPT\n" +
				"-A FORWARD -p tcp -m limit --limit 1/sec -m comment --comment x -j DROP",
			equal.Different, "drop before, accept after"},
		{"a rejection of another kind",
			"-A FORWARD -p tcp -m comment --comment x -j REJECT --reject-with tcp-reset",
			"-A FORWARD -p tcp -m comment --comment x -j REJECT --reject-with icmp-port-unreachable",
			equal.Different, "reject with tcp reset before"},
		{"a chain that no packet meets differs",
			"-A FORWARD -j ACCEPT\n-A b -s 10.0.0.0/8 -j DROP", "-A FORWARD -j ACCEPT\n-A b -s 10.0.0.0/8 -j ACCEPT",
			equal.Equal, ""},
		{"a verdict instead of the policy", "-A FORWARD -s 10.0.0.0/8 -j DROP",
			"-A FORWARD -s 10.0.0.0/8 -j DROP\n-A FORWARD -j ACCEPT", equal.Equal, ""},
	} {
		// Rules without a comment have no counter that both share: theirs are left out of the old rules.
		before := rules(t, head+c.before, nil)
		for _, chain := range before.Tables[0].Chains {
			for _, r := range chain.Rules {
				if r.Comment == "" {
					for i, s := range r.Statements {
						if _, ok := s.(*ruleset.Counter); ok {
							r.Statements = append(r.Statements[:i:i], r.Statements[i+1:]...)
							break
						}
					}
				}
			}
		}
		after := rules(t, head+c.after, withCounters(before))
		got := equal.Prove(before, after, equal.Usual())
		if got.Answer != c.want || !strings.Contains(got.What, c.what) ||
			(got.Answer == equal.Different) != (got.Packet != nil) {
			t.Errorf("%s: %s: %q, packet %v", c.name, got.Answer, got.What, got.Packet)
		}
	}
}

// withCounters returns the rules that have counters.
func withCounters(r *ruleset.Ruleset) *ruleset.Ruleset {
	out := &ruleset.Ruleset{Tables: []*ruleset.Table{{Chains: []*ruleset.Chain{{}}}}}
	for _, c := range r.Tables[0].Chains {
		for _, rule := range c.Rules {
			if len(rule.Counters()) > 0 {
				out.Tables[0].Chains[0].Rules = append(out.Tables[0].Chains[0].Rules, rule)
			}
		}
	}
	return out
}

// TestProveFrame: differences that are not of packets.
func TestProveFrame(t *testing.T) {
	const body = ":FORWARD ACCEPT\n-A FORWARD -s 10.0.0.0/8 -m comment --comment x\n" +
		"-A FORWARD -j ACCEPT -m comment --comment y"
	before := rules(t, strings.ReplaceAll(body, "-j ACCEPT -m comment --comment y",
		"-m comment --comment y -j ACCEPT"), nil)
	for name, spoil := range map[string]func(*ruleset.Table){
		"a counter that no packet increases any more": func(u *ruleset.Table) { u.Chains[0].Rules = u.Chains[0].Rules[1:] },
		"another hook":     func(u *ruleset.Table) { u.Chains[0].Hook = "input" },
		"another priority": func(u *ruleset.Table) { u.Chains[0].Priority++ },
		"another table":    func(u *ruleset.Table) { u.Name = "mangle" },
		"a chain more": func(u *ruleset.Table) {
			u.Chains = append(u.Chains, &ruleset.Chain{Name: "more", Hook: "input"})
		},
	} {
		table, chain := *before.Tables[0], *before.Tables[0].Chains[0]
		table.Chains = []*ruleset.Chain{&chain}
		spoil(&table)
		got := equal.Prove(before, &ruleset.Ruleset{Program: before.Program, Tables: []*ruleset.Table{&table}}, equal.Usual())
		if got.Answer != equal.Different || got.Packet != nil {
			t.Errorf("%s: %s: %q", name, got.Answer, got.What)
		}
	}
}

// TestProveTooMany: a proof that needs more than its limits says so.
func TestProveTooMany(t *testing.T) {
	before := rules(t, ":FORWARD ACCEPT\n-A FORWARD -s 10.0.0.0/9 -m comment --comment x\n"+
		"-A FORWARD -s 10.0.0.0/8 -j DROP", nil)
	after := rules(t, ":FORWARD ACCEPT\n-A FORWARD -s 10.0.0.0/9 -m comment --comment x -j DROP\n"+
		"-A FORWARD -s 10.128.0.0/9 -j DROP", before)
	limits := equal.Usual()
	limits.Work = 5
	for _, r := range before.Tables[0].Chains[0].Rules[1:] {
		r.Statements = append(r.Statements[:1:1], r.Statements[2:]...)
	}
	if got := equal.Prove(before, after, limits); got.Answer != equal.TooMany || got.Chain != "FORWARD" {
		t.Errorf("%s: %q", got.Answer, got.What)
	}
	if got := equal.Prove(before, after, equal.Usual()); got.Answer != equal.Equal || got.Cells < 2 {
		t.Errorf("%s: %q after %d cells", got.Answer, got.What, got.Cells)
	}
}
