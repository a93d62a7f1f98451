package record

import (
	"fmt"
	"maps"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

const (
	// storedLabel is how long a label of a stored series may be: names of hosts, interfaces and disks
	// are shorter.
	storedLabel = 256
	// maxLabel bounds one label that a query makes, and maxLabels all of a series together, in bytes.
	// label_replace and label_join multiply the length of a label: a query of a kilobyte that nests
	// ten of them made gigabytes, and the engine does not look at its time limit meanwhile.
	maxLabel  = 4 << 10
	maxLabels = 16 << 10
)

// lengths has the largest length of the labels that an expression makes; all others are stored
// ones.
type lengths map[string]int

func (l lengths) of(label string) int {
	if n, made := l[label]; made {
		return n
	}
	return storedLabel
}

// labelLengths returns what an expression makes of labels, or an error if one of them could have
// more than maxLabel bytes, or all more than maxLabels. Where two expressions meet, each label
// is the longer of both.
func labelLengths(node parser.Node) (lengths, error) {
	made := lengths{}
	for child := range parser.ChildrenIter(node) {
		below, err := labelLengths(child)
		if err != nil {
			return nil, err
		}
		for label, n := range below {
			made[label] = max(made[label], n)
		}
	}
	call, ok := node.(*parser.Call)
	if !ok {
		return made, nil
	}
	switch call.Func.Name {
	case "label_replace": // v, target, replacement, source, regular expression
		target, replacement, source := argument(call, 1), argument(call, 2), argument(call, 3)
		// Each reference is at most the whole source; "$$" is counted as one, which errs to the safe
		// side.
		n := len(replacement) + strings.Count(replacement, "$")*made.of(source)
		made = maps.Clone(made)
		made[target] = max(n, made.of(target))
	case "label_join": // v, target, separator, source …
		n := 0
		for i := 3; i < len(call.Args); i++ {
			n += made.of(argument(call, i)) + len(argument(call, 2))
		}
		made = maps.Clone(made)
		made[argument(call, 1)] = n
	default:
		return made, nil
	}
	total := 0
	for label, n := range made {
		if n > maxLabel {
			return nil, fmt.Errorf("%w: %s could make the label %.50q %d bytes long, %d is the most", ErrTooMuch,
				call.Func.Name, label, n, maxLabel)
		}
		total += n
	}
	if total > maxLabels {
		return nil, fmt.Errorf("%w: labels of %d bytes could be made for each series, %d is the most", ErrTooMuch,
			total, maxLabels)
	}
	return made, nil
}

// argument returns the text of an argument, or "" for one that the parser refuses anyway.
func argument(call *parser.Call, i int) string {
	if i >= len(call.Args) {
		return ""
	}
	expr := call.Args[i]
	for {
		inner, ok := expr.(*parser.ParenExpr)
		if !ok {
			break
		}
		expr = inner.Expr
	}
	if text, ok := expr.(*parser.StringLiteral); ok {
		return text.Val
	}
	return ""
}
