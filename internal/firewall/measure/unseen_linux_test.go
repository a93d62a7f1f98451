package measure

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// unseen are rulesets of other shapes and sizes than those of a calibration. All of them count.
func unseen() []Case {
	var all []Case
	add := func(name string, rules []Rules) { all = append(all, Case{Name: name, Rules: rules}) }

	// The accounting of a router: four rules for each network, and the datagram matches those of one.
	accounting := func(n, at int, mask string) string {
		return lines(n, func(i int) string {
			net := net3(i + 500)
			if i == at {
				net = "127.0.0"
			}
			return fmt.Sprintf("ip saddr %[1]s.0%[2]s counter\nip daddr %[1]s.0%[2]s counter\n"+
				"ip saddr %[1]s.0%[2]s meta l4proto tcp counter\nip daddr %[1]s.0%[2]s meta l4proto tcp counter", net, mask)
		})
	}
	for _, n := range []int{1, 10, 40, 160} {
		add(fmt.Sprintf("nft, accounting of %d networks, the last", n), table("inet", "", accounting(n, n-1, "/24")))
	}
	add("nft, accounting of 40 hosts", table("ip", "", accounting(40, 0, "/32")))

	// Long lists that decide, met at several places.
	for _, n := range []int{20, 150, 600} {
		for _, at := range []int{0, n / 2, n - 1} {
			port := func(i int) int {
				if i == at {
					return 9
				}
				return 2000 + i
			}
			add(fmt.Sprintf("nft, port %d of %d", at+1, n), table("inet", "", lines(n, func(i int) string {
				return fmt.Sprintf("udp dport %d counter accept", port(i))
			})))
			add(fmt.Sprintf("iptables-legacy, port %d of %d", at+1, n),
				saved(ruleset.IPTablesLegacy, lines(n, func(i int) string {
					return fmt.Sprintf("-A OUTPUT -p udp -m udp --dport %d -j ACCEPT", port(i))
				})))
			add(fmt.Sprintf("iptables-nft, port %d of %d", at+1, n), saved(ruleset.IPTablesNFT, lines(n, func(i int) string {
				return fmt.Sprintf("-A OUTPUT -p udp -m udp --dport %d -j ACCEPT", port(i))
			})))
		}
	}
	for _, n := range []int{30, 250} {
		add(fmt.Sprintf("iptables-legacy, %d addresses and interfaces", n),
			saved(ruleset.IPTablesLegacy, lines(n, func(i int) string {
				return fmt.Sprintf("-A OUTPUT -s %s.7/32 -o eth%d -p udp -j ACCEPT", net3(i), i)
			})))
		add(fmt.Sprintf("iptables-nft, %d addresses and interfaces", n),
			saved(ruleset.IPTablesNFT, lines(n, func(i int) string {
				return fmt.Sprintf("-A OUTPUT -s %s.7/32 -o eth%d -p udp -j ACCEPT", net3(i), i)
			})))
		add(fmt.Sprintf("nft, %d interfaces first", n), table("inet", "", lines(n, func(i int) string {
			return fmt.Sprintf("oifname \"ppp%d\" ip saddr %s.0/24 counter accept", i, net3(i))
		})))
		add(fmt.Sprintf("nft, %d prefixes of all lengths", n), table("ip", "", lines(n, func(i int) string {
			return fmt.Sprintf("ip saddr %s.0/%d counter", net3(i*256), 9+i%24)
		})))
		add(fmt.Sprintf("nft, %d not equal", n), table("ip", "", lines(n, func(i int) string {
			return fmt.Sprintf("ip daddr != 127.1.0.0/16 ip saddr %s.1 counter", net3(i))
		})))
	}

	// Maps and sets.
	for _, n := range []int{10, 300} {
		chains := lines(n, func(i int) string { return fmt.Sprintf("chain c%d { counter; ip daddr 127.1.1.1 counter; }", i) })
		add(fmt.Sprintf("nft, a map of %d networks", n), table("ip", chains,
			"ip saddr & 255.255.255.0 vmap { 127.0.0.0 : jump c0, "+
				list(n-1, func(i int) string { return fmt.Sprintf("%s.0 : jump c%d", net3(i), i+1) })+" }"))
		add(fmt.Sprintf("nft, a map of %d intervals", n), table("ip", chains, "ip saddr vmap { 127.0.0.0/24 : jump c0, "+
			list(n-1, func(i int) string { return fmt.Sprintf("%s.0/24 : jump c%d", net3(2*i), i+1) })+" }"))
		add(fmt.Sprintf("nft, counting elements of %d", n), table("inet",
			"set s { type ipv4_addr; counter; elements = { 127.0.0.1, "+
				list(n, func(i int) string { return net3(i) + ".4" })+" } }",
			"ip saddr @s counter\nip daddr @s counter\nip saddr @s udp dport 9 counter"))
		add(fmt.Sprintf("nft, four sets of %d intervals", n), table("inet",
			set("s", "ipv4_addr", "flags interval;", n, func(i int) string { return net3(3*i) + ".0/25" })+
				set("d", "inet_service", "flags interval;", n,
					func(i int) string { return fmt.Sprintf("%d-%d", 3000+4*i, 3001+4*i) }),
			"ip saddr @s counter drop\nip daddr @s counter drop\nudp dport @d counter drop\nudp sport @d counter\ncounter"))
		add(fmt.Sprintf("nft, ports of %d in two maps", n), table("inet", "chain a { counter; }",
			"udp dport vmap { 9 : jump a, "+list(n, func(i int) string { return fmt.Sprintf("%d : accept", 3000+i) })+" }\n"+
				"udp sport vmap { "+list(n, func(i int) string { return fmt.Sprintf("%d : accept", 300+i) })+" }\ncounter"))
		add(fmt.Sprintf("nft, pairs of %d", n), table("ip",
			set("p", "ipv4_addr . inet_service", "", n, func(i int) string { return net3(i) + ".1 . 443" }),
			"ip daddr . udp dport @p counter accept\nip saddr . udp sport @p counter accept\ncounter"))
	}

	// Trees of chains.
	for _, depth := range []int{3, 10} {
		chains := lines(depth, func(i int) string {
			return fmt.Sprintf("chain c%d { ip saddr %s.1 counter; counter%s; ip daddr %s.1 counter; }", depth-1-i, net3(i),
				strings.Repeat(fmt.Sprintf(" jump c%d", depth-i), min(i, 1)), net3(i))
		})
		add(fmt.Sprintf("nft, jumps %d deep", depth), table("ip", chains, "counter jump c0"))
		legacy := lines(depth, func(i int) string { return fmt.Sprintf(":c%d - [0:0]", i) }) + "-A OUTPUT -j c0\n" +
			lines(depth, func(i int) string {
				return fmt.Sprintf("-A c%d -s %s.1/32\n-A c%d -o lo%s\n-A c%d -d %s.1/32", i, net3(i), i,
					strings.Repeat(fmt.Sprintf(" -j c%d", i+1), min(depth-1-i, 1)), i, net3(i))
			})
		add(fmt.Sprintf("iptables-legacy, jumps %d deep", depth), saved(ruleset.IPTablesLegacy, legacy))
		add(fmt.Sprintf("iptables-nft, jumps %d deep", depth), saved(ruleset.IPTablesNFT, legacy))
	}
	for _, n := range []int{8, 64} {
		add(fmt.Sprintf("nft, gotos past %d", n), table("inet", "chain end { counter; }",
			lines(n, func(i int) string { return fmt.Sprintf("ip daddr %s.0/16 counter goto end", net3(i*256)) })+
				"counter goto end"))
		add(fmt.Sprintf("iptables-legacy, accounting in chains of %d", n), saved(ruleset.IPTablesLegacy, ":net - [0:0]\n"+
			lines(n, func(i int) string { return fmt.Sprintf("-A OUTPUT -s %s.0/24 -j net", net3(i)) })+
			"-A OUTPUT -s 127.0.0.0/8 -j net\n"+
			lines(n, func(i int) string { return fmt.Sprintf("-A net -d 127.%d.0.0/16", i) })))
	}

	// Connections.
	for _, n := range []int{0, 100} {
		rest := lines(n, func(i int) string { return fmt.Sprintf("udp dport %d counter accept", 4000+i) })
		add(fmt.Sprintf("nft, states before %d ports", n), table("inet", "",
			"ct state vmap { established : accept, related : accept, invalid : drop }\n"+
				"counter\nct state new counter\n"+rest))
		add(fmt.Sprintf("nft, states behind %d ports", n), table("inet", "",
			rest+"ct state established counter accept\nct state invalid counter drop\ncounter"))
		xt := lines(n, func(i int) string { return fmt.Sprintf("-A OUTPUT -p udp -m udp --dport %d -j ACCEPT", 4000+i) })
		state := "-A OUTPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n" +
			"-A OUTPUT -m conntrack --ctstate INVALID -j DROP\n"
		add(fmt.Sprintf("iptables-legacy, states before %d ports", n), saved(ruleset.IPTablesLegacy, state+xt))
		add(fmt.Sprintf("iptables-nft, states before %d ports", n), saved(ruleset.IPTablesNFT, state+xt))
	}

	// Several tables, and rules by chance.
	add("nft, three tables", append(append(table("ip", "", accounting(5, 2, "/24")),
		strange("u", lines(20, func(i int) string {
			return fmt.Sprintf("ip saddr %s.1 counter", net3(i))
		}))...), strange("v", "counter accept")...))
	add("nft and iptables-legacy", append(table("ip", "", accounting(10, 5, "/16")), saved(ruleset.IPTablesLegacy,
		lines(40, func(i int) string { return fmt.Sprintf("-A OUTPUT -s %s.1/32", net3(i)) }))...))
	for seed := range 8 {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		add(fmt.Sprintf("nft, by chance %d", seed), table([]string{"ip", "inet"}[seed%2],
			"chain a { counter; ip saddr 127.0.0.1 counter; }",
			lines(20+20*seed, func(i int) string { return chance(r, i) })))
	}
	return all
}

