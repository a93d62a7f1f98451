package mesh

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/base/sorting"
)

// Kind is what an element of a path is.
type Kind string

// The kinds, from the smallest to the largest.
const (
	HostElement Kind = "host" // with its own link to the rack
	Link        Kind = "link" // of a rack to a spine
	RackPair    Kind = "rack-pair"
	Rack        Kind = "rack"
	Spine       Kind = "spine"
)

var size = map[Kind]int{HostElement: 0, Link: 1, RackPair: 2, Rack: 3, Spine: 4}

// Element is a thing that a test crosses.
type Element struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"` // id, rack, spine, or two of them: pair
}

// Result is one test and its verdict.
type Result struct {
	Test
	Spine string // that the test has crossed, from its ports and the fabric's hash; empty: not known
	Bad   bool
}

// Suspect is an element with its evidence.
type Suspect struct {
	Element
	// Score is the logarithm of how much more likely the results are if this element alone is bad
	// than if none is.
	Score float64 `json:"score_log_ratio"`
	Tests int     `json:"tests_total"`
	Bad   int     `json:"bad_tests_total"`
}

const (
	// falseAlarm is the least probability that a test of a good path is bad; see Culprits.
	falseAlarm = 0.02
	// wary is what is added to enough where something disturbs all paths.
	wary = 1.5
	// surprise is by how many standard deviations more bad tests show that it is higher.
	surprise = 3
	// enough is the score above which an element is named, beyond the logarithm of the number of
	// elements that could have got it by chance.
	enough = 3
)

// severities are the probabilities that a test across a bad element is bad; the likeliest counts.
var severities = [...]float64{0.3, 0.5, 0.7, 0.9, 0.98}

// elements are what a test crosses.
func elements(hosts []Host, r Result) []Element {
	a, b := hosts[r.A], hosts[r.B]
	out := append(make([]Element, 0, 7), // the most that a test crosses
		Element{HostElement, a.ID}, Element{HostElement, b.ID}, Element{Rack, a.Rack})
	if a.Rack == b.Rack {
		return out
	}
	out = append(out, Element{Rack, b.Rack})
	if r.Spine == "" {
		return append(out, Element{RackPair, pair(min(a.Rack, b.Rack), max(a.Rack, b.Rack))})
	}
	return append(out, Element{Spine, r.Spine}, Element{Link, pair(a.Rack, r.Spine)},
		Element{Link, pair(b.Rack, r.Spine)})
}

// Vote returns all elements that tests have crossed, the likeliest culprit first.
func Vote(hosts []Host, results []Result) []Suspect {
	all := vote(crossings(hosts, results), falseAlarm)
	sorting.Func(all, likelier)
	return all
}

// likelier compares two elements. With equal evidence, the smaller thing comes first: a rack of one
// bad host is that host.
func likelier(a, b Suspect) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(size[a.Kind], size[b.Kind]), cmp.Compare(a.Name, b.Name))
}

// crossing is a result with the elements that its test has crossed.
type crossing struct {
	elements []Element
	bad      bool
}

func crossings(hosts []Host, results []Result) []crossing {
	all := make([]crossing, len(results))
	for i, r := range results {
		all[i] = crossing{elements(hosts, r), r.Bad}
	}
	return all
}

// vote is Vote in no order, where a test of a good path is bad with a probability of alarm.
func vote(results []crossing, alarm float64) []Suspect {
	seen := make(map[Element]*Suspect)
	for _, r := range results {
		for _, e := range r.elements {
			s := seen[e]
			if s == nil {
				s = &Suspect{Element: e}
				seen[e] = s
			}
			s.Tests++
			if r.bad {
				s.Bad++
			}
		}
	}
	all := make([]Suspect, 0, len(seen))
	for s := range maps.Values(seen) {
		s.Score = math.Inf(-1)
		for _, p := range severities {
			if p <= alarm {
				continue // it would be better than a good path
			}
			score := float64(s.Bad)*math.Log(p/alarm) + float64(s.Tests-s.Bad)*math.Log((1-p)/(1-alarm))
			s.Score = max(s.Score, score)
		}
		all = append(all, *s)
	}
	return all
}

// Culprits names the elements that the results accuse, one after the other: the bad tests across
// the first are taken out before the next vote. Where tests that cross none of the named are bad
// more often than a few good paths explain, something disturbs them all, such as a starved machine:
// the elements then have to be worse than that.
func Culprits(hosts []Host, results []Result, most int) []Suspect {
	all := crossings(hosts, results)
	for alarm := falseAlarm; ; {
		named := accused(all, most, alarm)
		tests, bad := 0., 0.
		for _, r := range all {
			if slices.ContainsFunc(named, func(s Suspect) bool { return slices.Contains(r.elements, s.Element) }) {
				continue
			}
			tests++
			if r.bad {
				bad++
			}
		}
		if len(named) == 0 || bad <= tests*alarm+surprise*math.Sqrt(tests*alarm*(1-alarm)) {
			return named
		}
		alarm = bad / tests
	}
}

// accused is Culprits where a test of a good path is bad with a probability of alarm.
func accused(results []crossing, most int, alarm float64) []Suspect {
	var named []Suspect
	rest, bound := slices.Clone(results), float64(enough)
	if alarm > falseAlarm {
		bound += wary
	}
	for len(named) < most {
		votes := vote(rest, alarm)
		if len(votes) == 0 {
			break
		}
		first := slices.MinFunc(votes, likelier)
		if first.Score < bound+math.Log(float64(len(votes))) {
			break
		}
		named = append(named, first)
		rest = slices.DeleteFunc(rest, func(r crossing) bool {
			return r.bad && slices.Contains(r.elements, first.Element)
		})
	}
	return named
}

// Second chooses the tests of a second stage: for each of the first suspects with at least one bad
// test, k tests against hosts without a bad test, spread over the racks.
func Second(hosts []Host, results []Result, suspects, k int, seed uint64) []Test {
	bad, tested := make(map[int]int), make(map[int]bool)
	for _, r := range results {
		tested[r.A], tested[r.B] = true, true
		if r.Bad {
			bad[r.A]++
			bad[r.B]++
		}
	}
	rng := newRand(seed)
	var clean []int
	for i := range hosts {
		if tested[i] && bad[i] == 0 {
			clean = append(clean, i)
		}
	}
	if len(clean) == 0 {
		return nil
	}
	var tests []Test
	for _, s := range Vote(hosts, results) {
		if suspects == 0 || s.Bad == 0 {
			break
		}
		suspects--
		var members []int
		for i, h := range hosts {
			if touches(h, s.Element) {
				members = append(members, i)
			}
		}
		rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		rng.Shuffle(len(clean), func(i, j int) { clean[i], clean[j] = clean[j], clean[i] })
		found := 0
		for n := range len(members) * len(clean) {
			a, b := members[n%len(members)], clean[(n/len(members)+n)%len(clean)]
			if a == b || s.Kind != HostElement && hosts[a].Rack == hosts[b].Rack {
				continue
			}
			tests = append(tests, Test{a, b})
			if found++; found == k {
				break
			}
		}
	}
	return tests
}

// touches reports whether a host's tests can cross an element.
func touches(h Host, e Element) bool {
	switch e.Kind {
	case HostElement:
		return h.ID == e.Name
	case Rack:
		return h.Rack == e.Name
	case Link, RackPair:
		first, second := ofPair(e.Name, h.Rack)
		return first || e.Kind == RackPair && second
	}
	return true
}
