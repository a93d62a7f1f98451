package cost

import "github.com/linerate/linerate/internal/firewall/ruleset"

// Prices are CPU times in nanoseconds.
type Prices struct {
	Rule      float64 // a rule of nftables with one comparison that fails
	Statement float64 // each further comparison or counter of a rule that matches
	Hash      float64 // a lookup in a set or map of single values, whatever its size
	Interval  float64 // a lookup in a set or map of intervals
	Jump      float64 // to another chain and back
	Limit     float64 // limit, quota, connlimit
	Log       float64 // a line in the kernel's log
	Legacy    float64 // a rule of x_tables, of ipfw or of pf
	Foreign   float64 // a rule of iptables-nft
}

// Measured are the prices of Linux 6.18 on a virtual machine with two CPUs. Rules, hashes and intervals
// are derived from forwarding between network namespaces with 4 to 640 rules, the shortest of five
// interleaved runs. Statement, Jump, Limit and Log are estimates; so is Legacy for ipfw and pf, which
// were not measured. They are not calibrated on the host that uses them.
func Measured() Prices {
	return Prices{Rule: 29, Statement: 5, Hash: 40, Interval: 180, Jump: 10, Limit: 50, Log: 2000, Legacy: 3, Foreign: 20}
}

// rule returns the price of one look at a rule, without a match and with one.
func (p Prices) rule(program ruleset.Program, r *ruleset.Rule) (missed, matched float64) {
	base := p.Rule
	switch program {
	case ruleset.IPTablesLegacy, ruleset.IPFW, ruleset.PF:
		base = p.Legacy
	case ruleset.IPTablesNFT:
		base = p.Foreign
	}
	first := true
	missed, matched = base, base
	for _, s := range r.Statements {
		extra := p.Statement
		ends := false
		switch s := s.(type) {
		case ruleset.Match:
			ends = true
			if s.Set != nil {
				extra = p.lookup(s.Set)
			} else if first {
				extra = 0 // a rule's price has one comparison
			}
		case ruleset.VerdictMap:
			extra, ends = p.lookup(s.Set), true
		case ruleset.Verdict:
			if extra = 0; s.Kind == ruleset.Jump || s.Kind == ruleset.Goto {
				extra = p.Jump
			}
		case ruleset.Opaque:
			ends = s.Conditional
			switch s.Effect {
			case ruleset.EffectLimit:
				extra = p.Limit
			case ruleset.EffectLog:
				extra = p.Log
			}
		}
		matched += extra
		if first && ends {
			missed += extra
			first = false
		}
	}
	return missed, matched
}

func (p Prices) lookup(s *ruleset.Set) float64 {
	if s.Interval() {
		return p.Interval
	}
	return p.Hash
}
