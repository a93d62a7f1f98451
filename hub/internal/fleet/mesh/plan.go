package mesh

import (
	"errors"
	"fmt"
	"slices"
)

// Host is one host of a mesh.
type Host struct {
	ID   string
	Rack string
	Site string
}

// Test is one test between two hosts, as indexes.
type Test struct{ A, B int }

// Partner returns the partner of host i in a round of the circle method over n hosts, or -1 where
// it rests. There are n−1 rounds for an even n, n for an odd one; over all, each pair meets once.
func Partner(i, round, n int) int {
	m := n - 1
	if n%2 == 1 {
		m = n // an absent host m is the fixed point
	}
	if m <= 0 {
		return -1
	}
	if i == m {
		// The fixed point meets the host that would meet itself: 2j ≡ round (mod m), and m is odd.
		return round % m * ((m + 1) / 2) % m
	}
	p := ((round-i)%m + m) % m
	if p == i {
		if n%2 == 1 {
			return -1
		}
		return m
	}
	return p
}

// Caps is how many load tests shared things carry at once. 0 means no limit.
type Caps struct {
	Uplink int // of one rack, to other racks
	Site   int // from one site to others
}

// DefaultCaps holds until the topology is known: one load test at a time on the uplink of a rack.
func DefaultCaps() Caps { return Caps{Uplink: 1, Site: 1} }

// Plan is the tests of a mesh in slots.
type Plan struct {
	Seed  uint64
	Hosts []Host // sorted by nothing: indexes are those of the caller
	K     int
	Slots [][]Test
}

// ErrPlan reports a mesh that cannot be planned.
var ErrPlan = errors.New("cannot plan the mesh")

// Schedule plans k partners for each host. The same arguments give the same plan.
func Schedule(hosts []Host, k int, caps Caps, seed uint64) (*Plan, error) {
	n := len(hosts)
	rounds := n - 1 + n%2
	if n < 2 || k < 1 || k > rounds || n > 1<<20 {
		return nil, fmt.Errorf("%w: %d partners among %d hosts", ErrPlan, k, n)
	}
	rng := newRand(seed)
	place := rng.Perm(n) // so that neighbours in the list are not partners in low rounds
	at := make([]int, n)
	for host, p := range place {
		at[p] = host
	}
	chosen := make(map[int]bool)
	var tests []Test
	for len(chosen) < k {
		r := rng.IntN(rounds)
		if chosen[r] {
			continue
		}
		chosen[r] = true
		var round []Test
		for i := range n {
			if p := Partner(i, r, n); p > i {
				round = append(round, Test{at[i], at[p]})
			}
		}
		rng.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		tests = append(tests, round...)
	}
	return &Plan{Seed: seed, Hosts: slices.Clone(hosts), K: k, Slots: pack(hosts, tests, caps)}, nil
}

// slot is what is taken in one slot.
type slot struct {
	busy         map[int]bool
	racks, sites map[int]int
	tests        []Test
}

// numbers gives equal names equal numbers.
func numbers(hosts []Host, name func(Host) string) []int {
	known := make(map[string]int)
	out := make([]int, len(hosts))
	for i, h := range hosts {
		n, ok := known[name(h)]
		if !ok {
			n = len(known)
			known[name(h)] = n
		}
		out[i] = n
	}
	return out
}

// pack puts each test into the first slot with room for it.
func pack(hosts []Host, tests []Test, caps Caps) [][]Test {
	rack := numbers(hosts, func(h Host) string { return h.Site + "\x00" + h.Rack })
	site := numbers(hosts, func(h Host) string { return h.Site })
	var slots []*slot
	fits := func(s *slot, t Test) bool {
		full := func(at map[int]int, of []int, limit int) bool {
			return limit > 0 && of[t.A] != of[t.B] && (at[of[t.A]] >= limit || at[of[t.B]] >= limit)
		}
		return !s.busy[t.A] && !s.busy[t.B] && !full(s.racks, rack, caps.Uplink) && !full(s.sites, site, caps.Site)
	}
	for _, t := range tests {
		k := slices.IndexFunc(slots, func(s *slot) bool { return fits(s, t) })
		if k < 0 {
			k = len(slots)
			slots = append(slots, &slot{make(map[int]bool), make(map[int]int), make(map[int]int), nil})
		}
		s := slots[k]
		s.busy[t.A], s.busy[t.B] = true, true
		if rack[t.A] != rack[t.B] {
			s.racks[rack[t.A]]++
			s.racks[rack[t.B]]++
		}
		if site[t.A] != site[t.B] {
			s.sites[site[t.A]]++
			s.sites[site[t.B]]++
		}
		s.tests = append(s.tests, t)
	}
	out := make([][]Test, len(slots))
	for i, s := range slots {
		out[i] = s.tests
	}
	return out
}

// Again plans tests that were chosen one by one, such as those of Second.
func Again(hosts []Host, tests []Test, caps Caps) [][]Test { return pack(hosts, tests, caps) }
