package overview

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/hub/internal/fleet/member"
	"github.com/linerate/linerate/hub/internal/fleet/selection"
	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/report"
)

// Bounds of an answer.
const (
	MostListed  = 200 // hosts on a page
	MostCounted = 20  // classes, findings, versions and sites by name; the worst hosts
	MostRacks   = 256 // racks on an axis
	MostHosts   = 64  // hosts on an axis
)

// Count is a number of hosts with a name: a class, a finding.
type Count struct {
	Name   string `json:"name"`
	Hosts  int    `json:"hosts"`
	Select string `json:"selection"` // chooses these hosts
}

// Counts are the hosts of a selection: linerate.hub.fleet/1.
type Counts struct {
	Selection string    `json:"selection"`
	Time      time.Time `json:"time"`
	All       int       `json:"all_hosts"` // of the fleet
	Hosts     int       `json:"hosts"`     // of the selection
	Members   int       `json:"member_hosts"`
	Silent    int       `json:"silent_hosts"`
	Drifted   int       `json:"drifted_hosts"`
	Differing int       `json:"differing_hosts"` // from their class
	Undecided int       `json:"undecided_hosts"` // a person has to decide
	Unread    int       `json:"unread_hosts"`    // whose facts are not here yet

	Classes  []inventory.Class `json:"classes"` // the largest first
	Findings []Count           `json:"findings"`
	Versions []Count           `json:"versions"`
	Sites    []Count           `json:"sites"`
	// More is how many classes, findings, versions and sites are not listed.
	More int `json:"more"`

	By     Measure      `json:"by"`
	Spread Distribution `json:"distribution"`
	Worst  []Worst      `json:"worst"`
}

// Measure is what hosts are compared by.
type Measure string

// The measures. Those of the mesh need a mesh.
const (
	Differs  Measure = "differs"  // settings that are not those of the class
	Drift    Measure = "drift"    // kept changes that are not in force
	Findings Measure = "findings" // number of findings
	Silence  Measure = "silence"  // seconds since the last sign of life
	RTT      Measure = "rtt"      // seconds, median over the tests of the host in the last mesh
	Loss     Measure = "loss"     // ratio, mean over them
	Rate     Measure = "rate"     // bits per second, median over them; low is bad
)

// Measures are all of them, as a page offers them.
var Measures = []Measure{Differs, Drift, Findings, Silence, RTT, Loss, Rate}

// Known reports whether there is such a measure.
func (m Measure) Known() bool { return slices.Contains(Measures, m) }

// Distribution is that of a measure over the hosts of a selection that have it.
type Distribution struct {
	Hosts int     `json:"hosts"`
	P50   float64 `json:"p50"` // in the unit of the measure
	P95   float64 `json:"p95"`
	Max   float64 `json:"max"`
}

// Worst is a host at the bad end of a measure.
type Worst struct {
	report.FleetName
	Class string  `json:"class"`
	Value float64 `json:"value"` // in the unit of the measure
	// Usual is the median of its class. Distance is how far the host is from it on the bad side, in
	// standard deviations of the class; absent: the class has no spread.
	Usual    float64  `json:"class_p50"`
	Distance *float64 `json:"distance,omitempty"`
}

// Values are what a mesh has measured of each host, by id.
type Values map[string]struct{ RTT, Loss, Rate *float64 }

// Source is what a fleet is counted from.
type Source struct {
	Hosts  []inventory.Host // sorted by name
	Mesh   Values
	Now    time.Time
	Silent time.Duration // after which a host counts as silent
}

func (s *Source) silent(h *inventory.Host) bool {
	return h.State == string(member.Joined) && s.Now.Sub(h.Last) > s.Silent
}

// value returns a measure of a host, if it is known.
func (s *Source) value(h *inventory.Host, by Measure) (float64, bool) {
	optional := func(p *float64) (float64, bool) {
		if p == nil {
			return 0, false
		}
		return *p, true
	}
	switch by {
	case Silence:
		return s.Now.Sub(h.Last).Seconds(), !h.Last.IsZero()
	case RTT:
		return optional(s.Mesh[h.ID].RTT)
	case Loss:
		return optional(s.Mesh[h.ID].Loss)
	case Rate:
		return optional(s.Mesh[h.ID].Rate)
	}
	if h.Facts == nil {
		return 0, false
	}
	switch by {
	case Drift:
		return float64(h.Facts.Drift()), h.Facts.JournalNotRead == ""
	case Findings:
		return float64(len(h.Facts.Findings)), true
	}
	return float64(h.Differs), true
}

// choose returns the hosts that a text chooses.
func (s *Source) choose(text string) ([]inventory.Host, error) {
	sel, err := selection.Parse(text)
	if err != nil {
		return nil, err
	}
	if sel.Everything() {
		return s.Hosts, nil
	}
	var out []inventory.Host
	for i := range s.Hosts {
		if sel.Match(&s.Hosts[i], s.Now) {
			out = append(out, s.Hosts[i])
		}
	}
	return out, nil
}

