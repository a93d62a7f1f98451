package knob

import (
	"path"
	"slices"
	"strings"
)

// OnInterface returns the definitions for a pattern that names an interface, a queue or a route, as
// ethtool:eth0/* does. The catalogue has stars there (ethtool:*/ring.rx), so it checks whether two
// globs have a name in common.
func (c *Catalog) OnInterface(pattern string) []Definition {
	if !strings.Contains(pattern, ":") || !strings.Contains(pattern, "*") {
		return nil
	}
	var found []Definition
	for _, d := range c.All() {
		// The entry for every other feature or flag has a star in place of its name and would be in
		// every answer.
		if !strings.HasSuffix(string(d.Pattern), ".*") && Overlap(pattern, string(d.Pattern)) {
			found = append(found, d)
		}
	}
	return found
}

// Overlap reports whether a name exists that matches both globs; only stars are special. A name
// without a star is a glob that matches only itself. The work is the product of the lengths,
// independent of the stars.
//
// A star ends at a slash, which separates interface, queue and attribute; but not in the names of
// routes (10.0.0.0/8) and sysctls, where the dot of an interface's name is written as a slash.
func Overlap(a, b string) bool {
	// Most pairs differ before the first star, and a policy compares its patterns with the whole
	// catalogue for each order.
	for i := 0; i < len(a) && i < len(b) && a[i] != '*' && b[i] != '*'; i++ {
		if a[i] != b[i] {
			return false
		}
	}
	crosses := strings.HasPrefix(a, KindRoute+":") || strings.HasPrefix(a, KindSysctl+":")
	takes := func(c byte) bool { return crosses || c != '/' }
	// meet[j]: the rest of a, from the row's letter on, and b[j:] have a name in common.
	meet := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		row := make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			aLeft, bLeft := i < len(a), j < len(b)
			switch {
			case !aLeft && !bLeft:
				row[j] = true
			case aLeft && a[i] == '*':
				// the star ends here, or takes one letter more of b
				row[j] = meet[j] || bLeft && takes(b[j]) && row[j+1]
			case bLeft && b[j] == '*':
				row[j] = row[j+1] || aLeft && takes(a[i]) && meet[j]
			case aLeft && bLeft:
				row[j] = a[i] == b[j] && meet[j+1]
			}
		}
		meet = row
	}
	return meet[0]
}

// Widened returns the definitions of the knobs that a pattern selects, and a function that reports
// whether it selects a given knob. The full name of a knob selects only that knob; a pattern
// selects every knob whose own name, or whose definition's name, matches.
func (c *Catalog) Widened(patterns string) ([]Definition, func(ID) bool) {
	var all []Definition
	list := strings.Split(patterns, ",") // no knob has a comma in its name
	for _, pattern := range list {
		for _, d := range c.Match(pattern) {
			// Words of a title find definitions for users who browse; an experiment uses names.
			named := nameMatches(pattern, string(d.Pattern)) || ID(pattern).Fits(d.Pattern)
			if named && !slices.ContainsFunc(all, func(o Definition) bool { return o.Pattern == d.Pattern }) {
				all = append(all, d)
			}
		}
	}
	return all, func(id ID) bool {
		d, known := c.Lookup(id)
		return slices.ContainsFunc(list, func(pattern string) bool {
			return nameMatches(pattern, string(id)) || known && nameMatches(pattern, string(d.Pattern))
		})
	}
}

// nameMatches reports whether a knob's name contains the pattern or matches it as a glob; '*' may
// span a '/', because users do not see it as a boundary in knob names.
func nameMatches(pattern, name string) bool {
	flat := strings.NewReplacer("/", "\x00")
	ok, err := path.Match(flat.Replace(pattern), flat.Replace(name))
	return (err == nil && ok) || strings.Contains(name, pattern)
}
