package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// Loops over a table of names and values that the text writes out. A table of whole names is read
// where it stands; one of parts of names sets something in its loop alone:
//
//	params = { 'rp_filter' => 1 }
//	params.each do |param, value|
//	  sysctl "net.ipv4.conf.all.#{param}" do

var (
	mapHead = pattern.New(`^(?:(?:const|let|var|static|final|my|export)\s+)*\$?(\w+)\s*:?=\s*` +
		`(?:map\[string\]\w+|dict|new\s+\w+)?\s*[{(]$`)
	mapEntry = pattern.New(`^[:"']?([a-z][\w/-]*)["']?\s*(?:=>|:|=)\s*["']?(-?\w[\w. ]*?)["']?\s*,?\s*(?:(?:#|//).*)?$`)
	pairHead = pattern.New(`^(?:` +
		`\$?(\w+)\.each(?:_pair)?\s*(?:do|\{)?\s*\|\s*\$?(\w+)\s*,\s*\$?(\w+)\s*\|` + // Ruby and Puppet
		`|(?:\{%-?\s*)?for\s+(\w+)\s*,\s*(\w+)\s+in\s+(\w+)\.(?:iter)?items\(\)` + // Python and Jinja
		`|for\s+(\w+)\s*,\s*(\w+)\s*:?=\s*range\s+(\w+)\s*\{` + // Go
		`|for\s*\((?:const|let|var)\s*\[(\w+)\s*,\s*(\w+)\]\s+of\s+Object\.entries\((\w+)\)\))`) // JavaScript
)

// tableAt returns the name and the entries of the table that begins at a line; none of them if one
// is no part of a name with a plain value.
func tableAt(lines []line, at int) (name string, entries [][2]string) {
	m := mapHead.FindStringSubmatch(lines[at].text)
	if m == nil {
		return "", nil
	}
	for i := at + 1; i < len(lines) && i < at+longestRepeat; i++ {
		t := lines[i].text
		if strings.HasPrefix(t, "}") || strings.HasPrefix(t, ")") {
			return m[1], entries
		}
		if t == "" || isComment(t) {
			continue
		}
		e := mapEntry.FindStringSubmatch(t)
		if e == nil {
			return m[1], nil
		}
		entries = append(entries, [2]string{e[1], e[2]})
	}
	return m[1], nil
}

// pairsOf returns the two variables of the head of such a loop, and its table.
func pairsOf(text string) (key, value, table string) {
	m := pairHead.FindStringSubmatch(text)
	for i := 1; i < len(m); i += 3 {
		switch {
		case m[i] == "":
		case i == 1: // which name the table first
			return m[2], m[3], m[1]
		default:
			return m[i], m[i+1], m[i+2]
		}
	}
	return "", "", ""
}

// withPair puts an entry of a table in the places of both variables. The first word of a line may
// be a keyword with the name of one: value value.
func withPair(text, key, value string, entry [2]string) string {
	word := ""
	if first, rest, ok := strings.Cut(text, " "); ok && (first == key || first == value) && !strings.HasPrefix(rest, "=") {
		word, text = first+" ", rest
	}
	return word + withItem(withItem(text, key, entry[0]), value, entry[1])
}
