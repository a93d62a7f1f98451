package powershell

import (
	"slices"
	"strings"
)

// Command is a command of a script, with its words as they are when it runs.
type Command struct {
	Line  int    // its line; of a command that depends on the words of a call, that of the call
	Text  string // one line
	Known bool   // nothing is missing in what names the setting
	As    bool   // the text has it as it runs
}

// Script is what a text runs.
type Script struct {
	Commands []Command
	// Data are the lines of lists and tables, and of functions, that the commands are made of.
	Data map[int]bool
}

// program goes through a text.
type program struct {
	text  string
	lines []int   // where lines end
	ends  []int32 // where the string, bracket or comment ends that begins at a place
	left  int     // bytes that may still be gone through
	asked func(words []string) Need

	vars      map[string]value
	changes   []change
	functions map[string]*function
	depth     int
	calls     int // functions that run
	running   *function
	call      int   // line of the outermost call; 0 outside functions
	literal   int32 // number of the literal that is being read
	literals  [][2]int
	child     *value // what a block gives last
	out       Script
	seen      map[Command]int // its place in the commands
	used      map[int32]bool  // literals that commands are made of
	embedded  bool            // the text is a part of a string
}

// change is an assignment, with what it replaces.
type change struct {
	name string
	old  value
	had  bool
}

// function is a function of the text.
type function struct {
	parameters []parameter
	from, to   int
	called     bool
	running    bool
	speaks     bool // a command of it depends on the words of its call
}

type parameter struct {
	name     string
	standard value
	isSwitch bool
}

const (
	deepest     = 40      // blocks within each other
	deepestCall = 4       // functions that call functions
	atLeast     = 1 << 17 // bytes that may be gone through, whatever the length of the text
	stepBytes   = 16      // what the smallest step counts
	mostOutput  = 1 << 20 // bytes of commands
	longestOut  = 2048    // bytes of one command
)

// Need says whether a reader wants a command.
type Need uint8

// The needs.
const (
	Unwanted Need = iota
	Beside        // only before a wanted one in a pipeline
	Wanted
)

// Expand works out the commands of a text for which asked, given their words, says that they are
// wanted.
func Expand(text string, asked func(words []string) Need) Script {
	p := &program{text: text, left: atLeast + 3*len(text), asked: asked, vars: map[string]value{},
		functions: map[string]*function{}, seen: map[Command]int{}, used: map[int32]bool{}}
	p.out.Data = map[int]bool{}
	p.scan()
	p.findFunctions()
	p.run(0, len(text))
	for i := 0; i < len(text); i++ { // what nothing calls, in the order of the text
		if f := p.functions[p.headAt(i)]; f != nil && !f.called && f.from > i {
			p.invoke(f, nil)
		}
		if end := strings.IndexByte(text[i:], '\n'); end >= 0 {
			i += end
		} else {
			break
		}
	}
	for n, at := range p.literals {
		if p.used[int32(n+1)] {
			p.data(at[0], at[1])
		}
	}
	for _, f := range p.functions {
		if f.speaks {
			p.data(f.from, f.to)
		}
	}
	return p.out
}

// pay counts what a value takes.
//
//go:noinline
func (p *program) pay(v value) { p.left -= len(v.text) + stepBytes*len(v.items()) }

// data notes the lines of a part of the text.
func (p *program) data(from, to int) {
	for l := p.lineAt(from); l <= p.lineAt(to); l++ {
		p.out.Data[l] = true
	}
}

// headAt returns the name of the function whose head is the line that begins at a place.
func (p *program) headAt(at int) string {
	for at < len(p.text) && (p.text[at] == ' ' || p.text[at] == '\t') {
		at++
	}
	const most = 128
	rest := p.text[at:min(len(p.text), at+most)]
	if first, name, ok := strings.Cut(rest, " "); ok && (strings.EqualFold(first, "function") ||
		strings.EqualFold(first, "filter")) {
		name = strings.TrimSpace(name)
		if end := strings.IndexAny(name, " \t\r\n({"); end > 0 {
			name = name[:end]
		}
		_, local, scoped := strings.Cut(name, ":")
		if scoped {
			name = local
		}
		return strings.ToLower(name)
	}
	return ""
}

