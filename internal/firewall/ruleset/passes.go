package ruleset

import (
	"iter"
	"slices"
	"strings"
)

// Passes yields how often a packet meets the rules of a hook, each time with a name: ipfw and pf
// see a forwarded one when it comes in, and again when it goes out.
func (r *Ruleset) Passes(hook string, p Packet) iter.Seq2[string, Packet] {
	return func(yield func(name string, p Packet) bool) {
		if r.Program != IPFW && r.Program != PF {
			yield(hook, p)
			return
		}
		in := p
		in.Out = ""
		if (p.In == "" && p.Out != "" || yield("in", in)) && p.Out != "" {
			yield("out", p)
		}
	}
}

// PassesByState reports whether pf lets a packet pass because it knows the connection, so that the
// packet meets no rule. pf keeps state unless a rule says "no state" (pf.conf(5)).
func (r *Ruleset) PassesByState(p Packet) bool {
	return r.Program == PF && p.State&(StateEstablished|StateRelated) != 0 &&
		slices.ContainsFunc(r.Tables[0].Chains[0].Rules, func(rule *Rule) bool {
			return strings.Contains(rule.Text, " pass ") && !strings.Contains(rule.Text, " no state")
		})
}
