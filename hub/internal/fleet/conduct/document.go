package conduct

import (
	"math"
	"slices"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/rollout"
	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/report"
)

// Summaries returns the rollouts, the newest first.
func (c *Conductor) Summaries() []report.FleetRollout {
	all := []report.FleetRollout{}
	for _, id := range c.Names() {
		if r, err := c.find(id); err == nil {
			r.mu.Lock()
			all = append(all, r.summary())
			r.mu.Unlock()
		}
	}
	sorting.StableFunc(all, func(a, b report.FleetRollout) int { return b.Begun.Compare(a.Begun) })
	return all
}

// Each calls a function with each rollout, the newest first, and with the time of its start. The
// rollout rests meanwhile.
func (c *Conductor) Each(visit func(d *Draft, begun time.Time, m *rollout.Machine)) {
	var all []*running
	for _, id := range c.Names() {
		if r, err := c.find(id); err == nil {
			all = append(all, r)
		}
	}
	begun := func(r *running) time.Time {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.kept.Begun
	}
	sorting.StableFunc(all, func(a, b *running) int { return begun(b).Compare(begun(a)) })
	for _, r := range all {
		r.mu.Lock()
		visit(r.kept.Draft, r.kept.Begun, r.m)
		r.mu.Unlock()
	}
}

// Document returns where a rollout stands.
func (c *Conductor) Document(id string) (*report.FleetRolloutDocument, error) {
	r, err := c.find(id)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	doc := &report.FleetRolloutDocument{FleetRollout: r.summary(), Looks: []report.FleetLook{},
		Hosts: []report.FleetRolloutHost{}}
	for _, l := range r.m.Looks() {
		if math.IsInf(l.Boundary, 0) {
			l.Boundary = 0
		}
		doc.Looks = append(doc.Looks, report.FleetLook{Stage: l.Stage, Pairs: l.Hosts, Effect: l.Effect, T: l.T,
			Boundary: l.Boundary, P: l.P, Proven: l.Proven, Harm: l.Harm})
	}
	d := r.kept.Draft
	for i, h := range d.Plan.Hosts {
		one := report.FleetRolloutHost{FleetName: report.FleetName{ID: MemberOf(h.ID), Name: d.Hosts[i].Name},
			Stage: rollout.StageNames[d.Plan.Stage[i]], State: string(r.m.State(i))}
		if a, ok := r.answers[i]; ok {
			one.Answer, one.Text = string(a.Code), a.Text
		}
		if e, ok := r.results[i]; ok {
			one.Experiment = &report.FleetExperiment{Effect: e.Effect, Error: e.Error, Pairs: e.Pairs}
		}
		doc.Hosts = append(doc.Hosts, one)
	}
	return doc, nil
}

func (r *running) summary() report.FleetRollout {
	d := r.kept.Draft
	s := report.FleetRollout{ID: d.Plan.ID, Knob: string(d.Knob), To: string(d.To), Metric: string(d.Metric),
		By: r.kept.By, Reason: d.Reason, Phase: string(r.m.Phase()), Stage: rollout.StageNames[r.m.Stage()],
		Halted: r.m.Reason(), Proven: r.m.Proven(), Harm: r.m.Harm(), Resumable: r.m.CanResume(), Begun: r.kept.Begun,
		ValidUntil: time.Unix(d.NotAfter, 0).UTC(), States: make(map[string]int)}
	if r.failure != nil {
		s.Halted = r.failure.Error()
	}
	for state, n := range r.m.Counts() {
		s.States[string(state)] = n
	}
	return s
}

// Describe returns a draft as the document that a person reads before signing.
func (d *Draft) Describe() *report.FleetPlanDocument {
	t := d.Plan.Timing
	doc := &report.FleetPlanDocument{Kind: string(d.Kind), Rollout: d.Plan.ID, Knob: string(d.Knob), To: string(d.To),
		Metric: string(d.Metric), Window: d.Window.Seconds(), Pairs: d.Pairs, Deadline: t.Deadline.Seconds(),
		Settle: t.Settle.Seconds(), Soak: t.Soak.Seconds(), LongSoak: t.LongSoak.Seconds(),
		ValidUntil: time.Unix(d.NotAfter, 0).UTC(), UndoesOnHarm: d.Kind.Tries(),
		Stages: []report.FleetStage{},
		Hosts:  []report.FleetPlanHost{}}
	// An undo or a persist has no order for a host without the change.
	listed := func(host int) bool { return d.Kind.Tries() || len(d.Orders(host)) > 0 }
	for s, name := range rollout.StageNames {
		stage := report.FleetStage{Name: name}
		for i, h := range d.Plan.Hosts {
			if d.Plan.Stage[i] != s || !listed(i) {
				continue
			}
			stage.Hosts++
			if !slices.Contains(stage.Classes, h.Class) {
				stage.Classes = append(stage.Classes, h.Class)
			}
		}
		slices.Sort(stage.Classes)
		doc.Stages = append(doc.Stages, stage)
	}
	for i, h := range d.Plan.Hosts {
		if !listed(i) {
			continue
		}
		doc.Orders += len(d.Orders(i))
		one := report.FleetPlanHost{FleetName: report.FleetName{ID: MemberOf(h.ID), Name: d.Hosts[i].Name}, Class: h.Class,
			Rack: h.Rack, Site: h.Site, Stage: rollout.StageNames[d.Plan.Stage[i]], Expect: string(d.Hosts[i].Expect),
			Experiment: d.Hosts[i].Experiment}
		if j := d.Plan.Mate[i]; j >= 0 && j < len(d.Plan.Hosts) {
			one.Like = MemberOf(d.Plan.Hosts[j].ID)
		}
		doc.Hosts = append(doc.Hosts, one)
	}
	for _, m := range d.Missing {
		doc.Missing = append(doc.Missing, report.FleetMissing{FleetName: report.FleetName{ID: MemberOf(m.ID), Name: m.Name},
			Reason: m.Reason})
	}
	return doc
}
