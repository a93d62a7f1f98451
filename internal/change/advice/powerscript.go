package advice

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// powerScript is what a text of PowerShell or a batch file says about its own tables, lists and
// loops. As in script, nothing is executed.
type powerScript struct {
	lists map[string][]string // lists of literal words
	body  map[int]bool        // lines of tables that are read where they are used
	loops []powerLoop         // open at the present line
	depth int                 // of braces

}

// powerLoop is an open loop over literal words.
type powerLoop struct {
	name  string // with its sign: $name, %%i
	items []string
	open  int            // brackets within that of a batch file
	used  *regexp.Regexp // its name in a line
	depth int            // of the braces around it
}

// quotedList are strings with commas between them.
const quotedList = `(?:"[^"]*"|'[^']*')(?:\s*,\s*(?:"[^"]*"|'[^']*'))*`

var (
	powerList = pattern.New(`^\$(?:\w+:)?([A-Za-z_]\w*)\s*=\s*@\(\s*(.*)$`)
	plainList = pattern.New(`^\$(?:\w+:)?([A-Za-z_]\w*)\s*=\s*((?:"[^"$]*"|'[^']*')(?:\s*,\s*(?:"[^"$]*"|'[^']*'))+)$`)
	listWord  = pattern.New(`"([^"$]*)"|'([^']*)'`)

	// powerCommand is a command of PowerShell in the quotes of another shell.
	powerCommand = pattern.New(`(?i)^(?:@|call\s+)?(?:powershell|pwsh)(?:\.exe)?\s[^"]*-c(?:ommand)?\s+"`)

	// quotedReg is a command of reg within a string, with a key that has quotes of its own.
	quotedReg = pattern.New(`(?i)\breg(?:\.exe)?\s+add\s+\\"`)
	// selectedName is the property that a pipeline goes on with as $_.DisplayName.
	selectedName = pattern.New(`(?i)get-netadapteradvancedproperty\s[^|]*` +
		`-(?:displayname|registrykeyword)\s+("[^"]+"|'[^']+')`)

	// selectedWhere is the same with Where-Object.
	selectedWhere = pattern.New(`(?i)^(.*displayname\s+-(?:like|eq|match)\s+("[^"]+"|'[^']+').*\|\s*` +
		`set-netadapteradvancedproperty)\s`)

	// undoes is an entry of a table that takes back what another one sets, on one line or on several.
	undoes = pattern.New(`(?i)(?:^|[\s;,{])["']?\w*(?:undo|revert|restore|rollback)\w*["']?\s*[=:]\s*` +
		`(?:\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|\[[^\[\]]*\]|"(?:[^"\\]|\\.)*"|'[^']*'|` + "`[^`]*`)")
	undoesBelow = pattern.New(`(?i)^["']?(?:undo|revert|restore|rollback)\w*["']?\s*[=:]\s*(?:\{|@?[(\[]|` + "`" + `)$`)

	// foreachHead begins a loop of PowerShell, forHead one of a batch file.
	foreachHead = pattern.New(`(?i)^foreach\s*\(\s*(\$\w+)\s+in\s+(@\([^()]*\)|\$\w+|` + quotedList +
		`|@\(\s*` + quotedList + `\s*\))\s*\)\s*\{\s*(.*)$`)
	pipedList = pattern.New(`(?i)^(@\([^()]*\)|\$\w+|` + quotedList + `|@\(\s*` + quotedList + `\s*\))\s*\|\s*` +
		`(?:foreach-object|foreach|%)\s*\{\s*(.*)$`)
	forHead = pattern.New(`(?i)^@?for\s+(%%\w)\s+in\s*\(([^()'` + "`" + `*?]+)\)\s*do\s*(.*)$`)

	// forKeys is a loop of a batch file over the keys below one.
	forKeys = pattern.New(`(?i)^@?for\s+/f\s.*?(%%\w)\s+in\s*\(\s*['` + "`" + `]reg(?:\.exe)?\s+query\s+(?:"(hk[^"]+)"|` +
		`(hk[^\s"']+)).*['` + "`" + `]\s*\)\s*do\s*(.*)$`)
	asksRegistry = pattern.New(`(?i)^@?for\s+/f\s.*\breg(?:\.exe)?\s+query\s+"?[%!]`)
	// valueQuery asks for a value, so that what comes is no key.
	valueQuery = pattern.New(`(?i)\s/v\s|tokens=[2-9]`)

	// keyAssigned is a key of the registry that a variable holds from here on.
	keyAssigned = pattern.New(`(?i)^(?:@?set\s+"?|\$(?:script:|global:)?)([a-z_]\w*)\s*=\s*` +
		`["']?((?:registry::)?hk(?:lm|cu|u|cr|ey_\w+):?\\[^"']*)["']?;?$`)
	joinedKey = pattern.New(`(?i)^\$([a-z_]\w*)\s*=\s*join-path\s+(?:-path\s+)?` +
		`["']?(hk\w+:?\\.*?)["']?\s+(?:-childpath\s+)?(\S+)$`)
	reassigned = pattern.New(`(?i)^(?:@?set\s+"?|\$|foreach\s*\(\s*\$)([a-z_]\w*)(?:\s*=[^=]|\s+in\s)`)
)

