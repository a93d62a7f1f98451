package powershell

import (
	"slices"
	"strings"
)

// command is what one command of a pipeline is and gives.
type command struct {
	value    value
	text     string // with its words as they are when it runs; empty if the reader does not want it
	wanted   bool
	known    bool
	argument bool
	same     bool
	literals []int32
}

// endsCommand reports whether a command ends at a place.
func (p *program) endsCommand(at, to int) bool {
	return at >= to || strings.IndexByte("\n;|})", p.text[at]) >= 0 || strings.HasPrefix(p.text[at:to], "&&")
}

// command runs a command for what comes through the pipeline.
func (p *program) command(at, to int, piped value) (command, int) {
	start := at
	var words []value
	if p.text[at] == '&' || p.text[at] == '.' && at+1 < to && (p.text[at+1] == ' ' || p.text[at+1] == '(') {
		at = p.blank(at+1, to, false)
	}
	for at = p.blank(at, to, false); !p.endsCommand(at, to) && p.left > 0; at = p.blank(at, to, false) {
		before := at
		var v value
		if v, at = p.argument(at, to); at <= before {
			at = before + 1
		}
		if len(words) < mostItems {
			words = append(words, v)
		}
	}
	if len(words) == 0 {
		return command{}, max(at, start+1)
	}
	name, _ := words[0].plain()
	lower := strings.ToLower(name)
	arguments := words[1:]
	if f := p.functions[lower]; f != nil {
		outer := p.call
		if p.call == 0 {
			p.call = p.lineAt(start)
		}
		v := p.invoke(f, arguments)
		p.call = outer
		// The helper may hand its words to .NET or to another module.
		one := p.spell(words, p.text[start:at])
		one.value = v
		if f.speaks {
			one.text, one.wanted = "", false
		}
		return one, at
	}
	switch lower {
	case "foreach-object", "foreach", "%":
		return command{value: p.forEach(arguments, piped)}, at
	case "where-object", "where", "?", "select-object", "select", "sort-object", "sort", "get-unique", "out-string":
		return command{value: piped}, at
	case "out-null", "write-host", "write-verbose", "write-warning", "write-error", "write-information", "out-host":
		return command{}, at
	case "write-output", "echo":
		if len(arguments) == 1 {
			return command{value: arguments[0]}, at
		}
	case "join-path":
		return command{value: joinPath(arguments)}, at
	case "get-childitem", "gci", "ls", "dir", "get-item", "gi", "resolve-path", "get-itemproperty", "gp":
		return command{value: children(lower, arguments)}, at
	}
	one := p.spell(words, p.text[start:at])
	one.value = selected(words)
	p.blocks(words)
	return one, at
}

// selected is what a command that selects properties of NICs by a name gives: they have that name.
func selected(words []value) value {
	v := value{}
	if !strings.EqualFold(words[0].text, "get-netadapteradvancedproperty") {
		return v
	}
	for i := 1; i+1 < len(words); i++ {
		switch strings.ToLower(words[i].text) {
		case "-displayname", "-registrykeyword":
			v.kind = table
			v.add("DisplayName", words[i+1])
			v.add("RegistryKeyword", words[i+1])
		}
	}
	return v
}

// blocks runs the blocks that a command is given, which it runs in its turn.
func (p *program) blocks(words []value) {
	parameter := ""
	for _, w := range words {
		if w.kind == word && strings.HasPrefix(w.text, "-") {
			parameter = w.text
		} else if w.kind == block {
			if !undoes.MatchString(parameter) {
				p.perhaps(int(w.from), int(w.to))
			}
			parameter = ""
		}
	}
}

// forEach runs the block of a pipeline for what comes through it.
func (p *program) forEach(arguments []value, piped value) value {
	result := value{}
	for _, a := range arguments {
		if a.kind == block {
			child := p.child
			p.child = nil
			p.each("_", piped, int(a.from), int(a.to))
			if p.child != nil && piped.kind != list {
				result = *p.child
			}
			p.child = child
		} else if a.kind == word && piped.kind != unknown && !strings.HasPrefix(a.text, "-") {
			return piped.member(a.text) // Get-ChildItem KEY | ForEach-Object PSPath
		}
	}
	return result
}

