package printed

import "strings"

// ParseSysctls parses "sysctl -a": "NAME = VALUE", by path below /proc/sys. A dot within a name, as
// in that of a VLAN's interface, is printed as a slash, and the separators as dots (sysctl(8)). A
// setting of several lines has its name on each, and the first counts. Errors about unreadable
// settings have no equals sign.
func ParseSysctls(text string) map[string]string {
	found := make(map[string]string)
	for line := range lines(text) {
		name, value, ok := strings.Cut(line, " = ")
		if !ok {
			// procps 4 prints no blank after the sign for an empty value.
			if name, ok = strings.CutSuffix(line, " ="); !ok {
				continue
			}
		}
		if name == "" || strings.ContainsAny(name, " \t:\x00") {
			continue
		}
		// Any name in a report becomes a path below /proc/sys; the caller checks it before it makes
		// a file.
		path := strings.Map(func(r rune) rune {
			switch r {
			case '.':
				return '/'
			case '/':
				return '.'
			}
			return r
		}, name)
		if _, known := found[path]; !known {
			found[path] = value
		}
	}
	return found
}
