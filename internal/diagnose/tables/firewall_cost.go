package tables

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/firewall/cost"
	"github.com/linerate/linerate/internal/firewall/ruleset"
	"github.com/linerate/linerate/internal/host"
)

const (
	// stackNanoseconds is the rest of a packet's way from the NIC to its socket: measured with
	// Linux 6.18 on the machine of the prices of package cost. Both scale with the CPU, so their
	// ratio holds on other hosts.
	stackNanoseconds = 5000
	// fewRules take a tenth of the time that a packet costs: fewer are not worth a question. From
	// longChain on, where they take most of it, a chain is worth a notice without any cost.
	fewRules, longChain = 30, 500
	// fastestRule and slowestRule bound the time of one comparison in seconds: a few instructions
	// on the fastest CPU, and an emulated one. Packets that cost less skipped some of these rules
	// (an earlier rule accepted them), and those that cost more have another reason.
	fastestRule, slowestRule = 3e-9, 600e-9
	// rulesShare is the share of a CPU's time spent on comparisons from which on they may be the
	// limit. From feltShare on they are worth a notice: with 160 rules between two namespaces a
	// stream had 35.6 Gb/s instead of 44.5.
	rulesShare, feltShare = 0.25, 0.1
)

// firewallCost finds that comparing each packet with many rules, one after the other, is most of
// the packet's cost, and that the CPU is busy with it.
//
// A long chain alone is a notice: packets may leave it at an early rule, and few packets cost
// little however many rules there are. So the CPU time per packet must match that many comparisons,
// and enough of a CPU must go into it. Packets count after merging (GRO), as the chains see them.
//
// The rule cannot see whether an earlier rule accepts most packets: then fewer comparisons take the
// time, each of which seems faster than it is. The confidence allows for that.
func firewallCost(s *evidence.Span) *evidence.Finding {
	w := firewallWay(s)
	if x := w.judge(s, w.rules); x != nil && x.Severity == evidence.Warning || w.most <= w.rules {
		return x
	}
	// Conditional jumps: their chains count if only they explain what a packet costs.
	if x := w.judge(s, w.most); x != nil && x.Severity == evidence.Warning {
		x.Confidence *= 0.8
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not known: how many of these rules packets meet; %s at least, "+
			"and the others behind jumps with a condition.", evidence.Count(w.rules)))
		return x
	}
	return w.judge(s, w.rules)
}

// judge weighs what a number of rules costs; nil if that is not worth a word.
func (w way) judge(s *evidence.Span, rules float64) *evidence.Finding {
	if rules < fewRules {
		return nil
	}
	share := rules * w.price / (rules*w.price + stackNanoseconds)
	each := part(w.seconds, w.packets)
	perRule := each / rules
	busiest := s.BusiestBy(func(c evidence.ClassRatios) float64 { return c.SoftIRQ })
	if w.out {
		busiest = s.BusiestBy(func(c evidence.ClassRatios) float64 { return c.SoftIRQ + c.System })
	}
	used := busiest.SoftIRQ
	if w.out {
		used += busiest.System
	}
	fits := perRule >= fastestRule && perRule <= slowestRule
	felt := fits && share*used >= feltShare && !s.SinceBoot
	costs := felt && share*used >= rulesShare
	if !felt && rules < longChain {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.FirewallCost, Severity: evidence.Notice, Where: s.Side,
		Title: fmt.Sprintf("The firewall compares each packet with %s rules (%s).",
			evidence.Count(rules), w.chain),
		Evidence: []evidence.Evidence{
			{Name: "rules that a packet is compared with", Value: rules, Unit: "rules",
				Source: s.Source(w.source + ", chain " + w.chain)},
			{Name: "packets that went that way", Value: w.packets, Unit: "packets", Source: s.Source(w.counter)},
			{Name: "processor time for each", Value: each, Unit: "seconds", Source: s.Source("/proc/stat / packets")},
			{Name: "for each rule, if all of it went there", Value: perRule, Unit: "seconds", Source: "time / rules"},
			{Name: "share of a packet's cost that the rules take", Value: share, Unit: "ratio",
				Source: fmt.Sprintf("rules / (rules + %.0f)", stackNanoseconds/w.price)},
			{Name: fmt.Sprintf("share of CPU %d in the network stack", busiest.CPU), Value: used, Unit: "ratio",
				Source: s.Source("/proc/stat")},
		},
		Confidence: 0.4,
	}
	switch {
	case felt:
		if costs {
			x.Severity = evidence.Warning
		}
		x.Confidence = evidence.Combine(0.4, evidence.When(rules >= 1000, 0.2), evidence.When(rules >= 3000, 0.4),
			evidence.When(s.Loaded(), 0.3), evidence.When(used >= 0.5, 0.3))
		x.Title = fmt.Sprintf(
			"The firewall compares each packet with %s rules (%s); a packet costs %s of CPU time, "+
				"about %s of it for that.",
			evidence.Count(rules), w.chain, evidence.Seconds(each), evidence.Percent(share))
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not the network stack itself, which takes as long as about %.0f rules.",
				stackNanoseconds/w.price))
		if !costs {
			x.Rejected = append(x.Rejected, fmt.Sprintf("Not shown to be the limit: these rules take at most %s of the "+
				"busiest CPU.", evidence.Percent(share*used)))
		}
	case w.packets > 0 && !fits:
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not shown to cost anything: a packet took %s, which does not match %s comparisons.",
				evidence.Seconds(each),
				evidence.Count(rules)))
	default:
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not shown to cost anything: these rules take at most %s of the busiest CPU.",
				evidence.Percent(share*used)))
	}
	x.Rejected = append(x.Rejected,
		fmt.Sprintf("Not a full connection table: it dropped %s packets.",
			evidence.Count(s.Count("conntrack.drop"))))
	w.remedy(x)
	return x
}