// Count counts the hosts of a selection. An error is one of the selection.
func (s *Source) Count(text string, by Measure) (*Counts, error) {
	chosen, err := s.choose(text)
	if err != nil {
		return nil, err
	}
	c := &Counts{Selection: text, Time: s.Now.UTC(), All: len(s.Hosts), Hosts: len(chosen), By: by}
	var members []inventory.Host
	findings, versions, sites := make(map[string]int), make(map[string]int), make(map[string]int)
	for i := range chosen {
		h := &chosen[i]
		switch member.State(h.State) {
		case member.Joined:
			c.Members++
			members = append(members, *h)
		case member.Waiting, member.Quarantined:
			c.Undecided++
		}
		if s.silent(h) {
			c.Silent++
		}
		if h.Facts == nil {
			c.Unread++
		} else {
			if h.Facts.Drift() > 0 {
				c.Drifted++
			}
			for _, code := range h.Facts.Findings {
				findings[code]++
			}
		}
		if h.Differs > 0 {
			c.Differing++
		}
		if h.Version != "" {
			versions[h.Version]++
		}
		if site := h.Labels["site"]; site != "" {
			sites[site]++
		}
	}
	c.Classes = inventory.Summarize(members, s.Now.Add(-s.Silent))
	for i := range c.Classes {
		c.Classes[i].Findings = nil // the list of findings has them
	}
	c.More += max(0, len(c.Classes)-MostCounted)
	c.Classes = append([]inventory.Class{}, c.Classes[:min(len(c.Classes), MostCounted)]...)
	c.Findings = c.named("finding", findings)
	c.Versions = c.named("version", versions)
	c.Sites = c.named("site", sites)
	s.worst(c, members)
	return c, nil
}

// named returns counts, the largest first.
func (c *Counts) named(key string, of map[string]int) []Count {
	all := []Count{}
	for name, n := range of {
		all = append(all, Count{name, n, key + ":" + Quote(name)})
	}
	sorting.Func(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Hosts, a.Hosts), strings.Compare(a.Name, b.Name))
	})
	c.More += max(0, len(all)-MostCounted)
	return all[:min(len(all), MostCounted)]
}

// Quote returns a value as a selection has it.
func Quote(v string) string {
	if strings.ContainsAny(v, " \t\n,\"\\*?") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
	}
	return v
}

// Factors of a distance.
const (
	normal     = 1.4826 // standard deviations in a median absolute deviation of normal values
	leastHosts = 5      // of a class with distances
)

// worst fills in the distribution of the measure, and the hosts that are farthest from their class.
func (s *Source) worst(c *Counts, members []inventory.Host) {
	sign := 1.0
	if c.By == Rate {
		sign = -1
	}
	c.Worst = []Worst{}
	var values []float64
	byClass := make(map[string][]float64)
	for i := range members {
		if v, ok := s.value(&members[i], c.By); ok {
			values = append(values, v)
			byClass[members[i].Class] = append(byClass[members[i].Class], v)
		}
	}
	if len(values) == 0 {
		return
	}
	slices.Sort(values)
	at := func(sorted []float64, p float64) float64 { return stats.Quantile(sorted, p) }
	c.Spread = Distribution{Hosts: len(values), P50: at(values, 0.5), P95: at(values, 0.95), Max: values[len(values)-1]}
	type centre struct{ median, deviation float64 }
	centres := make(map[string]centre)
	for class, of := range byClass {
		slices.Sort(of)
		m := at(of, 0.5)
		away := make([]float64, len(of))
		for i, v := range of {
			away[i] = math.Abs(v - m)
		}
		slices.Sort(away)
		d := at(away, 0.5) * normal
		if len(of) < leastHosts {
			d = 0
		}
		centres[class] = centre{m, d}
	}
	for i := range members {
		h := &members[i]
		v, ok := s.value(h, c.By)
		of := centres[h.Class]
		// A host that is as its class is not the worst of anything.
		if !ok || sign*(v-of.median) <= 0 && (c.By != Differs || v == 0) {
			continue
		}
		w := Worst{FleetName: report.FleetName{ID: h.ID, Name: h.Name}, Class: h.Class, Value: v, Usual: of.median}
		if of.deviation > 0 {
			z := sign * (v - of.median) / of.deviation
			w.Distance = &z
		}
		c.Worst = append(c.Worst, w)
	}
	far := func(w Worst) float64 {
		if w.Distance == nil {
			return 0
		}
		return *w.Distance
	}
	sorting.StableFunc(c.Worst, func(a, b Worst) int {
		return cmp.Or(cmp.Compare(far(b), far(a)), cmp.Compare(sign*b.Value, sign*a.Value), strings.Compare(a.Name, b.Name))
	})
	c.Worst = c.Worst[:min(len(c.Worst), MostCounted)]
}
