package rollout

import (
	"maps"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/base/stats"
)

// Levels of the tests. All ways to halt without a cause together stay below 5 %.
const (
	// experimentLevel is shared by all experiments, one-sided.
	experimentLevel = 0.01
	experimentDF    = 19 // an experiment has 20 pairs of measurements
	// fleetHarm and classHarm are the levels over all looks, one-sided; classHarm is shared by the
	// classes. A look takes a quarter of it: Pocock's nominal level for five looks is 0.28 of a
	// total of 1 % and 0.32 of 5 %, so a quarter is on the safe side.
	fleetHarm = 0.01
	classHarm = 0.02
	perLook   = 0.25
	// aloneLevel is that of the proof by a host's own experiment, one-sided.
	aloneLevel = 0.05
	leastUnit  = 3 // values below which no look judges
	ownSpread  = 5 // values from which a class is judged by its own spread too
)

// benefit are the O'Brien–Fleming boundaries of the five looks (pairs and four waves), as z.
var benefit = [stages]float64{math.Inf(1), 4.56, 3.23, 2.63, 2.28, 2.04}

// unit is one value: the difference in differences of two hosts.
type unit struct {
	class int
	value float64
}

// Look is one look at the data of a rollout.
type Look struct {
	Stage    string  `json:"stage"`
	Hosts    int     `json:"hosts_total"` // pairs of a changed and a like host so far
	Effect   float64 `json:"effect_log_ratio"`
	T        float64 `json:"t"`
	Boundary float64 `json:"boundary_z"` // O'Brien–Fleming
	P        float64 `json:"p_ratio"`    // one-sided, for benefit
	Proven   bool    `json:"proven"`
	Harm     string  `json:"harm,omitempty"` // class, or fleet
}

// pair gives each host that this stage is to change a like one whose state does not change in these
// hours: not yet changed, or, in the last wave, changed long before. Each serves once. It is fixed
// before the first change, because both are measured then. A halt may have cost a pair its like
// host: one that is not changed yet gets another.
func (m *Machine) pair() {
	before := m.pairs
	m.pairs = make(map[int]int)
	if m.stage == Experiment {
		return
	}
	used := make(map[int]bool)
	for changed, like := range before {
		if m.plan.Stage[changed] == m.stage && m.toChange(changed) && m.unmoved(like) {
			m.pairs[changed], used[like] = like, true
		}
	}
	free := make(map[int][]int) // by class
	for i := range m.hosts {
		if m.unmoved(i) && !used[i] {
			free[m.plan.class[i]] = append(free[m.plan.class[i]], i)
		}
	}
	for i := range m.hosts {
		if _, have := m.pairs[i]; have || m.plan.Stage[i] != m.stage || m.hosts[i].state != Pending {
			continue
		}
		if mate := m.plan.Mate[i]; m.stage == Pairs && mate >= 0 {
			if k := slices.Index(free[m.plan.class[i]], mate); k >= 0 {
				m.pairs[i] = mate
				free[m.plan.class[i]] = slices.Delete(free[m.plan.class[i]], k, k+1)
			}
			continue
		}
		if rest := free[m.plan.class[i]]; len(rest) > 0 {
			// The order of the ids says nothing of the stage, which is random.
			m.pairs[i], free[m.plan.class[i]] = rest[0], rest[1:]
		}
	}
}

// toChange reports whether this stage has changed a host, or is still to do so.
func (m *Machine) toChange(host int) bool {
	s := m.hosts[host].state
	return s == Pending || s == Committed || s.inFlight()
}

// unmoved reports whether the state of a host does not change in this stage.
func (m *Machine) unmoved(host int) bool {
	return m.hosts[host].state == Pending && m.plan.Stage[host] > m.stage ||
		m.stage == WaveAll && m.hosts[host].state == Committed && m.plan.Stage[host] < m.stage
}

// matchControls returns the pairs that can be judged: the host has the change, and the like host is
// as it was.
func (m *Machine) matchControls() map[int]int {
	judged := make(map[int]int)
	for changed, like := range m.pairs {
		if m.hosts[changed].state == Committed && m.unmoved(like) {
			judged[changed] = like
		}
	}
	return judged
}

// Wanted returns the pairs of hosts whose figures this stage needs from before it: a host that it
// changes, and the like one that it will be compared with.
func (m *Machine) Wanted() map[int]int {
	wanted := make(map[int]int)
	for changed, like := range m.pairs {
		if m.toChange(changed) && m.unmoved(like) {
			wanted[changed] = like
		}
	}
	return wanted
}

