package diagnose

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// ofProcessors are findings that a profile explains: a CPU is the limit, or loses packets.
var ofProcessors = []evidence.Code{evidence.SoftirqCPUSaturated, evidence.CPUSaturated, evidence.NAPIBudgetExhausted,
	evidence.SoftnetBacklogDrops, evidence.FirewallCost, evidence.RSSImbalance}

// stagesShown is how many stages a finding names.
const stagesShown = 3

// WantsProfile reports whether a processor is the limit, so that a short profile shows what it
// does.
func WantsProfile(found []evidence.Finding) bool {
	return slices.ContainsFunc(found, func(x evidence.Finding) bool { return slices.Contains(ofProcessors, x.Code) })
}

// profiled adds the measured shares of a profile to the findings about processors of the watched
// host.
func profiled(c *evidence.Case, found []evidence.Finding) {
	for _, s := range c.Watched {
		if s.Profile == nil {
			continue
		}
		for i := range found {
			x := &found[i]
			if x.Where != s.Side || !slices.Contains(ofProcessors, x.Code) {
				continue
			}
			if x.Code == evidence.FirewallCost {
				for _, stage := range s.Profile.Stages {
					if stage.Name == "netfilter" || stage.Name == "conntrack/NAT" {
						x.Evidence = append(x.Evidence, sampled(s.Profile, stage))
					}
				}
				continue
			}
			for _, stage := range s.Profile.Stages[:min(stagesShown, len(s.Profile.Stages))] {
				x.Evidence = append(x.Evidence, sampled(s.Profile, stage))
			}
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
