package record

import (
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/strutil"
)

// The engine evaluates a regular expression once for each value of a label or for each series, and
// does not look at its time limit meanwhile. Its cost is the number of instructions of its program
// for each character.
const (
	// maxRepeats bounds what counted repetitions can make of a query: their counts, times the bytes
	// of the query. PromQL's parser compiles expressions, so that this is checked before.
	maxRepeats = 200_000
	// maxMatchers is the largest number of instructions of all expressions in the matchers of a query.
	// Lists of names (a|b|c) are looked up instead, and cost nothing.
	maxMatchers = 5000
	// maxReplacing is the largest number of instructions that label_replace may begin to run, over all
	// series: about a second of CPU time with labels of 40 characters.
	maxReplacing = 2_000_000
	// maxGroups is the largest number of groups of an expression: each instruction under way keeps
	// the places of all.
	maxGroups = 20
	// maxMade bounds the labels that a query makes for all its series, in bytes.
	maxMade = 256 << 20
)

// BoundedRepeats returns an error for a query that would take long to parse: one whose regular
// expressions repeat much, as "(ab{1,50}){20}" does. It reads the texts of the query as the parser
// does: an escape may stand for a brace.
func BoundedRepeats(query string) error {
	sum := 0
	var item parser.Item
	for l := parser.Lex(query); ; {
		l.NextItem(&item)
		if item.Typ == parser.EOF || item.Typ == parser.ERROR {
			break // where the parser stops too
		}
		rest, err := strutil.Unquote(item.Val)
		for found := err == nil; found; {
			var counts string
			_, rest, found = strings.Cut(rest, "{")
			counts, _, _ = strings.Cut(rest, "}")
			least, most, _ := strings.Cut(counts, ",")
			for _, text := range []string{least, most} {
				n, _ := strconv.ParseUint(text, 10, 64)
				sum += int(min(n, maxRepeats))
			}
		}
	}
	if sum > 0 && len(query) > maxRepeats/sum {
		return fmt.Errorf("%w: its regular expressions repeat up to %d times, in %d bytes: repeat less", ErrTooMuch, sum,
			len(query))
	}
	return nil
}

// BoundedMatchers returns an error if the regular expressions of matchers are too costly together.
func BoundedMatchers(all ...*labels.Matcher) error {
	sum := 0
	for _, m := range all {
		if m.Type != labels.MatchRegexp && m.Type != labels.MatchNotRegexp || len(m.SetMatches()) > 0 ||
			!strings.ContainsAny(m.Value, `\.+*?()[]{}^$`) {
			continue
		}
		n, _ := instructions(m.Value)
		if sum += n; sum > maxMatchers {
			return fmt.Errorf("%w: the regular expressions of matchers have %d steps together, %d are the most: "+
				"make them shorter", ErrTooMuch, sum, maxMatchers)
		}
	}
	return nil
}

// boundedRegexps returns an error if the regular expressions of a query, or the labels that it
// makes, are too costly for a number of stored series.
func boundedRegexps(expr parser.Expr, series int) error {
	var matchers []*labels.Matcher
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			matchers = append(matchers, v.LabelMatchers...)
		}
		return nil
	})
	if err := BoundedMatchers(matchers...); err != nil {
		return err
	}
	made, err := labelLengths(expr)
	if err != nil {
		return err
	}
	var work int
	selectors, err := replacing(expr, series, &work)
	if err != nil {
		return err
	}
	bytes := 0
	for _, n := range made {
		bytes += n
	}
	if bytes *= selectors * series; bytes > maxMade {
		return fmt.Errorf("%w: labels of %d MiB could be made for %d selectors of up to %d series, %d MiB are the most: "+
			"select less", ErrTooMuch, bytes>>20, selectors, series, maxMade>>20)
	}
	return nil
}

// replacing returns how many selectors an expression has, at least one, and adds what label_replace
// costs in it to work.
func replacing(node parser.Node, series int, work *int) (selectors int, err error) {
	if _, ok := node.(*parser.VectorSelector); ok {
		return 1, nil
	}
	for child := range parser.ChildrenIter(node) {
		n, err := replacing(child, series, work)
		if err != nil {
			return 0, err
		}
		selectors += n
	}
	call, ok := node.(*parser.Call)
	if !ok || call.Func.Name != "label_replace" {
		return selectors, nil
	}
	n, groups := instructions(argument(call, 4))
	if groups > maxGroups {
		return 0, fmt.Errorf("%w: the regular expression of label_replace has %d groups, %d are the most: write (?:…)",
			ErrTooMuch, groups, maxGroups)
	}
	if *work += n * max(selectors, 1) * series; *work > maxReplacing {
		return 0, fmt.Errorf("%w: regular expressions of label_replace with %d steps for up to %d series: shorten them, or "+
			"select less", ErrTooMuch, n, max(selectors, 1)*series)
	}
	return selectors, nil
}

// instructions returns the size of the program of an expression, and its groups; 0 for one that
// cannot be compiled, which the engine refuses.
func instructions(text string) (n, groups int) {
	re, err := syntax.Parse(text, syntax.Perl|syntax.DotNL)
	if err != nil {
		return 0, 0
	}
	groups = re.MaxCap()
	program, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0, groups
	}
	return len(program.Inst), groups
}
