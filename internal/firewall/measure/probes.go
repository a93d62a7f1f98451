package measure

import (
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// lines repeats a line for each number from 0.
func lines(n int, format func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(format(i))
		b.WriteByte('\n')
	}
	return b.String()
}

// net3 is the first three bytes of one of 65 536 networks that no datagram of a case has to do
// with.
func net3(i int) string { return fmt.Sprintf("10.%d.%d", i/256%256, i%256) }

// table is a table of nftables with one chain that all datagrams meet, behind sets and chains of
// its own.
//
//go:noinline // 26 copies took 6 kB
func table(family, before, rules string) []Rules {
	return []Rules{{ruleset.NFT, fmt.Sprintf(
		"table %s t {\n%s\nchain out {\ntype filter hook output priority 0; policy accept;\n%s\n}\n}\n",
		family, before, rules)}}
}

// saved is a table of iptables, as iptables-save writes it.
func saved(p ruleset.Program, rules string) []Rules {
	return []Rules{{p, "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n" + rules + "COMMIT\n"}}
}

// set declares a set.
func set(name, typ, flags string, n int, element func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = element(i)
	}
	return fmt.Sprintf("set %s { type %s; %s elements = { %s } }\n", name, typ, flags, strings.Join(all, ", "))
}

// mixed is one of some kinds of rule, which do not come in turn.
func mixed(i int) string {
	switch i * i * 7 % 11 {
	case 0:
		return fmt.Sprintf("udp dport { 53, %d, 67 } counter", 100+i)
	case 1:
		return fmt.Sprintf("oifname \"vlan%d\" ip saddr %s.0/24 counter accept", i, net3(i))
	case 2:
		return fmt.Sprintf("ip saddr 127.0.0.0/8 udp dport %d counter", 5000+i)
	case 5:
		return "ip daddr 127.1.1.1 counter jump x"
	case 6:
		return fmt.Sprintf("ip daddr %s.0/24 tcp dport 22 counter accept", net3(i))
	case 7:
		return "ip saddr @a counter"
	case 8:
		return fmt.Sprintf("ip saddr %s.0/22 counter", net3(i*4))
	}
	return fmt.Sprintf("ip saddr %s.7 udp dport 53 counter accept", net3(i))
}

// nothing is the name of the cases without rules. There are several, because also the place of a
// case in memory counts.
const nothing = "nothing"

