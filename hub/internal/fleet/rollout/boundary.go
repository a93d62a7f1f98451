package rollout

import "math"

// Bound is what a look after one stage must pass, as z.
type Bound struct {
	Stage   string   `json:"stage"`
	Benefit *float64 `json:"benefit_z,omitempty"` // above it the benefit is proven; absent: no look proves
	Harm    float64  `json:"harm_z"`              // below it the rollout halts
}

// Boundary returns the bounds of all stages, in order.
func Boundary() []Bound {
	// The z below which the lower tail of the normal distribution is the level of one look.
	harm := -math.Sqrt2 * math.Erfinv(1-2*fleetHarm*perLook)
	out := make([]Bound, stages)
	for i := range out {
		out[i] = Bound{Stage: StageNames[i], Harm: harm}
		if z := benefit[i]; !math.IsInf(z, 0) {
			out[i].Benefit = &z
		}
	}
	return out
}
