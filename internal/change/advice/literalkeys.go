package advice

import (
	"cmp"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

var (
	// wrapsString is a macro or a type around a string.
	wrapsString = pattern.New(`(?i)^(?:q?string(?:literal|view)?|qlatin1string|_?text|_t|std::w?string(?:_view)?|` +
		`hstring(?:::from)?|os_?str(?:ing)?(?:::from|::new)?|(?:to_)?wide|w!|s!)$`)
	// toNumber converts a string with a base.
	toNumber = pattern.New(`(?i)(?:^|[._])(?:to_?u?int(?:32|64)?|int|parse_?int|strtou?l|from_str_radix)$`)
	// keysByName are constants that the text does not define, whose names say which key they are.
	keysByName = []struct {
		name *pattern.Pattern
		key  string
	}{
		{pattern.New(`(?i)^[k_]*tcp_?ip(?:v4)?_?(?:param\w*|key|path|reg\w*)?$`), `Tcpip\Parameters`},
		{pattern.New(`(?i)^[k_]*afd_?(?:param\w*|key|path|reg\w*)?$`), `AFD\Parameters`},
		{pattern.New(`(?i)^[k_]*dns_?cache_?(?:param\w*|key|path|reg\w*)?$`), `Dnscache\Parameters`},
		{pattern.New(`(?i)^[k_]*lanman_?server_?(?:param\w*|key|path|reg\w*)?$`), `LanmanServer\Parameters`},
	}
)

// keyOf returns the key that a variable holds, also behind a name of an object.
func (l *literals) keyOf(word string) string {
	if key := l.keys[word]; key != "" {
		return key
	}
	root, _, dotted := strings.Cut(word, ".")
	if dotted && root != "self" && root != "this" {
		return l.keys[root]
	}
	for _, k := range keysByName {
		if k.name.MatchString(word) {
			return `HKLM\SYSTEM\CurrentControlSet\Services\` + k.key
		}
	}
	return ""
}

// around returns the key that a name is below: that of the innermost brackets which have one.
func (l *literals) around() string {
	const outward = 4
	for i := len(l.stack) - 1; i >= max(0, len(l.stack)-outward); i-- {
		if b := &l.stack[i]; i < len(l.stack)-1 && b.now.key != "" {
			return b.now.key
		} else if b.key != "" {
			return b.key
		}
	}
	return ""
}

// near returns the key that was opened last, if it is not far: a guess, so that the key above those
// of the interfaces stands for one of them, and not for a name that belongs elsewhere.
func (l *literals) near(at int, name string) string {
	if at-l.keyLine > keyReaches || !keyOfNetwork.MatchString(l.lastKey) {
		return ""
	}
	if !strings.HasSuffix(strings.ToLower(l.lastKey), `\interfaces`) {
		return l.lastKey
	}
	if named := registryNamed(name); named != "" && !strings.Contains(named, `\Interfaces\`) {
		return ""
	}
	return l.lastKey + `\*`
}

// keyFor returns the key of an argument: the nearest one before it, or that of the brackets around,
// or the last one that was opened.
func (l *literals) keyFor(parts []part, at int, name string) string {
	for k := at; k >= max(0, at-mostAhead); k-- {
		if parts[k].key != "" {
			return parts[k].key
		}
	}
	return cmp.Or(l.around(), l.near(parts[at].line, name))
}
