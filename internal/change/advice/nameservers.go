package advice

import (
	"regexp"
	"strings"
)

// unboundLine is a line of unbound.conf(5).
var unboundLine = regexp.MustCompile(`^([a-z][a-z-]+):\s+("[^"]*"|\S+)(?:\s+#.*)?$`)

// unbound reads a line of unbound.conf. Many formats have a name and a colon: only options that are
// known count, and all of those but prefetch have a hyphen.
func (r *reader) unbound(text string) bool {
	m := unboundLine.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	if _, ok := bareNames()["unbound"][m[1]]; !ok {
		return false
	}
	r.add("", "unbound:"+m[1], strings.Trim(m[2], `"`))
	return true
}
