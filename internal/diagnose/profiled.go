package diagnose

import (
	"fmt"
	"maps"
	"slices"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/diagnose/processors"
)

// ofProcessors are findings that a profile explains: a CPU is the limit, or loses packets.
var ofProcessors = []evidence.Code{evidence.SoftirqCPUSaturated, evidence.CPUSaturated, evidence.NAPIBudgetExhausted,
	evidence.SoftnetBacklogDrops, evidence.FirewallCost, evidence.RSSImbalance}

// stagesShown is how many stages a finding names.
const stagesShown = 3

// WantsProfile reports whether a processor of one side (near, far) is the limit, so that a short
// profile shows what it does.
func WantsProfile(c *evidence.Case, found []evidence.Finding, side string) bool {
	return slices.ContainsFunc(found, func(x evidence.Finding) bool {
		return x.Where == side && slices.Contains(ofProcessors, x.Code)
	}) || slices.ContainsFunc(evidence.SpansOf(c), func(s *evidence.Span) bool {
		return s.Side == side && (s.Loaded() || s.Run == nil) && processors.Saturated(s)
	})
}

// measuredShare is the share of the firewall from which on the profile itself is evidence for it,
// and noShare the one below which it is evidence against.
const measuredShare, noShare = 0.25, 0.05

// profiled adds the measured shares of a profile to the findings about processors of its host.
func profiled(c *evidence.Case, found []evidence.Finding) {
	sides := maps.Clone(c.Profiles)
	for _, s := range c.Watched {
		if s.Profile != nil {
			if sides == nil {
				sides = make(map[string]*evidence.Profile)
			}
			sides[s.Side] = s.Profile
		}
	}
	for i := range found {
		x := &found[i]
		p := sides[x.Where]
		if p == nil || !slices.Contains(ofProcessors, x.Code) {
			continue
		}
		if x.Code != evidence.FirewallCost {
			for _, stage := range p.Stages[:min(stagesShown, len(p.Stages))] {
				x.Evidence = append(x.Evidence, sampled(p, stage))
			}
			continue
		}
		for _, stage := range p.Stages {
			if stage.Name == "netfilter" || stage.Name == "conntrack/NAT" {
				x.Evidence = append(x.Evidence, sampled(p, stage))
			}
		}
		switch all := p.Share("netfilter", "conntrack/NAT"); {
		case all.Low >= measuredShare:
			x.Confidence = evidence.Combine(x.Confidence, 0.6)
		case all.High < noShare:
			x.Confidence *= 0.4
			x.Rejected = append(x.Rejected, fmt.Sprintf("A profile contradicts: it found at most %s of the busy time there.",
				evidence.Percent(all.High)))
		}
	}
}

// sampled is the share of one stage as evidence.
func sampled(p *evidence.Profile, s evidence.StageShare) evidence.Evidence {
	return evidence.Evidence{
		Name: fmt.Sprintf("share of the busy CPU time in %s (%s to %s)", s.Name, evidence.Percent(s.Low),
			evidence.Percent(s.High)),
		Value: s.Share, Unit: "ratio", Source: fmt.Sprintf("%d samples of %s", p.Samples, p.Event),
	}
}
