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
	case "LOG", "ULOG", "NFLOG", "TRACE", "AUDIT":
		p.add(ruleset.Opaque{Text: text, Effect: ruleset.EffectLog, Unprintable: true})
	case "MARK", "CONNMARK", "SECMARK", "CONNSECMARK", "DSCP", "TOS", "TTL", "HL", "CLASSIFY", "TCPMSS", "CHECKSUM",
		"ECN", "IDLETIMER":
		p.add(ruleset.Opaque{Text: text, Effect: ruleset.EffectMark, Unprintable: true})
	case "SNAT", "DNAT", "MASQUERADE", "REDIRECT", "NETMAP", "TPROXY":
		p.add(ruleset.Opaque{Text: text, Effect: ruleset.EffectNAT, Ends: true, Unprintable: true})
	case "NFQUEUE", "QUEUE":
		p.add(ruleset.Opaque{Text: text, Effect: ruleset.EffectQueue, Ends: true, Unprintable: true})
	case "NOTRACK", "CT", "FLOWOFFLOAD":
		p.add(ruleset.Opaque{Text: text, Effect: ruleset.EffectTrack, Unprintable: true})
	case "SET":
		p.add(ruleset.Opaque{Text: text, Effect: ruleset.EffectDynamic, Unprintable: true})
	default:
		if p.x.table.Chain(name) == nil {
			p.add(ruleset.Opaque{Text: text, Effect: ruleset.EffectOther, Unprintable: true})
			return
		}
		v := ruleset.Verdict{Kind: ruleset.Jump, Chain: name}
		if p.goes {
			v.Kind = ruleset.Goto
		}
		p.add(v)
	}
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
