package knob

import (
	"cmp"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/base/spelling"
)

// Nearest returns the knobs whose names are most similar to a text: at most n, best first; none
// when no name is close. It compares the text with the whole name, the name without its kind, and
// its last word, since users omit parts.
func (c *Catalog) Nearest(text string, n int) []ID {
	text = strings.ToLower(strings.TrimSpace(text))
	type candidate struct {
		id       ID
		distance int
	}
	var near []candidate
	for _, d := range c.listed() {
		best := -1
		for _, name := range shortNames(d.Pattern) {
			// Texts are at least as far apart as their lengths, so that a long one costs nothing.
			most := len(name) / 3
			if len(text) > len(name)+most || len(name) > len(text)+most {
				continue
			}
			if apart := spelling.Distance(text, name); apart <= most && (best < 0 || apart < best) {
				best = apart
			}
		}
		if best >= 0 {
			near = append(near, candidate{d.Pattern, best})
		}
	}
	sorting.StableFunc(near, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var out []ID
	for _, k := range near[:min(n, len(near))] {
		out = append(out, k.id)
	}
	return out
}

// shortNames are the forms in which a user may name a knob: tcp_rmem, net.ipv4.tcp_rmem,
// sysctl:net.ipv4.tcp_rmem.
func shortNames(id ID) []string {
	attribute := id.Attribute()
	names := []string{string(id), id.rest(), attribute, attribute[strings.LastIndexByte(attribute, '.')+1:]}
	for i, name := range names {
		names[i] = strings.ToLower(name)
	}
	return names
}