// findFunctions notes where the functions of the text are.
func (p *program) findFunctions() {
	for i := 0; i < len(p.text); i++ {
		if name := p.headAt(i); name != "" && p.functions[name] == nil {
			at := i + strings.IndexByte(p.text[i:], ' ')
			for at < len(p.text) && p.text[at] != '{' && p.text[at] != '(' && p.text[at] != '\n' {
				at++
			}
			f := &function{}
			if at < len(p.text) && p.text[at] == '(' && p.ends[at] > 0 {
				f.parameters = p.parametersIn(at+1, int(p.ends[at]))
				at = int(p.ends[at]) + 1
			}
			at = p.blank(at, len(p.text), true)
			if at < len(p.text) && p.text[at] == '{' && p.ends[at] > 0 {
				f.from, f.to = at+1, int(p.ends[at])
				p.paramBlock(f)
				p.functions[name] = f
			}
		}
		end := strings.IndexByte(p.text[i:], '\n')
		if end < 0 {
			break
		}
		i += end
	}
}

// paramBlock reads param(…) at the head of a function.
func (p *program) paramBlock(f *function) {
	at := p.blank(f.from, f.to, true)
	for at < f.to && p.text[at] == '[' && p.ends[at] > 0 { // [CmdletBinding()]
		at = p.blank(int(p.ends[at])+1, f.to, true)
	}
	if at+5 < f.to && strings.EqualFold(p.text[at:at+5], "param") {
		at = p.blank(at+5, f.to, true)
		if at < f.to && p.text[at] == '(' && p.ends[at] > 0 {
			f.parameters = p.parametersIn(at+1, int(p.ends[at]))
			f.from = int(p.ends[at]) + 1
		}
	}
}

// parametersIn reads a list of parameters.
func (p *program) parametersIn(from, to int) (all []parameter) {
	isSwitch := false
	for i := from; i < to; i++ {
		switch c := p.text[i]; {
		case c == '$' && len(all) < mostItems:
			end := i + 1
			for end < to && isName(p.text[end]) {
				end++
			}
			one := parameter{name: strings.ToLower(p.text[i+1 : end]), standard: spelled(p.text[i:end]), isSwitch: isSwitch}
			isSwitch = false
			if at := p.blank(end, to, true); at < to && p.text[at] == '=' {
				var v value
				if v, end = p.operand(p.blank(at+1, to, true), to); v.kind == word {
					one.standard = v
				}
			}
			all = append(all, one)
			i = end - 1
		case p.ends[i] > 0:
			isSwitch = isSwitch || strings.EqualFold(p.text[i:p.ends[i]+1], "[switch]")
			i = int(p.ends[i])
		}
	}
	return all
}

// blank returns where the next text begins: behind blanks, comments and, between lines, ends of
// lines.
func (p *program) blank(at, to int, lines bool) int {
	for at < to {
		switch c := p.text[at]; {
		case c == ' ' || c == '\t' || c == '\r':
			at++
		case c == '`' && at+1 < to && (p.text[at+1] == '\n' || p.text[at+1] == '\r'):
			at += 2
		case lines && (c == '\n' || c == ';'):
			at++
		case (c == '#' || c == '<') && p.ends[at] > 0:
			at = int(p.ends[at]) + 1
		default:
			return at
		}
	}
	return to
}

// run goes through the statements between two places.
func (p *program) run(from, to int) {
	if p.depth++; p.depth < deepest {
		for i := from; p.left > 0; {
			i = p.blank(i, to, true)
			if i >= to {
				break
			}
			next := max(i+1, p.statement(i, to))
			p.left -= max(stepBytes, min(next, to)-i)
			i = next
		}
	}
	p.depth--
}

// perhaps runs a block that may not run, or may run again: a variable that it gives another value
// has none that is known behind it.
func (p *program) perhaps(from, to int) {
	start := len(p.changes)
	p.run(from, to)
	first := map[string]bool{}
	for _, c := range p.changes[start:] {
		if first[c.name] {
			continue
		}
		first[c.name] = true
		if now := p.vars[c.name]; c.had && !(now.kind == word && c.old.kind == word && now.text == c.old.text) &&
			!(c.old.kind == now.kind && (now.kind == list || now.kind == table)) {
			p.vars[c.name] = spelled("$" + c.name)
		}
	}
}

// set gives a variable a value.
func (p *program) set(name string, v value) {
	name = strings.ToLower(name)
	old, had := p.vars[name]
	p.changes = append(p.changes, change{name, old, had})
	p.vars[name] = v
}

// wordAt returns the word of letters, digits and hyphens at a place.
func (p *program) wordAt(at, to int) string {
	end := at
	for end < to && (isName(p.text[end]) || p.text[end] == '-') && end-at < 64 {
		end++
	}
	return p.text[at:end]
}

