package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"

	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// seed describes one family of filter sets, after those of ClassBench (Taylor and Turner, IEEE/ACM
// Transactions on Networking 15(3), 2007): how many rules leave a field open, how long prefixes
// are, which protocols and which classes of ports appear. The shares are rounded and our own, not
// those of the paper's seeds.
type seed struct {
	name                string
	anySource, anyDest  float64
	shortest, longest   int // prefix lengths
	hosts               float64
	tcp, udp, icmp      float64 // the rest leaves the protocol open
	sourcePort          [4]float64
	destPort            [4]float64 // open, 1024 and above, any range, one port
	nested, deny, repel float64
}

var seeds = []seed{
	{"acl", 0.02, 0.01, 16, 32, 0.5, 0.74, 0.15, 0.04, [4]float64{0.99, 0, 0, 0.01},
		[4]float64{0.25, 0.05, 0.15, 0.55}, 0.5, 0.3, 0.02},
	{"fw", 0.35, 0.2, 8, 32, 0.6, 0.6, 0.25, 0.05, [4]float64{0.65, 0.15, 0.05, 0.15},
		[4]float64{0.3, 0.1, 0.1, 0.5}, 0.3, 0.4, 0.05},
	{"ipc", 0.08, 0.08, 14, 32, 0.55, 0.55, 0.25, 0.05, [4]float64{0.75, 0.05, 0.05, 0.15},
		[4]float64{0.4, 0.05, 0.1, 0.45}, 0.4, 0.3, 0.02},
}

var services = []uint64{20, 21, 22, 23, 25, 53, 67, 69, 80, 110, 119, 123, 135, 137, 139, 143, 161, 162, 179, 389, 443,
	445, 500, 514, 520, 993, 1433, 1521, 1723, 2049, 3306, 3389, 5060, 5432, 8080}

// tuple is one rule of five fields.
type tuple struct {
	source, destination netip.Prefix
	protocol            uint64 // 0: any
	sport, dport        ruleset.Range
	hasSport, hasDport  bool
	verdict             ruleset.Kind
}

// tuples makes a filter set: prefixes share their beginnings, as those of one site do.
func (s seed) tuples(r *rand.Rand, n int) []tuple {
	pool := func() []netip.Prefix {
		var all []netip.Prefix
		sites := max(2, n/40)
		for range max(4, n/3) {
			site := uint32(r.IntN(sites))
			a := 0x0a000000 | site*2654435761>>8&0xffff00 | uint32(r.IntN(256))
			bits := 32
			if r.Float64() > s.hosts {
				bits = s.shortest + r.IntN(s.longest-s.shortest)
			}
			if len(all) > 0 && r.Float64() < s.nested {
				a = uint32(all[r.IntN(len(all))].Addr().As4()[0])<<24 | a&0xffffff
			}
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)}), bits).Masked()
			all = append(all, p)
		}
		return all
	}
	from, to := pool(), pool()
	port := func(weights [4]float64) (ruleset.Range, bool) {
		x := r.Float64()
		switch {
		case x < weights[0]:
			return ruleset.Range{}, false
		case x < weights[0]+weights[1]:
			return ruleset.Numbers(1024, 65535), true
		case x < weights[0]+weights[1]+weights[2]:
			a := uint64(r.IntN(60000))
			return ruleset.Numbers(a, a+1+uint64(r.IntN(5000))), true
		}
		p := services[r.IntN(len(services))]
		return ruleset.Numbers(p, p), true
	}
	all := make([]tuple, n)
	for i := range all {
		t := &all[i]
		if r.Float64() >= s.anySource {
			t.source = from[r.IntN(len(from))]
		}
		if r.Float64() >= s.anyDest {
			t.destination = to[r.IntN(len(to))]
		}
		switch x := r.Float64(); {
		case x < s.tcp:
			t.protocol = 6
		case x < s.tcp+s.udp:
			t.protocol = 17
		case x < s.tcp+s.udp+s.icmp:
			t.protocol = 1
		}
		if t.protocol == 6 || t.protocol == 17 {
			t.sport, t.hasSport = port(s.sourcePort)
			t.dport, t.hasDport = port(s.destPort)
		}
		t.verdict = ruleset.Accept
		if r.Float64() < s.deny {
			t.verdict = ruleset.Drop
		}
	}
	return all
}

