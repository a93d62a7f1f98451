package advice

import "strings"

// The code that fills a map from one text is smaller than that of a literal, by some fifty bytes
// for each entry.

// table returns the pairs of a text, NAME=VALUE with blanks between them.
func table(text string) map[string]string {
	all := map[string]string{}
	for _, w := range strings.Fields(text) {
		name, value, _ := strings.Cut(w, "=")
		all[name] = value
	}
	return all
}

// setOf returns the words of a text.
func setOf(text string) map[string]bool {
	all := map[string]bool{}
	for _, w := range strings.Fields(text) {
		all[w] = true
	}
	return all
}