// statement runs the statement at a place, and returns where it ends.
func (p *program) statement(at, to int) int {
	t := p.text
	switch c := t[at]; {
	case c == '{' && p.ends[at] > 0:
		p.run(at+1, int(p.ends[at]))
		return int(p.ends[at]) + 1
	case c == '}' || c == ')' || c == ']' || c == ',':
		return at + 1
	case c == '[':
		// A cast, an attribute or a call of .NET.
		if p.ends[at] == 0 {
			return at + 1
		}
		next := p.blank(int(p.ends[at])+1, to, false)
		if next < to && strings.IndexByte("$@({[", t[next]) >= 0 {
			return p.statement(next, to)
		}
		return p.lineEnd(at, to)
	}
	w := p.wordAt(at, to)
	behind := p.blank(at+len(w), to, false)
	switch lower := strings.ToLower(w); lower {
	case "function", "filter":
		for behind < to && t[behind] != '{' && t[behind] != '\n' {
			if t[behind] == '(' && p.ends[behind] > 0 {
				behind = int(p.ends[behind])
			}
			behind++
		}
		if behind = p.blank(behind, to, true); behind < to && t[behind] == '{' && p.ends[behind] > 0 {
			if p.functions[p.headAt(at)] == nil {
				p.run(behind+1, int(p.ends[behind]))
			}
			return int(p.ends[behind]) + 1
		}
		return behind
	case "param":
		if behind < to && t[behind] == '(' && p.ends[behind] > 0 {
			for _, one := range p.parametersIn(behind+1, int(p.ends[behind])) {
				p.set(one.name, one.standard)
			}
			return int(p.ends[behind]) + 1
		}
	case "foreach":
		if behind < to && t[behind] == '(' && p.ends[behind] > 0 {
			return p.foreach(behind, to)
		}
	case "if", "elseif", "else", "while", "until", "switch", "for", "do", "try", "catch", "finally", "trap",
		"begin", "process", "end", "default":
		return p.branch(lower, behind, to)
	case "return", "throw", "exit":
		if behind < to && t[behind] != '\n' && t[behind] != '}' {
			v, next := p.pipeline(behind, to)
			p.child = &v
			return next
		}
		return behind
	}
	if c := t[at]; c == '$' {
		if next, ok := p.assignment(at, to); ok {
			return next
		}
	}
	v, next := p.pipeline(at, to)
	p.child = &v
	return next
}

// lineEnd returns the end of a line.
func (p *program) lineEnd(at, to int) int {
	if end := strings.IndexByte(p.text[at:to], '\n'); end >= 0 {
		return at + end
	}
	return to
}

// branch runs a block behind a keyword, and its condition.
func (p *program) branch(keyword string, at, to int) int {
	t := p.text
	for at < to && t[at] == '-' { // switch -Regex
		at = p.blank(at+1+len(p.wordAt(at+1, to)), to, false)
	}
	if at < to && t[at] == '(' && p.ends[at] > 0 {
		if keyword != "for" {
			p.pipeline(at+1, int(p.ends[at]))
		} else {
			p.run(at+1, int(p.ends[at]))
		}
		at = int(p.ends[at]) + 1
	}
	for at < to && keyword == "catch" && t[at] == '[' && p.ends[at] > 0 {
		at = p.blank(int(p.ends[at])+1, to, false)
	}
	open := p.blank(at, to, true)
	if open >= to || t[open] != '{' || p.ends[open] == 0 {
		return at
	}
	from, end := open+1, int(p.ends[open])
	if keyword == "try" || keyword == "process" || keyword == "begin" || keyword == "end" || keyword == "finally" {
		p.run(from, end)
	} else {
		p.perhaps(from, end)
	}
	return end + 1
}

// foreach runs the block of a loop for its items.
func (p *program) foreach(at, to int) int {
	t, end := p.text, int(p.ends[at])
	open := p.blank(end+1, to, true)
	head := p.blank(at+1, end, true)
	name := ""
	if head < end && t[head] == '$' {
		name = p.wordAt(head+1, end)
		head = p.blank(head+1+len(name), end, true)
	}
	if !strings.EqualFold(p.wordAt(head, end), "in") || open >= to || t[open] != '{' || p.ends[open] == 0 {
		return end + 1
	}
	items, _ := p.pipeline(p.blank(head+2, end, true), end)
	p.each(name, items, open+1, int(p.ends[open]))
	return int(p.ends[open]) + 1
}

// each runs a block for the items of a value, or once for one that is not known.
func (p *program) each(name string, items value, from, to int) {
	all := slices.Clone(items.items())
	if items.kind != list {
		all = []value{items}
		if items.kind == unknown {
			all[0].text = "$" + name
		}
	}
	before, had := p.vars[strings.ToLower(name)]
	for _, one := range all {
		if p.left -= stepBytes; p.left < 0 {
			break
		}
		one.literal, one.argument = max(one.literal, items.literal), one.argument || items.argument
		p.set(name, one)
		if items.kind == list {
			p.run(from, to)
		} else {
			p.perhaps(from, to)
		}
	}
	if had && name == "_" {
		p.set(name, before)
	}
}