// nft returns the rule of a tuple as nftables has it.
func (t tuple) nft(counter *ruleset.Counter) *ruleset.Rule {
	r := new(ruleset.Rule)
	match := func(f ruleset.Field, header string, v ruleset.Range) {
		r.Statements = append(r.Statements, ruleset.Match{Key: []ruleset.Term{{Field: f, Header: header}},
			Plain: []ruleset.Range{v}})
	}
	if t.source.IsValid() {
		match(ruleset.Source, "ip", ruleset.Prefix(t.source))
	}
	if t.destination.IsValid() {
		match(ruleset.Destination, "ip", ruleset.Prefix(t.destination))
	}
	header := map[uint64]string{6: "tcp", 17: "udp"}[t.protocol]
	if t.protocol != 0 && !t.hasSport && !t.hasDport {
		match(ruleset.Protocol, "meta", ruleset.Numbers(t.protocol, t.protocol))
	}
	if t.hasSport {
		match(ruleset.SourcePort, header, t.sport)
	}
	if t.hasDport {
		match(ruleset.DestinationPort, header, t.dport)
	}
	if counter != nil {
		r.Statements = append(r.Statements, counter)
	}
	if t.verdict != ruleset.None {
		r.Statements = append(r.Statements, ruleset.Verdict{Kind: t.verdict})
	}
	return r
}

// xtables returns the line of a tuple as iptables-save prints it.
func (t tuple) xtables(i int) string {
	s := fmt.Sprintf("[%d:%d] -A FORWARD", i%7, i%7*100)
	if t.source.IsValid() {
		s += " -s " + t.source.String()
	}
	if t.destination.IsValid() {
		s += " -d " + t.destination.String()
	}
	if t.protocol != 0 {
		name := map[uint64]string{1: "icmp", 6: "tcp", 17: "udp"}[t.protocol]
		s += " -p " + name
		ports := func(option string, r ruleset.Range) {
			s += fmt.Sprintf(" --%s %d:%d", option, r.First.Number(), r.Last.Number())
		}
		if t.hasSport || t.hasDport {
			s += " -m " + name
		}
		if t.hasSport {
			ports("sport", t.sport)
		}
		if t.hasDport {
			ports("dport", t.dport)
		}
	}
	if t.verdict != ruleset.None {
		s += " -j " + map[ruleset.Kind]string{ruleset.Accept: "ACCEPT", ruleset.Drop: "DROP"}[t.verdict]
	}
	return s + "\n"
}

// forwarding makes a ruleset of nftables with one chain.
func forwarding(rules []*ruleset.Rule) *ruleset.Ruleset {
	c := &ruleset.Chain{Name: "forward", Type: "filter", Hook: "forward", Policy: ruleset.Accept, Rules: rules}
	return &ruleset.Ruleset{Program: ruleset.NFT,
		Tables: []*ruleset.Table{{Family: "ip", Name: "filter", Chains: []*ruleset.Chain{c}}}}
}

// generated makes a filter set of a seed with n rules, all with counters.
func generated(s seed, number uint64, n int) *ruleset.Ruleset {
	r := rand.New(rand.NewPCG(number, uint64(n)))
	var rules []*ruleset.Rule
	for i, t := range s.tuples(r, n) {
		rules = append(rules, t.nft(&ruleset.Counter{Packets: uint64(i), Bytes: uint64(100 * i)}))
	}
	return forwarding(rules)
}

// generatedXtables makes one of iptables.
func generatedXtables(s seed, number uint64, n int, program ruleset.Program) *ruleset.Ruleset {
	var b strings.Builder
	b.WriteString("# Generated by iptables-save v1.8.9")
	if program == ruleset.IPTablesNFT {
		b.WriteString(" (nf_tables)")
	}
	b.WriteString("\n*filter\n:FORWARD DROP [5:500]\n")
	for k, u := range s.tuples(rand.New(rand.NewPCG(7, number)), n) {
		b.WriteString(u.xtables(k))
	}
	b.WriteString("COMMIT\n")
	r, err := read.IPTables(strings.NewReader(b.String()), nil)
	if err != nil {
		panic(err)
	}
	return r
}
