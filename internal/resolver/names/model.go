package names

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/resolver/message"
)

// Model describes the names that clients of a resolver ask for.
type Model struct {
	Domain     string  // above the names; it has a wildcard in live.DOMAIN and nothing in gone.DOMAIN
	Population int     // names that are asked for repeatedly
	Exponent   float64 // of Zipf's law over the population; 0: all names are equally popular
	HitRatio   float64 // share of the queries that ask for the population; the others ask for fresh names
	NXRatio    float64 // share of the population that does not exist
	Types      []Share // of the population; empty: A
	Seed       uint64
}

// Share is the weight of one record type.
type Share struct {
	Type   message.Type
	Weight float64
}

// ParseShares reads types with weights: A=70,AAAA=25,MX=5. A type without a weight has weight 1.
func ParseShares(s string) ([]Share, error) {
	var shares []Share
	for part := range strings.SplitSeq(s, ",") {
		name, weight, weighted := strings.Cut(strings.TrimSpace(part), "=")
		t, err := message.ParseType(name)
		if err != nil {
			return nil, err
		}
		share := Share{Type: t, Weight: 1}
		if weighted {
			if share.Weight, err = strconv.ParseFloat(weight, 64); err != nil || !(share.Weight > 0 && share.Weight < 1e9) {
				return nil, fmt.Errorf("read weight %q of type %s: it is not a positive number", weight, name)
			}
		}
		shares = append(shares, share)
	}
	return shares, nil
}

// New packs the population of a model.
func (m Model) New(o message.QueryOptions) (*Set, error) {
	switch {
	case m.Population < 1 || m.Population > MaxQuestions:
		return nil, fmt.Errorf("%w: a population of %d names, want 1 to %d", ErrNames, m.Population, MaxQuestions)
	case !(m.HitRatio >= 0 && m.HitRatio <= 1):
		return nil, fmt.Errorf("%w: hit ratio %g is not between 0 and 1", ErrNames, m.HitRatio)
	case !(m.NXRatio >= 0 && m.NXRatio <= 1):
		return nil, fmt.Errorf("%w: share of missing names %g is not between 0 and 1", ErrNames, m.NXRatio)
	case !(m.Exponent >= 0 && m.Exponent <= 10):
		return nil, fmt.Errorf("%w: exponent %g is not between 0 and 10", ErrNames, m.Exponent)
	}
	if len(m.Types) == 0 {
		m.Types = []Share{{message.TypeA, 1}}
	}
	m.Types = slices.Clone(m.Types)
	total := 0.0
	for _, s := range m.Types {
		total += s.Weight
	}
	s := newSet(o)
	s.model = &m
	rnd := rand.New(rand.NewPCG(m.Seed, 0))
	for i := range m.Population {
		below := "live."
		if m.missing(uint32(i)) {
			below = "gone."
		}
		at, t := rnd.Float64()*total, m.Types[len(m.Types)-1].Type
		for _, share := range m.Types {
			if at -= share.Weight; at < 0 {
				t = share.Type
				break
			}
		}
		if err := s.add("h"+strconv.Itoa(i)+"."+below+m.Domain, t, Expectation{}); err != nil {
			return nil, err
		}
	}
	wire, err := message.AppendName(nil, "u"+strings.Repeat("0", freshDigits)+".live."+m.Domain)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNames, err)
	}
	s.fresh = message.AppendQuery(nil, wire, m.Types[0].Type, o)
	return s, nil
}

// missing reports whether name i of the population does not exist. The missing ones are spread
// evenly over the ranks, so that their share of the queries is that of the population.
func (m *Model) missing(i uint32) bool {
	return int(float64(i+1)*m.NXRatio) > int(float64(i)*m.NXRatio)
}

// expected returns the response code of a name; the data of a wildcard are the zone's own.
func (m *Model) expected(index uint32) Expectation {
	e := Expectation{HasCode: true}
	if index&freshBit == 0 && m.missing(index) {
		e.Code = message.NameError
	}
	return e
}