// probes are the cases of a calibration.
func probes() []Case {
	counting := func(n int, condition func(i int) string) string {
		return lines(n, func(i int) string { return condition(i) + " counter" })
	}
	always := func(s string) func(int) string { return func(int) string { return s } }
	nft := func(name, family, before, rules string, needs ...string) Case {
		return Case{Name: name, Rules: table(family, before, rules), Needs: append([]string{"nf_tables"}, needs...)}
	}
	all := []Case{
		{Name: nothing}, {Name: nothing}, {Name: nothing}, {Name: nothing},
		nft("an empty chain", "ip", "", ""),
		nft("addresses, few", "ip", "", counting(60, func(i int) string { return "ip saddr " + net3(i) + ".1" })),
		nft("addresses, many", "ip", "", counting(400, func(i int) string { return "ip saddr " + net3(i) + ".1" })),
		nft("prefixes of three bytes", "ip", "",
			counting(120, func(i int) string { return "ip saddr " + net3(i) + ".0/24" })),
		nft("prefixes within a byte", "ip", "",
			counting(200, func(i int) string { return "ip daddr " + net3(i*16) + ".0/20" })),
		nft("addresses in a table of both protocols", "inet", "",
			counting(120, func(i int) string { return "ip saddr " + net3(i) + ".1" })),
		nft("ports", "ip", "", counting(120, func(i int) string { return fmt.Sprintf("udp dport %d", 1000+i) })),
		nft("ranges of ports", "ip", "",
			counting(100, func(i int) string { return fmt.Sprintf("udp dport %d-%d", 1000+i, 1100+i) })),
		nft("ranges of addresses", "ip", "",
			counting(100, func(i int) string { return fmt.Sprintf("ip saddr %s.3-%s.9", net3(i), net3(i)) })),
		nft("names of interfaces", "ip", "",
			counting(100, func(i int) string { return fmt.Sprintf("oifname \"eth%d\"", i) })),
		nft("numbers of interfaces", "ip", "",
			counting(100, func(i int) string { return fmt.Sprintf("meta oif %d", 100+i) })),
		nft("counters", "ip", "", lines(150, always("counter"))),
		nft("matching addresses", "ip", "", counting(120, always("ip saddr 127.0.0.1 ip daddr 127.1.1.1"))),
		nft("jumps", "ip", lines(80, func(i int) string { return fmt.Sprintf("chain c%d { }", i) }),
			lines(80, func(i int) string { return fmt.Sprintf("jump c%d", i) })),
		nft("jumps with a return", "ip",
			lines(60, func(i int) string { return fmt.Sprintf("chain c%d { ip daddr 127.1.1.1 counter return; }", i) }),
			lines(60, func(i int) string { return fmt.Sprintf("ip saddr 127.0.0.1 counter jump c%d", i) })),
		nft("sets of ports", "ip", "",
			counting(20, func(i int) string { return fmt.Sprintf("udp dport { %d, %d, 8080 }", 80+i, 443+i) })),
	}
	// Few lookups in different sets, and rules of all kinds: a CPU that meets the same set again and
	// again has its branches and its cache right, which it has not with the rules of administrators.
	for _, n := range []int{12, 120, 2000} {
		hosts := set("a", "ipv4_addr", "", n, func(i int) string { return net3(i) + ".9" }) +
			set("b", "ipv4_addr", "", n, func(i int) string { return net3(700+i) + ".9" }) +
			set("c", "inet_service", "", n, func(i int) string { return fmt.Sprint(10_000 + i) })
		nets := set("a", "ipv4_addr", "flags interval;", n, func(i int) string { return net3(2*i) + ".0/24" }) +
			set("b", "ipv4_addr", "flags interval;", n, func(i int) string { return net3(9000+2*i) + ".0/25" })
		all = append(all,
			nft(fmt.Sprintf("two sets of %d", n), "ip", hosts, "ip saddr @a counter\nip daddr @b counter\ncounter"),
			nft(fmt.Sprintf("a set of %d ports", n), "ip", hosts, "udp dport @c counter\nudp sport @c counter\ncounter"),
			nft(fmt.Sprintf("two sets of %d intervals", n), "ip", nets, "ip saddr @a counter\nip daddr @b counter\ncounter"))
		if n == 2000 {
			continue
		}
		pairs := set("e", "ipv4_addr . inet_service", "", n, func(i int) string { return net3(i) + ".1 . 53" })
		ranges := set("f", "ipv4_addr . inet_service", "flags interval;", n,
			func(i int) string { return net3(i*2) + ".0/24 . 80-90" })
		all = append(all,
			nft(fmt.Sprintf("a set of %d pairs", n), "ip", pairs,
				"ip saddr . udp dport @e counter\nip daddr . udp sport @e counter\ncounter"),
			nft(fmt.Sprintf("a set of %d pairs of intervals", n), "ip", ranges,
				"ip saddr . udp dport @f counter\nip daddr . udp sport @f counter\ncounter"),
			nft(fmt.Sprintf("a map of %d to chains", n), "ip", "chain x { ip daddr 127.1.1.1 counter; }", fmt.Sprintf(
				"counter\nip daddr vmap { 127.1.1.1 : jump x, %s }", strings.Join(strings.Fields(lines(n, func(i int) string {
					return net3(i) + ".2:accept,"
				})), " "))),
			nft(fmt.Sprintf("rules of all kinds, %d", 30+n), "inet", "chain x { counter; }\n"+hosts, lines(30+n, mixed)),
		)
	}
	ct := []string{"nft_ct", "nf_conntrack"}
	all = append(all,
		nft("one state", "ip", "", "ct state new counter", ct...),
		nft("states", "ip", "", counting(80, always("ct state established,related")), ct...),
		nft("limits", "ip", "", "counter\n"+counting(40, always("limit rate 1/minute")), "nft_limit"),
	)
	legacy := func(name, rules string, needs ...string) Case {
		return Case{Name: "iptables-legacy, " + name, Rules: saved(ruleset.IPTablesLegacy, rules),
			Needs: append([]string{"iptable_filter"}, needs...)}
	}
	foreign := func(name, rules string, needs ...string) Case {
		return Case{Name: "iptables-nft, " + name, Rules: saved(ruleset.IPTablesNFT, rules),
			Needs: append([]string{"nf_tables", "nft_compat"}, needs...)}
	}
	rule := func(n int, condition func(i int) string) string {
		return lines(n, func(i int) string { return "-A OUTPUT " + condition(i) })
	}
	port := func(i int) string { return fmt.Sprintf("-p udp -m udp --dport %d", 1000+i) }
	state := func(int) string { return "-m conntrack --ctstate ESTABLISHED,RELATED" }
	declared := lines(80, func(i int) string { return fmt.Sprintf(":c%d - [0:0]", i) })
	jumps := rule(80, func(i int) string { return fmt.Sprintf("-j c%d", i) })
	return append(all,
		legacy("nothing", ""),
		legacy("prefixes, few", rule(100, func(i int) string { return "-s " + net3(i) + ".0/24" })),
		legacy("prefixes, many", rule(500, func(i int) string { return "-s " + net3(i) + ".0/24" })),
		legacy("matching", rule(200, func(int) string { return "-s 127.0.0.1/32" })),
		legacy("ports", rule(100, port)),
		legacy("jumps", declared+jumps),
		legacy("states", rule(60, state), "xt_conntrack", "nf_conntrack"),
		foreign("prefixes", rule(120, func(i int) string { return "-s " + net3(i) + ".0/24" })),
		foreign("matching", rule(120, func(int) string { return "-s 127.0.0.1/32" })),
		foreign("states", rule(60, state), "xt_conntrack", "nf_conntrack"),
	)
}
