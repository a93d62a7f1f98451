package read

import (
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// finish adds what the target does.
func (p *xtRule) finish() {
	name, rest := p.target, strings.Join(p.options, " ")
	text := strings.TrimSpace("-j " + name + " " + rest)
	switch name {
	case "ACCEPT":
		p.add(ruleset.Verdict{Kind: ruleset.Accept})
	case "DROP":
		p.add(ruleset.Verdict{Kind: ruleset.Drop})
	case "REJECT":
		p.add(ruleset.Verdict{Kind: ruleset.Reject, Detail: rejection(rest)})
	case "RETURN":
		p.add(ruleset.Verdict{Kind: ruleset.Return})
	default:
		effect, ends := targetOf(name)
		if effect != ruleset.EffectOther || p.x.table.Chain(name) == nil {
			p.add(ruleset.Opaque{Text: text, Effect: effect, Ends: ends, Unprintable: true})
			return
		}
		v := ruleset.Verdict{Kind: ruleset.Jump, Chain: name}
		if p.goes {
			v.Kind = ruleset.Goto
		}
		p.add(v)
	}
}

// targetOf returns what an extension of iptables does to a packet, and whether it ends the chain
// (iptables-extensions(8)).
func targetOf(name string) (effect ruleset.Effect, ends bool) {
	switch name {
	case "LOG", "ULOG", "NFLOG", "TRACE", "AUDIT":
		return ruleset.EffectLog, false
	case "MARK", "CONNMARK", "SECMARK", "CONNSECMARK", "DSCP", "TOS", "TTL", "HL", "CLASSIFY", "TCPMSS", "CHECKSUM",
		"ECN", "IDLETIMER":
		return ruleset.EffectMark, false
	case "SNAT", "DNAT", "MASQUERADE", "REDIRECT", "NETMAP", "TPROXY":
		return ruleset.EffectNAT, true
	case "NFQUEUE", "QUEUE":
		return ruleset.EffectQueue, true
	case "NOTRACK", "CT", "FLOWOFFLOAD":
		return ruleset.EffectTrack, false
	case "SET":
		return ruleset.EffectDynamic, false
	}
	return ruleset.EffectOther, false
}

// rejection returns iptables' way to reject as nft writes it.
func rejection(options string) string {
	_, how, _ := strings.Cut(options, "--reject-with ")
	switch {
	case how == "tcp-reset":
		return "with tcp reset"
	case strings.HasPrefix(how, "icmp6-"):
		return "with icmpv6 type " + strings.TrimPrefix(how, "icmp6-")
	case strings.HasPrefix(how, "icmp-"):
		return "with icmp type " + strings.TrimPrefix(how, "icmp-")
	}
	return ""
}
