package tune

import (
	"math"
	"strconv"
)

// Design is what an experiment was decided by. It is stored with the outcome, so that the raw
// segments can be judged again by the same rules ([Reanalyse]) long after the defaults of the
// program have changed.
type Design struct {
	Confidence      float64                `json:"confidence_ratio"`        // of every interval, two-sided
	MinUsefulEffect float64                `json:"min_useful_effect_ratio"` // relative gain asked for; the noise floor of the pilot may raise it
	PilotPairs      int                    `json:"pilot_pairs"`
	Looks           []int                  `json:"looks_pairs"` // numbers of pairs at which a comparison could be decided
	Guards          map[string]DesignGuard `json:"guards,omitempty"`
	Seed            string                 `json:"seed"` // decimal; a string, because most readers of JSON lose the end of 64 bits
}

// DesignGuard is a [Guard] as a document can hold it.
type DesignGuard struct {
	Bound        *float64 `json:"bound_ratio,omitempty"` // relative worsening allowed; absent: any
	Floor        float64  `json:"floor,omitempty"`       // in the guard's own unit
	Limit        float64  `json:"limit,omitempty"`       // in the guard's own unit; 0: none
	LowerIsWorse bool     `json:"lower_is_worse,omitempty"`
}

// designOf describes a complete configuration.
func designOf(c Config) *Design {
	d := &Design{
		Confidence: c.Confidence, MinUsefulEffect: c.MinUsefulEffect, PilotPairs: c.PilotPairs, Looks: c.Looks,
		Guards: map[string]DesignGuard{}, Seed: strconv.FormatUint(c.Seed, 10),
	}
	for name, g := range c.Guards {
		stored := DesignGuard{Floor: g.Floor, Limit: g.Limit, LowerIsWorse: g.LowerIsWorse}
		if !math.IsInf(g.Bound, 1) {
			stored.Bound = &g.Bound
		}
		d.Guards[name] = stored
	}
	return d
}

// config turns a design back into what decides; everything that only plans a live run keeps its
// default.
func (d *Design) config() Config {
	c := Config{Confidence: d.Confidence, MinUsefulEffect: d.MinUsefulEffect, PilotPairs: d.PilotPairs, Looks: d.Looks,
		Guards: map[string]Guard{}}
	for name, g := range d.Guards {
		guard := Guard{Bound: math.Inf(1), Floor: g.Floor, Limit: g.Limit, LowerIsWorse: g.LowerIsWorse}
		if g.Bound != nil {
			guard.Bound = *g.Bound
		}
		c.Guards[name] = guard
	}
	return c
}
