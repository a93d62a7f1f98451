package advice

import (
	"regexp"
	"strings"
	"testing"
)

// TestGlobs compares every pattern of four letters with a regular expression, on every text of up
// to five.
func TestGlobs(t *testing.T) {
	words := func(letters string, most int) (all []string) {
		all = []string{""}
		for at := 0; at < len(all); at++ {
			for _, letter := range letters {
				if len(all[at]) < most {
					all = append(all, all[at]+string(letter))
				}
			}
		}
		return all
	}
	texts := words("ab", 5)
	for _, pattern := range words("ab*", 4) {
		same := regexp.MustCompile("^" + strings.ReplaceAll(pattern, "*", ".*") + "$")
		for _, s := range texts {
			if got := globs(pattern, s); got != same.MatchString(s) {
				t.Errorf("%q matches %q: %v", pattern, s, got)
			}
		}
	}
}