// newPowerScript looks for the tables and the lists of a text.
func newPowerScript(text string, lines []line) powerScript {
	p := powerScript{lists: map[string][]string{}, body: map[int]bool{}}
	for i, l := range lines {
		if undoesBelow.MatchString(l.text) {
			p.undone(l.text, lines[i+1:])
		}
		if m := powerList.FindStringSubmatch(l.text); m != nil {
			if p.lists[m[1]] = listOf(m[2], lines[i+1:]); p.lists[m[1]] != nil && strings.Contains(text, " in $"+m[1]+")") {
				p.words(m[1], lines[i:])
			}
		}
		if m := plainList.FindStringSubmatch(l.text); m != nil {
			p.lists[m[1]] = listOf(m[2], nil)
		}
	}
	return p
}

// words notes that the words of a list are read where a loop uses them: two of them side by side
// are no name and value. A list of commands is read where it stands.
func (p *powerScript) words(name string, lines []line) {
	for _, w := range p.lists[name] {
		if strings.Contains(w, " ") {
			return
		}
	}
	for i := range min(len(lines), mostLines) {
		p.body[lines[i].number] = true
		if closing(strings.TrimPrefix(lines[i].text, "$"+name+" = @(")) >= 0 {
			return
		}
	}
}

// undone leaves out the lines of a block that takes settings back, up to its end.
func (p *powerScript) undone(head string, lines []line) {
	opened, depth := head[len(head)-1:], 1
	closes := string("}])`"[strings.Index("{[(`", opened)])
	for i := range min(len(lines), mostLines) {
		t := lines[i].text
		if opened == "`" && strings.HasPrefix(t, opened) {
			return
		}
		if depth += strings.Count(t, opened) - strings.Count(t, closes); depth <= 0 && opened != "`" {
			return
		}
		p.body[lines[i].number] = true
	}
}

const (
	mostLines = 60 // of a table or a list
)

// listOf returns the strings of a list up to its end; nothing if it holds anything else.
func listOf(rest string, lines []line) []string {
	var items []string
	for i := range min(len(lines), mostLines) + 1 {
		inner, closed := rest, false
		if at := closing(rest); at >= 0 && !strings.ContainsAny(rest, "{") {
			inner, closed = rest[:at], true
		}
		if strings.ContainsAny(inner, "{}") {
			return nil
		}
		for _, m := range listWord.FindAllStringSubmatch(inner, -1) {
			items = append(items, m[1]+m[2])
		}
		if closed || i == len(lines) || i == mostLines {
			break
		}
		rest = lines[i].text
	}
	if len(items) > mostItems {
		return nil
	}
	return items
}

// closing returns where a list ends: the first closing bracket outside quotes.
func closing(text string) int {
	quote := byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && c == ')':
			return i
		}
	}
	return -1
}

// items returns the words that a loop goes over, if they are literal.
func (p *powerScript) items(list string) []string {
	if name, ok := strings.CutPrefix(list, "$"); ok {
		return p.lists[name]
	}
	return listOf(strings.TrimSuffix(strings.TrimPrefix(list, "@("), ")"), nil)
}

