package measure

import (
	"fmt"
	"slices"
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

// probe is a case before its table is written around the rules.
type probe struct {
	name, family, before, rules string
	needs                       []string
}

// ofNFT makes cases of rules of nftables.
func ofNFT(all []probe) []Case {
	cases := make([]Case, len(all))
	for i, p := range all {
		cases[i] = Case{Name: p.name, Rules: table(p.family, p.before, p.rules),
			Needs: append([]string{"nf_tables"}, p.needs...)}
	}
	return cases
}

// ofIPTables makes cases of rules of one of both kinds of iptables, which need its modules, too.
func ofIPTables(program ruleset.Program, all []probe, modules ...string) []Case {
	cases := make([]Case, len(all))
	for i, p := range all {
		cases[i] = Case{Name: string(program) + ", " + p.name, Rules: saved(program, p.rules),
			Needs: slices.Concat(modules, p.needs)}
	}
	return cases
}

// counting are conditions with a counter each.
func counting(n int, condition func(i int) string) string {
	return lines(n, func(i int) string { return condition(i) + " counter" })
}

// appended are rules that iptables-save writes.
func appended(n int, condition func(i int) string) string {
	return lines(n, func(i int) string { return "-A OUTPUT " + condition(i) })
}

// always is a condition that all rules have.
func always(s string) func(int) string { return func(int) string { return s } }

// probes are the cases of a calibration.
func probes() []Case {
	ct := []string{"nft_ct", "nf_conntrack"}
	nft := []probe{
		{name: "an empty chain", family: "ip"},
		{"addresses, few", "ip", "", counting(60, func(i int) string { return "ip saddr " + net3(i) + ".1" }), nil},
		{"addresses, many", "ip", "", counting(400, func(i int) string { return "ip saddr " + net3(i) + ".1" }), nil},
		{"prefixes of three bytes", "ip", "",
			counting(120, func(i int) string { return "ip saddr " + net3(i) + ".0/24" }), nil},
		{"prefixes within a byte", "ip", "",
			counting(200, func(i int) string { return "ip daddr " + net3(i*16) + ".0/20" }), nil},
		{"addresses in a table of both protocols", "inet", "",
			counting(120, func(i int) string { return "ip saddr " + net3(i) + ".1" }), nil},
		{"ports", "ip", "", counting(120, func(i int) string { return fmt.Sprintf("udp dport %d", 1000+i) }), nil},
		{"ranges of ports", "ip", "",
			counting(100, func(i int) string { return fmt.Sprintf("udp dport %d-%d", 1000+i, 1100+i) }), nil},
		{"ranges of addresses", "ip", "",
			counting(100, func(i int) string { return fmt.Sprintf("ip saddr %s.3-%s.9", net3(i), net3(i)) }), nil},
		{"names of interfaces", "ip", "",
			counting(100, func(i int) string { return fmt.Sprintf("oifname \"eth%d\"", i) }), nil},
		{"numbers of interfaces", "ip", "",
			counting(100, func(i int) string { return fmt.Sprintf("meta oif %d", 100+i) }), nil},
		{"counters", "ip", "", lines(150, always("counter")), nil},
		{"matching addresses", "ip", "", counting(120, always("ip saddr 127.0.0.1 ip daddr 127.1.1.1")), nil},
		{"jumps", "ip", lines(80, func(i int) string { return fmt.Sprintf("chain c%d { }", i) }),
			lines(80, func(i int) string { return fmt.Sprintf("jump c%d", i) }), nil},
		{"jumps with a return", "ip",
			lines(60, func(i int) string { return fmt.Sprintf("chain c%d { ip daddr 127.1.1.1 counter return; }", i) }),
			lines(60, func(i int) string { return fmt.Sprintf("ip saddr 127.0.0.1 counter jump c%d", i) }), nil},
		{"sets of ports", "ip", "",
			counting(20, func(i int) string { return fmt.Sprintf("udp dport { %d, %d, 8080 }", 80+i, 443+i) }), nil},
	}
	for _, n := range []int{12, 120, 2000} {
		nft = append(nft, lookups(n)...)
	}
	nft = append(nft,
		probe{"one state", "ip", "", "ct state new counter", ct},
		probe{"states", "ip", "", counting(80, always("ct state established,related")), ct},
		probe{"limits", "ip", "", "counter\n" + counting(40, always("limit rate 1/minute")), []string{"nft_limit"}})

	state := appended(60, always("-m conntrack --ctstate ESTABLISHED,RELATED"))
	tracked := []string{"xt_conntrack", "nf_conntrack"}
	network := func(i int) string { return "-s " + net3(i) + ".0/24" }
	legacy := []probe{
		{name: "nothing"},
		{name: "prefixes, few", rules: appended(100, network)},
		{name: "prefixes, many", rules: appended(500, network)},
		{name: "matching", rules: appended(200, always("-s 127.0.0.1/32"))},
		{name: "ports", rules: appended(100, func(i int) string { return fmt.Sprintf("-p udp -m udp --dport %d", 1000+i) })},
		{name: "jumps", rules: lines(80, func(i int) string { return fmt.Sprintf(":c%d - [0:0]", i) }) +
			appended(80, func(i int) string { return fmt.Sprintf("-j c%d", i) })},
		{name: "states", rules: state, needs: tracked},
	}
	foreign := []probe{
		{name: "prefixes", rules: appended(120, network)},
		{name: "matching", rules: appended(120, always("-s 127.0.0.1/32"))},
		{name: "states", rules: state, needs: tracked},
	}
	return slices.Concat([]Case{{Name: nothing}, {Name: nothing}, {Name: nothing}, {Name: nothing}}, ofNFT(nft),
		ofIPTables(ruleset.IPTablesLegacy, legacy, "iptable_filter"),
		ofIPTables(ruleset.IPTablesNFT, foreign, "nf_tables", "nft_compat"))
}

// lookups are few lookups in different sets of n elements, and rules of all kinds: a CPU that meets
// the same set again and again has its branches and its cache right, which it has not with the
// rules of administrators.
func lookups(n int) []probe {
	hosts := set("a", "ipv4_addr", "", n, func(i int) string { return net3(i) + ".9" }) +
		set("b", "ipv4_addr", "", n, func(i int) string { return net3(700+i) + ".9" }) +
		set("c", "inet_service", "", n, func(i int) string { return fmt.Sprint(10_000 + i) })
	nets := set("a", "ipv4_addr", "flags interval;", n, func(i int) string { return net3(2*i) + ".0/24" }) +
		set("b", "ipv4_addr", "flags interval;", n, func(i int) string { return net3(9000+2*i) + ".0/25" })
	all := []probe{
		{fmt.Sprintf("two sets of %d", n), "ip", hosts, "ip saddr @a counter\nip daddr @b counter\ncounter", nil},
		{fmt.Sprintf("a set of %d ports", n), "ip", hosts, "udp dport @c counter\nudp sport @c counter\ncounter", nil},
		{fmt.Sprintf("two sets of %d intervals", n), "ip", nets, "ip saddr @a counter\nip daddr @b counter\ncounter", nil},
	}
	if n == 2000 {
		return all
	}
	pairs := set("e", "ipv4_addr . inet_service", "", n, func(i int) string { return net3(i) + ".1 . 53" })
	ranges := set("f", "ipv4_addr . inet_service", "flags interval;", n,
		func(i int) string { return net3(i*2) + ".0/24 . 80-90" })
	return append(all,
		probe{fmt.Sprintf("a set of %d pairs", n), "ip", pairs,
			"ip saddr . udp dport @e counter\nip daddr . udp sport @e counter\ncounter", nil},
		probe{fmt.Sprintf("a set of %d pairs of intervals", n), "ip", ranges,
			"ip saddr . udp dport @f counter\nip daddr . udp sport @f counter\ncounter", nil},
		probe{fmt.Sprintf("a map of %d to chains", n), "ip", "chain x { ip daddr 127.1.1.1 counter; }", fmt.Sprintf(
			"counter\nip daddr vmap { 127.1.1.1 : jump x, %s }", strings.Join(strings.Fields(lines(n, func(i int) string {
				return net3(i) + ".2:accept,"
			})), " ")), nil},
		probe{fmt.Sprintf("rules of all kinds, %d", 30+n), "inet", "chain x { counter; }\n" + hosts, lines(30+n, mixed), nil},
	)
}
