package alert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
)

// valueForms say the value of a series with its unit.
var valueForms = []string{"bits_per_second", "bytes", "percent", "seconds"}

const maxText = 1000 // bytes of one line for people

// badText tells what is wrong with a text; empty: nothing.
func badText(text string) string {
	if len(text) > maxText {
		return fmt.Sprintf("%d bytes are more than %d", len(text), maxText)
	}
	problem := ""
	replace(text, func(name string) string {
		form, ofValue := strings.CutPrefix(name, "value:")
		switch {
		case ofValue && !slices.Contains(valueForms, form):
			problem = fmt.Sprintf("{{%s}}: the forms of a value are %s", name, strings.Join(valueForms, ", "))
		case !ofValue && !goodLabel(name):
			problem = fmt.Sprintf("{{%s}}: write {{value}} or the name of a label", name)
		}
		return ""
	})
	return problem
}

// render fills in a text. A label that the series does not have is "unknown".
func render(text string, labels map[string]string, value float64) string {
	out := replace(text, func(name string) string {
		switch name {
		case "value":
			return strconv.FormatFloat(value, 'g', 4, 64)
		case "value:bits_per_second":
			return unit.BitRate(value).String()
		case "value:bytes":
			return unit.Bytes(value).String()
		case "value:percent":
			return unit.FormatPercent(value)
		case "value:seconds":
			return unit.FormatSeconds(value)
		}
		if v, ok := labels[name]; ok {
			return v
		}
		return "unknown"
	})
	// A label may hold anything, and this is one line.
	out = strings.Join(strings.Fields(strings.ToValidUTF8(out, "?")), " ")
	if len(out) > 2*maxText {
		out = strings.ToValidUTF8(out[:2*maxText], "")
	}
	return out
}

// replace puts what by gives in the place of every {{name}}. What is left open stays as it is.
func replace(text string, by func(name string) string) string {
	var b strings.Builder
	for {
		before, rest, open := strings.Cut(text, "{{")
		name, after, closed := strings.Cut(rest, "}}")
		if !open || !closed {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(before)
		b.WriteString(by(strings.TrimSpace(name)))
		text = after
	}
}