// assignment runs $name = value and $name += value.
func (p *program) assignment(at, to int) (next int, ok bool) {
	t := p.text
	name, i := p.variableName(at, to)
	if name == "" {
		return 0, false
	}
	// Members and items: $table.Key = value, $table[key] = value.
	var index *value
	if i < to && t[i] == '[' && p.ends[i] > 0 {
		v, _ := p.expression(p.blank(i+1, to, true), int(p.ends[i]))
		index, i = &v, int(p.ends[i])+1
	} else if i+1 < to && t[i] == '.' && isLetter(t[i+1]) {
		w := p.wordAt(i+1, to)
		v := wordOf(w)
		index, i = &v, i+1+len(w)
	}
	i = p.blank(i, to, false)
	add := i+1 < to && t[i] == '+' && t[i+1] == '='
	if add {
		i++
	}
	if i >= to || t[i] != '=' || i+1 < to && t[i+1] == '=' {
		return 0, false
	}
	v, next := p.pipeline(p.blank(i+1, to, true), to)
	old := p.vars[strings.ToLower(name)]
	switch {
	case index != nil && old.kind == table && index.kind == word && len(old.keys()) < mostItems && !add:
		old.own()
		old.add(index.text, v)
		v = old
	case index != nil:
		return next, true
	case add:
		v = applied("+", old, v)
		p.pay(v)
	}
	if v.kind == unknown {
		v.text = "$" + name
	}
	p.set(name, v)
	return next, true
}

// variableName returns the name of the variable at a place, without its scope.
func (p *program) variableName(at, to int) (name string, next int) {
	i := at + 1
	if i < to && p.text[i] == '{' {
		end := strings.IndexByte(p.text[i:min(to, i+longestInside)], '}')
		if end < 0 {
			return "", at
		}
		name, next = p.text[i+1:i+end], i+end+1
	} else {
		for next = i; next < to && (isName(p.text[next]) || p.text[next] == ':' && next+1 < to &&
			isName(p.text[next+1]) && next > i); next++ {
		}
		name = p.text[i:next]
		if name == "" && i < to && (p.text[i] == '?' || p.text[i] == '$') {
			return "?", i + 1
		}
	}
	if scope, local, ok := strings.Cut(name, ":"); ok && !strings.EqualFold(scope, "env") {
		name = local
	}
	if strings.EqualFold(name, "psitem") {
		name = "_"
	}
	return name, next
}

// invoke runs a function for the words of a call, or with nothing known.
func (p *program) invoke(f *function, arguments []value) value {
	f.called = true
	if f.running || p.depth > deepest-8 || p.calls >= deepestCall {
		return value{}
	}
	f.running = true
	p.calls++
	start := len(p.changes)
	given := p.bind(f, arguments)
	for n, one := range f.parameters {
		v, ok := given[n]
		if !ok {
			v = one.standard
		}
		v.argument = v.argument || ok
		p.set(one.name, v)
	}
	child, outer := p.child, p.running
	p.child, p.running = nil, f
	p.run(f.from, f.to)
	p.running = outer
	result := value{}
	if p.child != nil {
		result = *p.child
	}
	p.child = child
	for i := len(p.changes) - 1; i >= start; i-- {
		if c := p.changes[i]; c.had {
			p.vars[c.name] = c.old
		} else {
			delete(p.vars, c.name)
		}
	}
	p.changes = p.changes[:start]
	f.running = false
	p.calls--
	return result
}

// bind gives the words of a call to the parameters of a function.
func (p *program) bind(f *function, arguments []value) map[int]value {
	given := map[int]value{}
	named := func(w string) int {
		for n, one := range f.parameters {
			if len(w) > 1 && w[0] == '-' && strings.HasPrefix(one.name, strings.ToLower(w[1:])) {
				return n
			}
		}
		return -1
	}
	var loose []value
	for i := 0; i < len(arguments); i++ {
		a := arguments[i]
		if a.kind == unknown && strings.HasPrefix(a.text, "-") || a.kind == word && strings.HasPrefix(a.text, "-") {
			if n := named(a.text); n >= 0 && f.parameters[n].isSwitch {
				given[n] = wordOf("$true")
			} else if n >= 0 && i+1 < len(arguments) {
				given[n] = arguments[i+1]
				i++
			}
			continue
		}
		loose = append(loose, a)
	}
	for n := range f.parameters {
		if _, ok := given[n]; !ok && len(loose) > 0 && !f.parameters[n].isSwitch {
			given[n], loose = loose[0], loose[1:]
		}
	}
	return given
}
