package matrix

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/linerate/linerate/internal/lab/scenario"
)

// Case is a scenario at a level.
type Case struct {
	Scenario scenario.Scenario
	Level    scenario.Level // empty: a sound world
}

// Name returns SCENARIO/LEVEL, or SCENARIO for a sound world.
func (c Case) Name() string {
	if c.Level == "" {
		return c.Scenario.Name
	}
	return c.Scenario.Name + "/" + string(c.Level)
}

// Filter chooses cases. Empty fields choose all.
type Filter struct {
	Only   *regexp.Regexp // matches the name of the scenario
	Level  scenario.Level
	Ground scenario.Ground
	Short  bool // the short form: the gross level of scenarios marked short, and sound worlds
}

// Select returns the cases of scenarios that pass a filter, in the scenarios' order and the mildest
// level first.
func Select(scenarios []scenario.Scenario, f Filter) []Case {
	var cases []Case
	for _, s := range scenarios {
		if f.Only != nil && !f.Only.MatchString(s.Name) || f.Ground != "" && f.Ground != s.On() || f.Short && !s.Short {
			continue
		}
		// A sound world has no level, so a filter with a level excludes it.
		if s.Sound() && f.Level == "" {
			cases = append(cases, Case{Scenario: s})
		}
		for _, l := range scenario.Levels {
			// The short form also runs on busy machines, where only a gross fault must be found.
			if _, ok := s.Fault(l); !ok || f.Level != "" && l != f.Level || f.Short && l != scenario.Gross {
				continue
			}
			cases = append(cases, Case{s, l})
		}
	}
	return cases
}

// ParseLevel parses a level; an empty text means all levels.
func ParseLevel(s string) (scenario.Level, error) {
	if s != "" && !slices.Contains(scenario.Levels, scenario.Level(s)) {
		return "", fmt.Errorf("level %q: want one of %v", s, scenario.Levels)
	}
	return scenario.Level(s), nil
}

// ParseGround parses a ground; "all" and an empty text mean all grounds.
func ParseGround(s string) (scenario.Ground, error) {
	switch g := scenario.Ground(s); g {
	case scenario.Namespace, scenario.Guest:
		return g, nil
	case "", "all":
		return "", nil
	}
	return "", fmt.Errorf("ground %q: want %s, %s or all", s, scenario.Namespace, scenario.Guest)
}
