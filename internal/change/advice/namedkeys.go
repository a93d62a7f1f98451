package advice

import (
	"cmp"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
	"github.com/linerate/linerate/internal/base/sorting"
)

// Names of sysctls that a program keeps in constants, and uses by the names of these:
//
//	const key = 'net.ipv4.tcp_sack'
//	const settings = { [key]: 0 }

var (
	// holdsName gives a name of a program the name of a sysctl, or its file.
	holdsName = pattern.New(`(?m)(?:^|[\s;,(])` +
		`(?:([A-Za-z_]\w*)(?:[ \t]*:[ \t]*[&'\w ]+?)?[ \t]*:?=|#define[ \t]+(\w+))[ \t]*` +
		`[br]?["'` + "`" + `](` + namePattern + `|(?:/proc/sys/)?(?:net|vm|fs|kernel)/[\w./-]+)["'` + "`" + `]` +
		`[ \t]*(?:[;,)]|$|#|//)`)
	// assignsName gives it anything.
	assignsName   = pattern.New(`(?m)(?:^|[^\w.\]])([A-Za-z_]\w*)(?:[ \t]*:[ \t]*[&'\w ]+?)?[ \t]*:?=(?:[^=>~]|$)`)
	onlyHoldsName = pattern.New(`^[^"'()]*["'][^"']*["'][;,]?$`)
	// computedKey is a name that is the key of an entry.
	computedKey = pattern.New(`\[("` + namePattern + `")\](\s*:)`)
)

// fieldNames are fields for the name of a setting, whose value is another field. As constants they
// count only in brackets.
var fieldNames = setOf(`name key title namespace sysctl param parameter property setting option path file command cmd`)

const (
	mostNames    = 200 // of a text
	shortestName = 3   // of a constant that is looked for anywhere; a shorter one counts in brackets only
)

// namedKeys writes the name of a sysctl in the place of the constant that holds it.
func namedKeys(text string, lines []line) []line {
	found := holdsName.FindAllStringSubmatch(text, mostNames)
	if found == nil {
		return lines
	}
	values, used, times := map[string]string{}, usedVariables(text), map[string]int{}
	for _, m := range found {
		name := m[1] + m[2]
		file := strings.HasPrefix(m[3], "/proc/sys/")
		sysctl := strings.ReplaceAll(strings.TrimPrefix(m[3], "/proc/sys/"), "/", ".")
		if _, ok := sysctlOS(sysctl); !ok || used[name] {
			continue
		}
		if values[name] = sysctl; file {
			values[name] = m[3]
		}
		if m[2] != "" {
			times[name]++
		}
	}
	for _, m := range assignsName.FindAllStringSubmatch(text, -1) {
		times[m[1]]++
	}
	var names []string
	for name := range values {
		if times[name] == 1 {
			names = append(names, name)
		}
	}
	sorting.Func(names, func(a, b string) int { // the longest first: one may begin another
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	if len(names) == 0 {
		return lines
	}
	out := slices.Clone(lines)
	for i, l := range out {
		if m := holdsName.FindStringSubmatch(l.text); m != nil && !strings.ContainsAny(l.text, "[{") {
			if slices.Contains(names, m[1]) && !fieldNames[m[1]] && onlyHoldsName.MatchString(l.text) {
				out[i].text = "" // it sets nothing
			}
			continue
		}
		if isComment(l.text) {
			continue
		}
		for _, n := range names {
			if !strings.Contains(l.text, n) || (len(n) < shortestName || fieldNames[n]) &&
				!strings.Contains(l.text, "["+n+"]") {
				continue
			}
			l.text = withItem(unqualified(l.text, n), n, values[n])
		}
		out[i].text = computedKey.ReplaceAllString(l.text, "$1$2")
	}
	return out
}

// unqualified drops the class or the package before a name: Keys.SACK, self.SACK.
func unqualified(text, name string) string {
	at := strings.Index(text, "."+name)
	if at <= 0 {
		return text
	}
	begin := at
	for begin > 0 && !notInName(rune(text[begin-1])) {
		begin--
	}
	if begin == at {
		return text
	}
	return text[:begin] + text[at+1:]
}
