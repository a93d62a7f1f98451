package alert

import (
	"fmt"
	"slices"
	"strings"
)

const maxText = 1000 // bytes of the text of a rule

// valueForms are the forms of {{value}}, each with the Go template of Prometheus that renders it.
var valueForms = map[string]string{
	"value":                 `{{ $value | printf "%.4g" }}`,
	"value:bits_per_second": `{{ $value | humanize }}b/s`,
	"value:bytes":           `{{ $value | humanize1024 }}B`,
	"value:percent":         `{{ $value | humanizePercentage }}`,
	"value:seconds":         `{{ $value | humanizeDuration }}`,
}

// template translates the text of a rule in alerts: to a template as Prometheus's rules have it.
// {{LABEL}} becomes the value of a label, or "unknown" for a series without that label. A brace
// pair that is left open is text.
func template(text string) (string, error) {
	if len(text) > maxText {
		return "", fmt.Errorf("%d bytes are more than %d", len(text), maxText)
	}
	var b strings.Builder
	for {
		before, rest, open := strings.Cut(text, "{{")
		name, after, closed := strings.Cut(rest, "}}")
		if !open || !closed {
			b.WriteString(strings.ReplaceAll(text, "{{", `{{ "{{" }}`))
			return b.String(), nil
		}
		b.WriteString(before)
		form, known := valueForms[strings.TrimSpace(name)]
		switch name = strings.TrimSpace(name); {
		case known:
			b.WriteString(form)
		case strings.HasPrefix(name, "value:"):
			var all []string
			for form := range valueForms {
				if _, form, ok := strings.Cut(form, ":"); ok {
					all = append(all, form)
				}
			}
			slices.Sort(all)
			return "", fmt.Errorf("{{%s}}: the forms of a value are %s", name, strings.Join(all, ", "))
		case !goodLabel(name):
			return "", fmt.Errorf("{{%s}}: write {{value}} or the name of a label", name)
		default:
			fmt.Fprintf(&b, `{{ or $labels.%s "unknown" }}`, name)
		}
		text = after
	}
}

// oneLine returns a rendered text on one line, of bounded length: a label may hold anything.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > 2*maxText {
		text = strings.ToValidUTF8(text[:2*maxText], "")
	}
	return text
}