// joinPath returns what Join-Path gives.
func joinPath(arguments []value) value {
	var parts []value
	for _, a := range arguments {
		t, known := a.plain()
		if strings.HasPrefix(t, "-") {
			continue
		}
		if len(parts) > 0 {
			parts = append(parts, wordOf(`\`))
		}
		if known {
			a.kind, a.text = word, strings.Trim(t, `\`)
		}
		parts = append(parts, a)
	}
	return joined(parts)
}

// children returns what Get-ChildItem and Get-Item give for a key of the registry.
func children(name string, arguments []value) value {
	for _, a := range arguments {
		if t, known := a.plain(); known && isKey(t) {
			rest, star := strings.CutSuffix(strings.TrimRight(t, `\`), `\*`)
			if !star && name != "get-childitem" && name != "gci" && name != "ls" && name != "dir" {
				if strings.HasSuffix(name, "p") || strings.HasSuffix(name, "property") {
					return value{} // its values
				}
				a.kind, a.text = word, t
				return a
			}
			return value{kind: below, text: strings.TrimRight(rest, `\`), literal: a.literal, argument: a.argument}
		}
	}
	return value{}
}

// argument reads one word of a command, or a list of them.
func (p *program) argument(at, to int) (value, int) {
	return p.separated(at, to, p.oneWord, func(comma, next int) bool { // true: a comma of another language
		return p.endsCommand(next, to) || p.assigns(next, to) && p.lineAt(comma) != p.lineAt(next)
	})
}

// separated reads what one reads, and a list of it where commas follow. A comma at which the list
// stops is passed over.
func (p *program) separated(at, to int, one func(at, to int) (value, int), stops func(comma, next int) bool) (value,
	int) {
	v, i := one(at, to)
	next := p.blank(i, to, false)
	if next >= to || p.text[next] != ',' {
		return v, i
	}
	all := listOf(v)
	for next < to && p.text[next] == ',' && p.left > 0 {
		comma := next
		if next = p.blank(next+1, to, true); stops(comma, next) {
			return all, comma + 1
		}
		if v, i = one(next, to); i <= next {
			i = next + 1
		}
		if len(all.items()) < mostItems {
			all.add("", v)
		}
		next = p.blank(i, to, false)
	}
	return all, i
}

// assigns reports whether an assignment begins at a place.
func (p *program) assigns(at, to int) bool {
	if p.text[at] != '$' {
		return false
	}
	_, i := p.variableName(at, to)
	i = p.blank(i, to, false)
	return i+1 < to && p.text[i] == '=' && p.text[i+1] != '='
}

// oneWord reads what stands together.
func (p *program) oneWord(at, to int) (value, int) {
	t := p.text
	var parts []value
	from, i := at, at
	add := func() {
		if i > from {
			parts = append(parts, wordOf(t[from:i]))
		}
	}
	for i < to {
		c := t[i]
		switch {
		case strings.IndexByte(" \t\r\n;|})", c) >= 0 || c == ',' || c == '&' && i == at ||
			c == '{' && i > at && p.ends[i] > 0:
			add()
			if len(parts) == 1 {
				return parts[0], max(i, at+1)
			}
			return joined(parts), max(i, at+1)
		case c == '`' && i+1 < to:
			add()
			if from = i + 1; t[from] == '\n' || t[from] == '\r' {
				from = i
				if len(parts) == 1 {
					return parts[0], max(i, at+1)
				}
				return joined(parts), max(i, at+1)
			}
			i += 2
		case c == '$' && i+1 < to && (isName(t[i+1]) || strings.IndexByte("({_", t[i+1]) >= 0),
			(c == '"' || c == '\'') && p.ends[i] > 0,
			c == '(' && p.ends[i] > 0,
			i == at && (c == '@' || c == '{') && i+1 < to,
			i == at && c == '[' && p.ends[i] > 0:
			if i == at && c == '@' && isName(t[i+1]) { // splatted
				w := p.wordAt(i+1, to)
				if v, ok := p.vars[strings.ToLower(w)]; ok && (v.kind == table || v.kind == list) {
					v.text = "@"
					return v, i + 1 + len(w)
				}
				i += 1 + len(w)
				continue
			}
			add()
			var v value
			before := i
			if v, i = p.operand(i, to); i <= before {
				i = before + 1
			}
			if parts = append(parts, v); len(parts) == 1 && v.kind != word && v.kind != unknown && p.endsWord(i, to) {
				return v, i
			}
			from = i
		default:
			i++
		}
	}
	add()
	if len(parts) == 1 {
		return parts[0], i
	}
	return joined(parts), i
}

func (p *program) endsWord(at, to int) bool {
	return at >= to || strings.IndexByte(" \t\r\n;|}),", p.text[at]) >= 0
}

// spell writes a command with the values of its words, if the reader asks for it.
func (p *program) spell(words []value, source string) command {
	var texts []string
	c := command{known: true}
	named, place, size := "", 0, 0
	program := ""
	for n, w := range words {
		if len(texts) > 0 {
			program = texts[0]
		}
		if w.kind == block && (program == "" || strings.Contains(program, "-")) {
			continue
		} else if w.kind == block { // no block to a program of the system
			w.kind, w.text = unknown, short(p.text[w.from-1:min(int(w.to)+1, len(p.text))])
		}
		if w.kind == table && w.text == "@" {
			for i, k := range w.keys() {
				t, _ := w.items()[i].plain()
				if size += len(t); size > longestOut {
					return command{}
				}
				texts = append(texts, "-"+k, quotedWord(t))
			}
			c.literals = append(c.literals, w.literal)
			continue
		}
		// A program of the system gets each item of a list as a word.
		if w.kind == list && n > 0 && (w.text == "@" || !strings.Contains(program, "-")) {
			for _, item := range w.items() {
				t, _ := item.plain()
				if size += len(t); size > longestOut {
					return command{}
				}
				texts = append(texts, quotedWord(t))
			}
			c.literals, c.argument = append(c.literals, w.literal), c.argument || w.argument
			continue
		}
		t, known := w.plain()
		if w.kind == list && named == "-name" && strings.Contains(strings.ToLower(program), "-net") {
			t = "*" // several NICs
		} else if w.kind == list && w.text != "@" {
			t = listed(w)
		} else {
			t = quotedWord(t)
		}
		if n > 0 && strings.HasPrefix(t, "-") && w.kind == word {
			named = strings.ToLower(t)
		} else if n > 0 {
			if named == "" {
				place++
			}
			if !known && w.kind == unknown && p.names(program, named, place) {
				c.known = false
			}
			if w.kind != word && isKey(w.text) && w.kind != below {
				c.known = false
			}
			named = ""
		}
		c.argument = c.argument || w.argument
		c.literals = append(c.literals, w.literal)
		texts = append(texts, t)
	}
	if len(texts) == 0 || p.asked == nil {
		return command{argument: c.argument}
	}
	need := p.asked(texts)
	if need == Unwanted {
		return command{argument: c.argument}
	}
	p.left -= size
	c.text, c.wanted = strings.Join(texts, " "), need == Wanted
	c.same = strings.Join(strings.Fields(c.text), " ") == strings.Join(strings.Fields(source), " ") ||
		!slices.ContainsFunc(words, func(w value) bool { return w.literal > 0 || w.argument || w.kind == below }) &&
			!strings.ContainsAny(source, "$@")
	return c
}

// names reports whether a word says which setting a command is about.
func (p *program) names(command, parameter string, place int) bool {
	command = strings.ToLower(command)
	switch parameter {
	case "-path", "-literalpath", "-key", "-displayname", "-registrykeyword", "-property", "-valuename":
		return true
	case "-name", "-n":
		return !strings.Contains(command, "-net") && !strings.Contains(command, "-dns")
	case "":
		return place <= 2 && strings.Contains(command, "-") && !strings.Contains(command, "-net")
	}
	return false
}

// quotedWord puts a word with blanks into quotes.
func quotedWord(t string) string {
	if t != "" && !strings.ContainsAny(t, " \t\n,;|\\") || strings.HasPrefix(t, "$(") {
		return t
	}
	if strings.Contains(t, `"`) {
		return "'" + strings.ReplaceAll(t, "'", "") + "'"
	}
	return `"` + t + `"`
}

// listed writes a list as PowerShell does.
func listed(v value) string {
	var all []string
	for n, i := range v.items() {
		const most = 32
		if n == most {
			break
		}
		t, _ := i.plain()
		all = append(all, `"`+t+`"`)
	}
	return "@(" + strings.Join(all, ",") + ")"
}
