package loop

import (
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/experiment/tune"
)

// Offered is a change that the caller has prepared, of a knob that no catalogue has: the rules of a
// table, rewritten.
type Offered struct {
	tune.Candidate
	Refused string // why it is not tried; empty: it is
}

// rules is what is known about the rules of a table. Both forms treat every packet alike, and one
// transaction exchanges them.
var rules = knob.Definition{
	Pattern: knob.KindFirewall + ":*", Form: knob.FormText, Disturbance: knob.DisturbsNothing,
	Risk: "Packets that are counted in the moment of the change are in a chain of their own until undo.",
}

// lookup returns the definition of a knob, of the catalogue or of the rules of a table.
func lookup(id knob.ID) (knob.Definition, bool) {
	if id.Kind() == knob.KindFirewall {
		d := rules
		d.Pattern = id
		return d, true
	}
	return knob.Catalogue().Lookup(id)
}

// withOffered adds what the caller offers for packets, after the candidates of the findings.
func withOffered(o TuneOptions, all []tune.Candidate, r *refusals) []tune.Candidate {
	if o.Objective.Goal != goal.Packets {
		return all
	}
	for _, c := range o.Offered {
		if o.Knobs != nil && !o.Knobs(c.Knob) {
			continue
		}
		all = append(all, c.Candidate)
		if c.Refused != "" {
			if r.asked == nil {
				r.asked = make(map[target]string)
			}
			r.asked[target{c.Side, c.Knob}] = c.Refused
		}
	}
	return all
}