// powerLines returns what a line is with its tables and loops written out, as far as there is room.
func (s *script) powerLines(text string) []string {
	out := s.powerParts(text)
	size := 0
	for _, t := range out {
		size += len(t)
	}
	if len(out) == 1 && size <= len(text) {
		return out
	}
	if s.left -= size; s.left < 0 {
		return []string{text}
	}
	return out
}

func (s *script) powerParts(text string) []string {
	p := &s.power
	text = undoes.ReplaceAllString(text, "")
	if powerCommand.MatchString(text) || quotedReg.MatchString(text) {
		text = strings.ReplaceAll(text, `\"`, "'")
	}
	if m := selectedWhere.FindStringSubmatch(text); m != nil && !strings.Contains(text[len(m[1]):], "-RegistryKeyword ") {
		text = m[1] + " -DisplayName " + m[2] + text[len(m[1]):]
	}
	if m := selectedName.FindStringSubmatch(text); m != nil {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "$_.DisplayName", m[1]), "$_.RegistryKeyword", m[1])
	}
	if s.left < 0 {
		return []string{text}
	}
	if asksRegistry.MatchString(text) { // reg query "%KEY%"
		text = substitute(substitute(text, s.constants), s.paths)
	}
	s.keys(text)
	if m := forHead.FindStringSubmatch(text); m != nil {
		return p.loop(m[1], strings.FieldsFunc(m[2], func(c rune) bool { return c == ' ' || c == ',' || c == '\t' }), m[3])
	}
	if m := forKeys.FindStringSubmatch(text); m != nil && !valueQuery.MatchString(text) &&
		!strings.Contains(strings.ToLower(m[2]+m[3]), `\control\class\`) { // those are NICs
		key := strings.Trim(cmp.Or(m[2], m[3]), `\ `)
		return p.loop(m[1], []string{key + `\*`}, m[4])
	}
	if m := foreachHead.FindStringSubmatch(text); m != nil && p.items(m[2]) != nil {
		p.depth++
		return p.loop(m[1], p.items(m[2]), m[3])
	}
	if m := pipedList.FindStringSubmatch(text); m != nil && p.items(m[1]) != nil {
		p.depth++
		return p.loop("$_", p.items(m[1]), m[2])
	}
	out := p.each(text)
	if len(out) == 1 && out[0] != text {
		s.keys(out[0]) // set "key=%%k"
	}
	return out
}

// loop opens a loop, and returns its lines if it ends on its own.
func (p *powerScript) loop(name string, items []string, rest string) []string {
	if len(items) == 0 || len(items) > mostItems {
		return p.each(rest)
	}
	for i, w := range items {
		items[i] = strings.Trim(w, `"'`)
	}
	batch, outer := strings.HasPrefix(name, "%%"), len(p.loops)
	p.loops = append(p.loops, powerLoop{name: name, items: items, depth: p.depth,
		used: regexp.MustCompile(strings.Replace(regexp.QuoteMeta(name), `%%`, `%%(?:~[dfnpsx]*)?`, 1) + `(?:\b|$)`)})
	if batch && strings.HasPrefix(rest, "(") {
		rest = strings.TrimSpace(rest[1:])
		if inner, ok := strings.CutSuffix(rest, ")"); ok {
			rest, batch = strings.TrimSpace(inner), true
		} else {
			return p.each(rest)
		}
	}
	out := p.each(rest)
	if batch {
		p.loops = p.loops[:min(outer, len(p.loops))]
	}
	return out
}

// each repeats a line for the words of the loops around it, and closes those that end on it.
func (p *powerScript) each(text string) []string {
	all := []string{text}
	for _, l := range p.loops {
		at := l.used
		if !at.MatchString(text) || len(all)*len(l.items) > mostItems {
			continue
		}
		var next []string
		for _, t := range all {
			for _, item := range l.items {
				next = append(next, putIn(t, at, item))
			}
		}
		all = next
	}
	p.depth += strings.Count(text, "{") - strings.Count(text, "}")
	for n := len(p.loops); n > 0; n-- {
		l := &p.loops[n-1]
		if strings.HasPrefix(l.name, "%%") {
			if l.close(text); l.open >= 0 {
				break
			}
		} else if p.depth >= l.depth {
			break
		}
		p.loops = p.loops[:n-1]
		if text == ")" {
			break
		}
	}
	return all
}

