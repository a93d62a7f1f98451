package printed

import "strings"

// ParseSysctls reads "sysctl -a": "NAME = VALUE", by path below /proc/sys. A dot within a name, as
// in that of a VLAN's interface, is written as a slash and changes places with the others
// (sysctl(8)). A setting of several lines has its name in front of each, and the first counts.
// Complaints about settings that cannot be read have no equals sign.
func ParseSysctls(text string) map[string]string {
	found := make(map[string]string)
	for line := range lines(text) {
		name, value, ok := strings.Cut(line, " = ")
		if !ok {
			// An empty value has no blank behind the sign in procps 4.
			if name, ok = strings.CutSuffix(line, " ="); !ok {
				continue
			}
		}
		if name == "" || strings.ContainsAny(name, " \t:\x00") {
			continue
		}
		// What may stand in a report as a name becomes a path below /proc/sys: whoever makes a file
		// of it asks whether it is one.
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