// remedy proposes fewer comparisons. Rules that only count packets are accounting, which an early
// accept would end.
func (w way) remedy(x *evidence.Finding) {
	const byProgram = "On that host `linerate firewall cost` shows which rules cost most, and " +
		"`linerate firewall optimise` writes rules that do the same for fewer comparisons, with a proof. By hand: "
	x.Remedy.Text = byProgram + "accept packets of existing connections in the first rule (ct state established,related " +
		"accept), and put long lists of addresses or ports into one set (nft sets, ipset), " +
		"which costs one lookup whatever its size."
	x.Remedy.Proof = "Repeat the run with the list in a set: the rate rises, and CPU time per packet falls to " +
		"what the path takes without rules. Control: one rule more or less changes nothing."
	if w.counting == 0 {
		return
	}
	x.Evidence = append(x.Evidence, evidence.Evidence{Name: "rules that only count packets", Value: w.counting,
		Unit: "rules", Source: w.source})
	x.Remedy.Text = byProgram + fmt.Sprintf("%s of these rules only count packets (accounting), so do not accept packets "+
		"before them. Let a set count instead, in one lookup: nft `add set … { typeof ip saddr; counter; }` with "+
		"`update @set { ip saddr }`, or ipset with `counters` and one rule. Accept packets of existing connections "+
		"directly behind it. Counts per connection come from net.netfilter.nf_conntrack_acct=1 as well.",
		evidence.Count(w.counting))
	x.Remedy.Proof += " The sums of the new counters must equal those of the old ones."
}

// way is the direction in which a host spends more on rules.
type way struct {
	rules    float64 // compared with each packet
	most     float64 // the same with every conditional jump taken
	price    float64 // of one of these rules, in nanoseconds
	counting float64 // of them only count
	packets  float64
	seconds  float64 // of CPU time in the network stack, for packets of that direction and other work
	chain    string  // the longest one
	counter  string  // of the packets
	source   string  // nf_tables, or the older x_tables
	out      bool
}

// firewallWay compares incoming with outgoing packets by the number of comparisons they cost.
// Softirqs process incoming packets; outgoing ones mostly run in the program that sends them.
func firewallWay(s *evidence.Span) way {
	if s.Host == nil {
		return way{}
	}
	var in, out way
	into := []string{"ingress", "prerouting", "input"}
	if s.Count("Ip.ForwDatagrams")+s.Count("Ip6.OutForwDatagrams") > s.Count("Ip.InDelivers")+
		s.Count("Ip6.InDelivers") {
		into = []string{"ingress", "prerouting", "forward", "postrouting"} // a router
	}
	in.compare(s.Host.Firewall, into)
	in.packets, in.counter = s.Count("Ip.InReceives")+s.Count("Ip6.InReceives"), "Ip.InReceives + Ip6.InReceives"
	out.compare(s.Host.Firewall, []string{"output", "postrouting", "egress"})
	out.packets, out.counter, out.out = s.Count("Ip.OutRequests")+s.Count("Ip6.OutRequests"),
		"Ip.OutRequests + Ip6.OutRequests", true
	for _, t := range s.CPUs {
		if t.CPU >= 0 {
			in.seconds += t.SoftIRQ
			out.seconds += t.SoftIRQ + t.System
		}
	}
	if out.rules*max(out.packets, 1) > in.rules*max(in.packets, 1) {
		return out
	}
	return in
}

// compare adds up the chains at these hooks that every packet traverses. nat chains see only the
// first packet of a connection. A packet has one IP version, so of the chains for a single version
// the longer ones count.
func (w *way) compare(chains []host.FirewallChain, hooks []string) {
	var both, ip, ip6 struct{ rules, most, counting, older int }
	var longest int
	for _, c := range chains {
		if c.Type == "nat" || !slices.Contains(hooks, c.Hook) {
			continue
		}
		sum := &both
		switch c.Family {
		case "inet", "netdev":
		case "ip":
			sum = &ip
		case "ip6":
			sum = &ip6
		default:
			continue // packets to a socket do not pass bridge and arp
		}
		atMost := max(c.AtMost, c.Compared)
		sum.rules, sum.most, sum.counting = sum.rules+c.Compared, sum.most+atMost, sum.counting+c.Counting
		if c.Legacy {
			sum.older += atMost
		}
		if atMost > longest {
			longest, w.chain, w.source = atMost, fmt.Sprintf("%s %s %s", c.Family, c.Table, c.Name), "nf_tables"
			if c.Legacy {
				w.source = "x_tables (iptables-legacy)"
			}
		}
	}
	if ip6.most > ip.most {
		ip = ip6
	}
	w.rules, w.most = float64(both.rules+ip.rules), float64(both.most+ip.most)
	w.counting = float64(both.counting + ip.counting)
	prices := cost.Measured()
	w.price = prices.Typical(ruleset.NFT)
	if older := both.older + ip.older; older > 0 {
		w.price += (prices.Typical(ruleset.IPTablesLegacy) - w.price) * float64(older) / max(w.most, 1)
	}
}