// close counts the brackets of a line of a batch file: a bracket at its begin closes a block, and
// one at its end opens one.
func (l *powerLoop) close(text string) {
	if strings.HasPrefix(text, ")") {
		l.open--
	}
	if strings.HasSuffix(text, "(") && l.open >= 0 {
		l.open++
	}
}

// putIn puts an item in the places of a name; one with blanks stays one word outside quotes.
func putIn(text string, name *regexp.Regexp, item string) string {
	if !strings.ContainsAny(item, ` \`) {
		return name.ReplaceAllLiteralString(text, item)
	}
	var out strings.Builder
	from := 0
	for _, at := range name.FindAllStringIndex(text, -1) {
		out.WriteString(text[from:at[0]])
		quotes := strings.Count(text[:at[0]], `"`) + strings.Count(text[:at[0]], "'")
		if quotes%2 == 0 {
			item = `"` + strings.Trim(item, `"`) + `"`
		} else {
			item = strings.Trim(item, `"`)
		}
		out.WriteString(item)
		from = at[1]
	}
	out.WriteString(text[from:])
	return out.String()
}

// keys notes which key of the registry a variable holds from here on.
func (s *script) keys(text string) {
	name, value, ok := strings.Cut(text, "=")
	if ok {
		text = name + "=" + substitute(substitute(value, s.constants), s.paths)
	}
	if m := joinedKey.FindStringSubmatch(text); m != nil {
		s.paths[m[1]] = m[2] + `\` + strings.Trim(m[3], `"'`)
	} else if m := keyAssigned.FindStringSubmatch(text); m != nil {
		s.paths[m[1]] = strings.TrimRight(m[2], `\ `)
	} else if m := reassigned.FindStringSubmatch(text); m != nil && isKey(s.paths[m[1]]) {
		delete(s.paths, m[1])
	}
}

// keyOfRegistry is a key with its hive.
var keyOfRegistry = pattern.New(`(?i)^(?:registry::)?hk(?:lm|cu|u|cr|ey_\w+):?\\`)

// isKey reports whether a value is a key of the registry.
func isKey(value string) bool { return keyOfRegistry.MatchString(value) }

