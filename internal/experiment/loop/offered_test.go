package loop

import (
	"testing"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/experiment/tune"
)

// TestOffered: what the caller offers is tried for packets only, after the findings' candidates,
// and unless there is a reason against it.
func TestOffered(t *testing.T) {
	offer := func(table string, refused string) Offered {
		return Offered{Refused: refused, Candidate: tune.Candidate{Side: tune.Near, Levels: []knob.Value{"new"},
			Knob: knob.ID(knob.KindFirewall + ":nft/inet/" + table)}}
	}
	found := []tune.Candidate{{Side: tune.Far, Knob: "sysctl:net.core.netdev_budget", Levels: []knob.Value{"600"}}}
	for _, c := range []struct {
		goal  goal.Goal
		knobs func(knob.ID) bool
		want  int
	}{
		{goal.Packets, nil, 3}, {goal.Throughput, nil, 1}, {goal.Latency, nil, 1},
		{goal.Packets, func(id knob.ID) bool { return id.Kind() != knob.KindFirewall }, 1},
	} {
		o := TuneOptions{Objective: goal.Objective{Goal: c.goal}, Knobs: c.knobs, Offered: []Offered{offer("mine", ""),
			offer("docker", "docker writes rules there")}}
		r := refusals{allow: knob.DisturbsNothing}
		all := withOffered(o, found, &r)
		if len(all) != c.want || all[0].Knob != found[0].Knob {
			t.Errorf("goal %s: candidates %v", c.goal, all)
			continue
		}
		if c.want < 3 {
			continue
		}
		if mine, docker := r.of(t.Context(), all[1]), r.of(t.Context(), all[2]); mine != "" ||
			docker != "docker writes rules there" {
			t.Errorf("refused: %q and %q", mine, docker)
		}
	}
}