// strange is a table of nftables of another name.
func strange(name, rules string) []Rules {
	one := table("inet", "", rules)
	one[0].Text = strings.Replace(one[0].Text, "table inet t", "table inet "+name, 1)
	return one
}

func list(n int, element func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = element(i)
	}
	return strings.Join(all, ", ")
}

// chance is one rule out of what administrators write.
func chance(r *rand.Rand, i int) string {
	conditions := []string{
		fmt.Sprintf("ip saddr %s.%d", net3(r.IntN(60_000)), r.IntN(250)),
		fmt.Sprintf("ip daddr %s.0/24", net3(r.IntN(60_000))),
		fmt.Sprintf("ip daddr 127.1.0.0/%d", 16+r.IntN(3)),
		fmt.Sprintf("udp dport %d", 1+r.IntN(20)),
		fmt.Sprintf("udp dport { %d, %d }", 30+r.IntN(20), 60+i),
		fmt.Sprintf("oifname %q", []string{"lo", "eth0", "br-lan"}[r.IntN(3)]),
		fmt.Sprintf("ip saddr %s.3-%[1]s.99", net3(r.IntN(60_000))),
		"meta l4proto udp",
	}
	a, b := r.IntN(len(conditions)), r.IntN(len(conditions))
	if a == b {
		return conditions[a] + " counter"
	}
	if r.IntN(6) == 0 {
		return conditions[a] + " " + conditions[b] + " counter jump a"
	}
	return conditions[a] + " " + conditions[b] + " counter"
}