// look judges all differences so far.
func (m *Machine) look() {
	for _, a := range slices.Sorted(maps.Keys(m.controls)) {
		m.units = append(m.units, unit{m.plan.class[a], m.collected[a] - m.collected[m.controls[a]]})
	}
	byClass := make(map[int][]float64)
	var all []float64
	for _, u := range m.units {
		all = append(all, u.value)
		byClass[u.class] = append(byClass[u.class], u.value)
	}
	look := Look{Stage: StageNames[m.stage], Hosts: len(all), Effect: stats.Mean(all), Boundary: benefit[m.stage], P: 1}
	if len(all) == 0 {
		look.Effect = 0
	}
	if t, df, ok := student(all); ok {
		look.T, look.P = t, lowerTail(-t, df)
		look.Proven = look.P < lowerTail(-benefit[m.stage], math.Inf(1))
		m.proven = m.proven || look.Proven
		if lowerTail(t, df) < fleetHarm*perLook {
			look.Harm = "fleet"
		}
	}
	for c, name := range m.plan.Names {
		if look.Harm == "" && harmOf(byClass, c) < classHarm*perLook/float64(len(m.plan.Names)) {
			look.Harm = name
		}
	}
	m.looks = append(m.looks, look)
	if look.Harm != "" {
		m.harmed("the measurements after %s show harm: %s", look.Stage, look.Harm)
	}
}

// harmOf is the one-sided probability of values this low in one class without harm. A class of few
// hosts has no spread of its own worth the name, so it is judged by that within all classes; a
// larger one must be conspicuous by its own spread too.
func harmOf(byClass map[int][]float64, class int) float64 {
	own := byClass[class]
	if len(own) < 2 {
		return 1
	}
	var squares, df float64
	for _, values := range byClass {
		sd := stats.StdDev(values)
		if len(values) > 1 {
			squares, df = squares+sd*sd*float64(len(values)-1), df+float64(len(values)-1)
		}
	}
	if df < leastUnit || squares == 0 {
		return 1
	}
	p := lowerTail(stats.Mean(own)/math.Sqrt(squares/df/float64(len(own))), df)
	if t, ownDF, ok := student(own); ok && len(own) >= ownSpread {
		p = max(p, lowerTail(t, ownDF))
	}
	return p
}

// student returns the t statistic of a sample against 0.
func student(x []float64) (t, df float64, ok bool) {
	if len(x) < leastUnit {
		return 0, 0, false
	}
	sd := stats.StdDev(x)
	if sd == 0 {
		return 0, 0, false
	}
	return stats.Mean(x) / (sd / math.Sqrt(float64(len(x)))), float64(len(x) - 1), true
}

// lowerTail is the probability that Student's t with df degrees of freedom is at most t; the normal
// distribution for an infinite df.
func lowerTail(t, df float64) float64 {
	if math.IsInf(t, 0) {
		if t < 0 {
			return 0
		}
		return 1
	}
	if math.IsInf(df, 1) {
		return math.Erfc(-t/math.Sqrt2) / 2
	}
	half := beta(df/(df+t*t), df/2, 0.5) / 2
	if t > 0 {
		return 1 - half
	}
	return half
}

// beta is the regularised incomplete beta function, by the continued fraction of DLMF 8.17.22.
func beta(x, a, b float64) float64 {
	if x <= 0 || x >= 1 {
		return min(max(x, 0), 1)
	}
	if x > (a+1)/(a+b+2) {
		return 1 - beta(1-x, b, a)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab-la-lb+a*math.Log(x)+b*math.Log1p(-x)) / a
	const tiny = 1e-300
	f, c, d := 1.0, 1.0, 0.0
	for i := range 400 {
		k := float64(i / 2)
		var n float64
		switch {
		case i == 0:
			n = 1
		case i%2 == 0:
			n = k * (b - k) * x / ((a + 2*k - 1) * (a + 2*k))
		default:
			n = -(a + k) * (a + b + k) * x / ((a + 2*k) * (a + 2*k + 1))
		}
		if d = 1 + n*d; math.Abs(d) < tiny {
			d = tiny
		}
		d = 1 / d
		if c = 1 + n/c; math.Abs(c) < tiny {
			c = tiny
		}
		f *= c * d
		if math.Abs(1-c*d) < 1e-14 {
			break
		}
	}
	return front * (f - 1)
}