// registryPathOf returns a key of the registry as reg.exe writes it.
func registryPathOf(path string) string {
	path = strings.TrimPrefix(strings.ReplaceAll(path, `\\`, `\`), "Registry::")
	hive, rest, _ := strings.Cut(path, `\`)
	return shortHive(strings.ToUpper(strings.TrimSuffix(hive, ":")) + `\` + strings.Trim(rest, `\`))
}

// inMachine puts the hive of the machine before a key that begins with one of its parts.
func inMachine(key string) string {
	if isKey(key) {
		return key
	}
	return `HKLM\` + key
}

// addReg is a line of an INF file (learn.microsoft.com: INF AddReg directive).
var addReg = pattern.New(`(?i)^(hk(?:lm|cu|r)),\s*"([^"]+)",\s*"([^"]+)",\s*(?:0x[0-9a-f]+|%\w+%|\d*),\s*` +
	`(0x[0-9a-f]+|\d+|(?:[0-9a-f]{2},){3}[0-9a-f]{2})$`)

// templateLine is a line of a security template (learn.microsoft.com: secedit): type 4 is a number.
var templateLine = pattern.New(`(?i)^machine\\(.+)=4,(\d+)$`)

func (r *reader) infLine(text string) bool {
	if m := templateLine.FindStringSubmatch(text); m != nil {
		r.add(Windows, "registry:"+inMachine(m[1]), m[2])
		return true
	}
	m := addReg.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	value := m[4]
	if bytes := strings.Split(value, ","); len(bytes) == 4 { // the lowest comes first
		slices.Reverse(bytes)
		value = "0x" + strings.Join(bytes, "")
	}
	r.add(Windows, "registry:"+registryPathOf(m[1]+`\`+m[2])+`\`+m[3], number(value))
	return true
}

// knownPair is the name of a value of the registry and its data, in a table or a call whose key is
// elsewhere.
var (
	knownPair = pattern.New(`^\(?["']?([A-Za-z][A-Za-z0-9]+)["']?\s*[:=,]\s*` +
		`["']?(0x[0-9a-fA-F]+|\d+)["']?\s*\)?[,;]?(?:\s*#.*)?$`)
	writesByName = pattern.New(`(?i)(?:set|new)-itemproperty|reg(?:\.exe)?\s+add|setvalueex|\.setvalue\(|` +
		`["']hk\w+:?\\[^"']+["']\s*=\s*@\{`)
	innerCapital = pattern.New(`[a-z][A-Z]|TTL|RSS`)
	// oneOfTwo is a name and the one or the other number, by a condition of PowerShell.
	oneOfTwo = pattern.New(`(?i)^["']?(\w+)["']?\s*=\s*(if\s*\(\$.*\{\s*\w+\s*\}\s*else\s*\{\s*\w+\s*\})$`)
	// nicPair is a property of a NIC in a table of PowerShell, or in two cells of a page.
	nicPair = pattern.New(`(?i)(?:^\||["'])\s*(` + nicProperty + `[^"'|]*?)` +
		`\s*["'|](?:\s*[=:,]\s*["']|\s+["']|\s*[;,]\s*\w*value\w*"?\s*[=:]\s*["'])?\s*` +
		`((?:enabled|disabled|on|off|\d+|rx & tx \w+|auto negotiation|maximum|minimum|highest|lowest|adaptive|` +
		`extreme)(?:\|\w+)?)\s*["'|]`)
	// nicItem is a property of a NIC in an item of a list.
	nicItem = pattern.New(`(?i)^(?:[-*+•]|\d+[.)])\s+[*"` + "`" + `]*(` + nicProperty +
		`[^:=→*"` + "`" + `]*?)[*"` + "`" + `]*\s*(?::|=|→|->)[*"` + "`" + `\s]*` +
		`(enabled?|disabled?|on|off|\d+|rx & tx \w+|auto negotiation|maximum|adaptive|extreme)\b`)
	// nicSaid is a property of a NIC in a sentence, or two with one value.
	nicSaid = pattern.New(`(?i)(?:["']\s*(` + nicProperty + `[^"'|]*?)["']\s*/\s*)?["']\s*(` + nicProperty +
		`[^"'|]*?)["']\s+(?:property\s+|setting\s+)?(?:to|→)\s+["']?(enabled|disabled|on|off|\d+)\b`)
)

// nicProperty begins the names that drivers show for their properties.
const nicProperty = `(?:interrupt moderation|energy.efficient|green ethernet|flow control|large send offload|` +
	`\w+ buffers|receive side scaling|jumbo |\w+ checksum|\w+ \w*coalescing|power saving mode|rss base|speed &|wake on |` +
	`shutdown wake|gigabit lite|auto disable|advanced eee|priority &|packet priority|arp offload|ns offload|` +
	`maximum number of rss|ultra low power|reduce speed|system idle power|adaptive inter|interrupt throttl|log link|` +
	`wait for link|roaming aggress|mimo power|throughput boost)`

// namesOnly reads a line of a table that has the names of values and no key.
func (r *reader) namesOnly(text string) bool {
	if all := nicPair.FindAllStringSubmatch(text, -1); all != nil && r.windows && !strings.Contains(text, "-Display") &&
		!takesBack.MatchString(text) {
		for _, m := range all {
			r.add(Windows, "adapter:*/"+m[1], m[2])
		}
		r.fromTable = true
		return true
	}
	if m := nicItem.FindStringSubmatch(text); m != nil && r.windows {
		r.add(Windows, "adapter:*/"+strings.TrimSpace(m[1]), m[2])
		return true
	}
	m := knownPair.FindStringSubmatch(text)
	if m == nil {
		m = oneOfTwo.FindStringSubmatch(text)
	}
	if m == nil || !r.writesKeys || len(m[1]) < 8 || !innerCapital.MatchString(m[1]) {
		return false
	}
	name := registryNamed(m[1])
	if name == "" {
		return false
	}
	r.add(Windows, name, number(m[2]))
	r.fromTable = true
	return true
}
