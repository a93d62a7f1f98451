package tune

import (
	"math"
	"strconv"
)

// Design is the set of rules of an experiment. The outcome stores it, so that the same rules can
// judge the raw segments again ([Reanalyse]) long after the defaults of the program have changed.
type Design struct {
	Confidence      float64                `json:"confidence_ratio"`        // of every interval, two-sided
	MinUsefulEffect float64                `json:"min_useful_effect_ratio"` // the noise floor of the pilot may raise it
	PilotPairs      int                    `json:"pilot_pairs"`
	Looks           []int                  `json:"looks_pairs"` // numbers of pairs at which a comparison could decide
	Guards          map[string]DesignGuard `json:"guards,omitempty"`
	Seed            string                 `json:"seed"` // decimal: JSON readers lose digits of 64-bit numbers
}

// DesignGuard is a [Guard] in the form of a document.
type DesignGuard struct {
	Bound        *float64 `json:"bound_ratio,omitempty"` // relative worsening allowed; absent: any
	Floor        float64  `json:"floor,omitempty"`       // in the guard's own unit
	Limit        float64  `json:"limit,omitempty"`       // in the guard's own unit; 0: none
	LowerIsWorse bool     `json:"lower_is_worse,omitempty"`
}

// designOf returns the design of a complete configuration.
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

// config returns the configuration of a design; settings that only plan a live run keep their
// defaults.
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
