package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

var (
	// setsInPower sets a value below a key that the function itself has, or a property of a NIC. A
	// function that gets the key from its call is read by the words of the call.
	setsInPower = pattern.New(`(?i)\b(?:set|new)-itemproperty .*\bhk\w+:?\\.*\s\$|advancedproperty .*\s\$\w+\b[^.]`)

	paramBlock = pattern.New(`(?is)^param\s*\((.*?)\)(?:\n|$)`)
	parameters = pattern.New(`(?:^|[,\]\s])\$(\w+)`)
)

// parametersOf returns the names of the parameters of a function of PowerShell, and its lines with
// each pipeline on one.
func parametersOf(list string, body []string) (names, lines []string) {
	text := strings.ReplaceAll(strings.Join(body, "\n"), "|\n", "| ")
	if m := paramBlock.FindStringSubmatch(text); m != nil && list == "" {
		list, text = m[1], text[len(m[0]):]
	}
	for _, m := range parameters.FindAllStringSubmatch(list, -1) {
		names = append(names, m[1])
	}
	return names, strings.Split(text, "\n")
}

// powerCall returns the lines of a function of PowerShell with the words of a call, which may name
// its parameters, in the places of their names.
func (s *script) powerCall(body, names, words []string) []string {
	given := map[string]string{}
	for i, w := range words {
		if name := strings.TrimPrefix(w, "-"); name != w && i+1 < len(words) {
			given[name] = words[i+1]
		} else if i < len(names) && name == w && len(given) == i {
			given[names[i]] = w
		}
	}
	out := make([]string, 0, len(body))
	for _, t := range body {
		if s.left -= len(t); s.left < 0 {
			return []string{}
		}
		out = append(out, substitute(t, given))
	}
	return out
}
