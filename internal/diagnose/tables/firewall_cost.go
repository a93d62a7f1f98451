package tables

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
)

const (
	// stackInRules is how many comparisons take as long as all the rest of a packet's way from the
	// card to its socket: measured with Linux 6.18 on an AMD EPYC, 17 ns for a rule that compares
	// an address and 5 µs for the way. Both scale with the processor, so that the ratio holds where
	// the figures do not.
	stackInRules = 300
	// manyRules take three quarters of the time that a packet costs.
	manyRules = 1000
	// fastestRule and slowestRule bound what one comparison can take, seconds: a few instructions
	// on the fastest processor, and an emulated one. Packets that cost less were not compared with
	// all these rules (another rule let them through before), and those that cost more have another
	// reason.
	fastestRule, slowestRule = 3e-9, 600e-9
	// rulesShare of a processor's time spent on comparing is a cost: what it does not have for
	// packets.
	rulesShare = 0.25
)

// firewallCost: each packet is compared with so many rules, one after the other, that this is most
// of what it costs, and the processor that does it is busy with it.
//
// A long chain by itself is a notice: packets may leave it at an earlier rule, and few packets cost
// little however many rules there are. So the time that the host spent for each packet must be what
// that many comparisons take, and enough of a processor must go into it. The number of packets is
// that after merging (GRO), as the chains see them.
//
// What cannot be told is whether most packets fit a rule that accepts them on the way: then fewer
// comparisons take the time, each of which seems quicker than it is. The confidence has room for
// that.
func firewallCost(s *evidence.Span) *evidence.Finding {
	w := firewallWay(s)
	if w.rules < manyRules/2 {
		return nil
	}
	share := w.rules / (w.rules + stackInRules)
	each := part(w.seconds, w.packets)
	perRule := each / w.rules
	busiest := s.BusiestBy(func(c evidence.ClassRatios) float64 { return c.SoftIRQ })
	if w.out {
		busiest = s.BusiestBy(func(c evidence.ClassRatios) float64 { return c.SoftIRQ + c.System })
	}
	used := busiest.SoftIRQ
	if w.out {
		used += busiest.System
	}
	fits := perRule >= fastestRule && perRule <= slowestRule
	x := &evidence.Finding{
		Code: evidence.FirewallCost, Severity: evidence.Notice, Where: s.Side,
		Title: fmt.Sprintf("The firewall has %s rules for each packet to be compared with (%s).",
			evidence.Count(w.rules), w.chain),
		Evidence: []evidence.Evidence{
			{Name: "rules that a packet is compared with", Value: w.rules, Unit: "rules",
				Source: s.Source("nf_tables, chain " + w.chain)},
			{Name: "packets that went that way", Value: w.packets, Unit: "packets", Source: s.Source(w.counter)},
			{Name: "processor time for each", Value: each, Unit: "seconds", Source: s.Source("/proc/stat / packets")},
			{Name: "for each rule, if all of it went there", Value: perRule, Unit: "seconds", Source: "time / rules"},
			{Name: "share of a packet's cost that so many rules take", Value: share, Unit: "ratio",
				Source: fmt.Sprintf("rules / (rules + %d)", stackInRules)},
			{Name: fmt.Sprintf("share of CPU %d in the network stack", busiest.CPU), Value: used, Unit: "ratio",
				Source: s.Source("/proc/stat")},
		},
		Confidence: 0.4,
	}
	switch {
	case fits && w.rules >= manyRules && share*used >= rulesShare && !s.SinceBoot:
		x.Severity = evidence.Warning
		x.Confidence = evidence.Combine(0.5, evidence.When(w.rules >= 3000, 0.4), evidence.When(s.Loaded(), 0.3),
			evidence.When(used >= 0.5, 0.3))
		x.Title = fmt.Sprintf(
			"Each packet is compared with %s firewall rules (%s) and costs %s of processor time, about %s of it for that.",
			evidence.Count(w.rules), w.chain, evidence.Seconds(each), evidence.Percent(share))
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not the network stack itself, which takes as long as some %d rules.", stackInRules))
	case w.packets > 0 && !fits:
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not shown to cost anything: a packet took %s, which is not what %s comparisons take.",
				evidence.Seconds(each),
				evidence.Count(w.rules)))
	default:
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not shown to cost anything: the busiest processor spent %s of its time in the network stack.",
				evidence.Percent(used)))
	}
	x.Rejected = append(x.Rejected,
		fmt.Sprintf("Not a full table of connections: %s packets were dropped by it.",
			evidence.Count(s.Count("conntrack.drop"))))
	x.Remedy.Text = "Let connections that exist pass in the first rule (ct state established,related accept), and put long lists of addresses or ports into one set " +
		"(nft sets, ipset), which is asked once whatever its size."
	x.Remedy.Proof = "The same run with the list in a set: the rate rises, and processor time for each packet falls to what the path takes without rules. Control: one " +
		"rule more or less changes nothing."
	return x
}

// way is the direction in which a host spends most on rules.
type way struct {
	rules   float64 // compared with each packet
	packets float64
	seconds float64 // of processor time in the stack, for packets of that direction and whatever else there was
	chain   string  // the longest one
	counter string  // of the packets
	out     bool
}

// firewallWay weighs packets that come in against those that go out, by how many comparisons they
// cost. What comes in is looked at by softirq; what goes out mostly by the program that sends it.
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
	in.rules, in.chain = compared(s.Host.Firewall, into)
	in.packets, in.counter = s.Count("Ip.InReceives")+s.Count("Ip6.InReceives"), "Ip.InReceives + Ip6.InReceives"
	out.rules, out.chain = compared(s.Host.Firewall, []string{"output", "postrouting", "egress"})
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

// compared adds up the chains at these hooks that every packet goes through. Chains of nat see the
// first packet of a connection alone. A packet is of one version of IP, so that of the chains for
// one of them the longer count.
func compared(chains []host.FirewallChain, hooks []string) (rules float64, longest string) {
	var both, ip, ip6, most int
	for _, c := range chains {
		if c.Type == "nat" || !slices.Contains(hooks, c.Hook) {
			continue
		}
		switch c.Family {
		case "inet", "netdev":
			both += c.Compared
		case "ip":
			ip += c.Compared
		case "ip6":
			ip6 += c.Compared
		default:
			continue // bridge and arp are not on the way of a packet to a socket
		}
		if c.Compared > most {
			most, longest = c.Compared, fmt.Sprintf("%s %s %s", c.Family, c.Table, c.Name)
		}
	}
	return float64(both + max(ip, ip6)), longest
}
