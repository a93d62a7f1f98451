package powershell

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// undoes names a block that takes back, looks or shows: what is in it is not what the text advises.
var undoes = pattern.New(`(?i)undo|revert|restore|rollback|check|detect|test|verify|backup|default`)

// expressionBegins are the bytes that begin an expression; anything else begins a command.
const expressionBegins = "$\"'(@[{-!0123456789"

// pipeline runs a pipeline, and returns its value and where it ends.
func (p *program) pipeline(at, to int) (value, int) {
	p.left -= stepBytes
	if at >= to || p.left < 0 {
		return value{}, to
	}
	if p.depth++; p.depth > deepest {
		p.depth--
		return value{}, p.lineEnd(at, to)
	}
	defer func() { p.depth-- }()
	start, line := at, at
	var v value
	var said []string
	known, wanted, argument, same := true, false, false, true
	var literals []int32
	for first := true; p.left > 0; first = false {
		c := p.text[at]
		if first && strings.IndexByte(expressionBegins, c) >= 0 && !(c == '-' && at+1 < to && isLetter(p.text[at+1])) {
			v, at = p.expression(at, to)
			for at = p.blank(at, to, false); at < to && p.text[at] == '{' && p.ends[at] > 0; { // "1" { … } of a switch
				p.perhaps(at+1, int(p.ends[at]))
				at = p.blank(int(p.ends[at])+1, to, false)
			}
		} else if w := strings.ToLower(p.wordAt(at, to)); first && (w == "if" || w == "switch") {
			v, at = spelled("$_"), p.branchesOf(at, to)
		} else {
			var one command
			one, at = p.command(at, to, v)
			v = one.value
			if one.text != "" {
				said = append(said, one.text)
				known, wanted, argument = known && one.known, wanted || one.wanted, argument || one.argument
				same = same && one.same
				literals = append(literals, one.literals...)
			}
		}
		next := p.blank(at, to, false)
		// A bar may begin the next line.
		if next < to && p.text[next] == '\n' {
			if bar := p.blank(next, to, true); bar < to && p.text[bar] == '|' {
				next = bar
			}
		}
		if next >= to || p.text[next] != '|' {
			break
		}
		for next < to && p.text[next] == '|' {
			next++
		}
		if at = p.blank(next, to, true); at >= to {
			break
		}
	}
	if wanted && !p.embedded {
		same = same && !strings.Contains(p.text[start:at], "\n")
		p.say(line, Command{Text: strings.Join(said, " | "), Known: known, As: same}, argument, literals)
	}
	if at <= start {
		at = start + 1
	}
	return v, at
}

// say adds a command to the result.
func (p *program) say(at int, c Command, argument bool, literals []int32) {
	if len(c.Text) > longestOut || p.left < 0 {
		return
	}
	as := c.As
	c.Line, c.As = p.lineAt(at), false
	if argument && p.call > 0 {
		c.Line = p.call
		if c.Known && p.running != nil {
			p.running.speaks = true
		}
	}
	p.left -= len(c.Text)
	if n, ok := p.seen[c]; ok {
		p.out.Commands[n].As = p.out.Commands[n].As && as
		return
	}
	p.seen[c] = len(p.out.Commands)
	for _, n := range literals {
		if c.Known && n > 0 {
			p.used[n] = true
		}
	}
	c.As = as
	p.out.Commands = append(p.out.Commands, c)
}

// expression reads an expression, with what commas and operators join.
func (p *program) expression(at, to int) (value, int) {
	return p.separated(at, to, p.sum, func(_, next int) bool { return next >= to })
}

// sum reads operands and the operators between them; * and / bind more than the others.
func (p *program) sum(at, to int) (value, int) {
	v, i := p.operand(at, to)
	for p.left > 0 {
		next := p.blank(i, to, false)
		operator := p.operatorAt(next, to)
		if operator == "" {
			break
		}
		right, end := value{}, 0
		behind := p.blank(next+len(operator), to, true)
		if behind >= to {
			break
		}
		if right, end = p.operand(behind, to); end <= behind {
			return v, next + len(operator)
		}
		for {
			high := p.blank(end, to, false)
			o := p.operatorAt(high, to)
			if operator == "*" || operator == "/" || o != "*" && o != "/" || p.left < 0 {
				break
			}
			var more value
			if more, end = p.operand(p.blank(high+1, to, true), to); end <= high {
				break
			}
			right = applied(o, right, more)
		}
		if operator == "-f" || operator == "-replace" { // all values of the list
			for comma := p.blank(end, to, false); comma < to && p.text[comma] == ','; comma = p.blank(end, to, false) {
				var more value
				if more, end = p.operand(p.blank(comma+1, to, true), to); end <= comma {
					break
				}
				if right.kind != list {
					right = listOf(right)
				}
				right = right.with(more)
			}
		}
		v, i = applied(strings.ToLower(operator), v, right), end
		p.pay(v)
		p.left -= stepBytes
	}
	return v, i
}

// operatorAt returns the operator at a place.
func (p *program) operatorAt(at, to int) string {
	if at >= to {
		return ""
	}
	switch c := p.text[at]; {
	case c == '+' || c == '*' || c == '/' || c == '%':
		return p.text[at : at+1]
	case c == '-' && at+1 < to && isLetter(p.text[at+1]):
		w := p.wordAt(at+1, to)
		switch strings.ToLower(w) {
		case "f", "join", "split", "replace", "bor", "band", "eq", "ne", "gt", "lt", "ge", "le", "like", "match", "and", "or",
			"contains", "in", "notin", "notlike", "notmatch", "is", "as", "isnot", "shl", "shr", "xor":
			return p.text[at : at+1+len(w)]
		}
	case c == '-' && at+1 < to && (p.text[at+1] == ' ' || p.text[at+1] == '$'):
		return "-"
	case strings.HasPrefix(p.text[at:to], ".."):
		return ".."
	}
	return ""
}

// operand reads one operand with its members and items.
func (p *program) operand(at, to int) (value, int) {
	p.left -= stepBytes
	if at >= to || p.left < 0 {
		return value{}, to
	}
	t := p.text
	v, i := value{}, at+1
	switch c := t[at]; {
	case c == '$' && at+1 < to && t[at+1] == '(' && p.ends[at+1] > 0:
		v, _ = p.pipeline(p.blank(at+2, to, true), int(p.ends[at+1]))
		i = int(p.ends[at+1]) + 1
		if v.kind == unknown {
			v.text = short(t[at:i])
		}
	case c == '$':
		v, i = p.variable(at, to)
	case (c == '"' || c == '\'') && p.ends[at] > 0:
		i = int(p.ends[at]) + 1
		v = p.quoted(t[at+1:i-1], c)
	case c == '@' && at+1 < to && (t[at+1] == '"' || t[at+1] == '\'') && p.ends[at] > 0:
		i = int(p.ends[at]) + 1
		if inner := strings.TrimRight(t[at+2:i-2], "\r\n"); len(inner) <= longestText {
			v = p.quoted(strings.TrimLeft(inner, " \t\r\n"), t[at+1])
		}
	case c == '@' && at+1 < to && (t[at+1] == '{' || t[at+1] == '(') && p.ends[at+1] > 0:
		i = int(p.ends[at+1]) + 1
		v = p.collection(at+1, int(p.ends[at+1]))
	case c == '(' && p.ends[at] > 0:
		i = int(p.ends[at]) + 1
		v, _ = p.pipeline(p.blank(at+1, to, true), int(p.ends[at]))
		if v.kind == unknown {
			v.text = short(t[at:i])
		}
	case c == '{' && p.ends[at] > 0:
		i = int(p.ends[at]) + 1
		if v = (value{kind: block, from: int32(at + 1), to: int32(i - 1)}); p.embedded {
			v = spelled("{…}") // its places are not those of the text
		}
	case c == '[' && p.ends[at] > 0: // a cast, or a member of a type
		i = int(p.ends[at]) + 1
		if next := p.blank(i, to, false); next < to && strings.IndexByte("$\"'(@[{0123456789", t[next]) >= 0 {
			return p.operand(next, to)
		}
		if v = spelled(short(t[at:i])); strings.HasPrefix(t[i:to], "::") {
			return p.static(i+2, to)
		}
	case c == '!' || c == '-' && at+1 < to && isLetter(t[at+1]): // -not, -join
		i = at + 1 + len(p.wordAt(at+1, to))
		if next := p.blank(i, to, false); next < to {
			_, i = p.operand(next, to)
		}
		v = spelled("$_")
	case c == '-' || c >= '0' && c <= '9':
		for i < to && (isName(t[i]) || t[i] == '.' && i+1 < to && t[i+1] >= '0' && t[i+1] <= '9') {
			i++
		}
		v = wordOf(t[at:i])
	default:
		w := p.wordAt(at, to)
		if w == "" {
			return value{}, at + 1
		}
		if lower := strings.ToLower(w); lower == "if" || lower == "switch" {
			return spelled("$_"), p.branchesOf(at, to)
		}
		return wordOf(w), at + len(w)
	}
	v.literal = max(v.literal, p.literal)
	return p.postfix(v, i, to)
}

// static reads a member of a type: [Convert]::ToUInt32("ffffffff", 16) is a number.
func (p *program) static(at, to int) (value, int) {
	w := p.wordAt(at, to)
	i := at + len(w)
	if i >= to || p.text[i] != '(' || p.ends[i] == 0 {
		return spelled("$_"), i
	}
	arguments, _ := p.expression(p.blank(i+1, to, true), int(p.ends[i]))
	i = int(p.ends[i]) + 1
	switch lower := strings.ToLower(w); {
	case strings.HasPrefix(lower, "toint"), strings.HasPrefix(lower, "touint"), lower == "parse":
	default:
		return spelled("$_"), i
	}
	if arguments.kind != list || len(arguments.items()) != 2 {
		return arguments, i
	}
	v, base := arguments.items()[0], arguments.items()[1]
	if v.kind == word && base.text == "16" && !strings.HasPrefix(strings.ToLower(v.text), "0x") {
		v.text = "0x" + v.text
	}
	return v, i
}

// short shortens the spelling of a value.
func short(t string) string {
	const most = 80
	if len(t) > most || strings.Contains(t, "\n") {
		return "$(…)"
	}
	return t
}

// branchesOf runs the branches of an if that is a value, and returns where they end.
func (p *program) branchesOf(at, to int) int {
	for {
		w := strings.ToLower(p.wordAt(at, to))
		end := p.branch(w, p.blank(at+len(w), to, false), to)
		next := p.blank(end, to, true)
		if w = strings.ToLower(p.wordAt(next, to)); w != "else" && w != "elseif" || next <= at {
			return end
		}
		at = next
	}
}

// variable reads a variable.
func (p *program) variable(at, to int) (value, int) {
	name, i := p.variableName(at, to)
	if name == "" {
		return wordOf("$"), at + 1
	}
	switch lower := strings.ToLower(name); lower {
	case "true", "false", "null":
		return wordOf("$" + lower), i
	default:
		if v, ok := p.vars[lower]; ok {
			return v, i
		}
	}
	return spelled(p.text[at:i]), i
}

// postfix reads the members, the items and the calls behind a value.
func (p *program) postfix(v value, i, to int) (value, int) {
	t := p.text
	for i < to && p.left > 0 {
		p.left -= stepBytes
		switch {
		case t[i] == '[' && p.ends[i] > 0:
			index, _ := p.expression(p.blank(i+1, to, true), int(p.ends[i]))
			v, i = v.at(index), int(p.ends[i])+1
		case t[i] == '.' && i+1 < to && isLetter(t[i+1]) || strings.HasPrefix(t[i:to], "::"):
			i += len(t[i:i+2]) - 1
			if t[i] == ':' {
				i++
			}
			name := p.wordAt(i, to)
			if at := strings.IndexByte(name, '-'); at >= 0 {
				name = name[:at]
			}
			if name == "" {
				return v, i
			}
			i += len(name)
			if i < to && t[i] == '(' && p.ends[i] > 0 {
				arguments, _ := p.expression(p.blank(i+1, to, true), int(p.ends[i]))
				all := []value{arguments}
				if arguments.kind == list {
					all = arguments.items()
				}
				i = int(p.ends[i]) + 1
				v = v.method(name, all)
			} else {
				v = v.member(name)
			}
			p.pay(v)
		default:
			return v, i
		}
	}
	return v, i
}

// quoted returns the value of a string.
func (p *program) quoted(t string, quote byte) value {
	p.left -= len(t)
	if quote == '\'' {
		return wordOf(strings.ReplaceAll(t, "''", "'"))
	}
	if !strings.ContainsAny(t, "$`") {
		return wordOf(strings.ReplaceAll(t, `""`, `"`))
	}
	var parts []value
	from := 0
	add := func(to int) {
		if to > from {
			parts = append(parts, wordOf(t[from:to]))
		}
	}
	inner := &program{text: t, vars: p.vars, embedded: true}
	for i := 0; i < len(t); i++ {
		switch {
		case t[i] == '`' && i+1 < len(t):
			add(i)
			i++
			from = i
			if t[i] == 'n' || t[i] == 'r' || t[i] == 't' {
				parts, from = append(parts, wordOf(" ")), i+1
			}
		case t[i] == '$' && i+1 < len(t) && t[i+1] == '(':
			end := substitutionEnd(t, i+1)
			if end == 0 {
				continue
			}
			add(i)
			parts = append(parts, p.substituted(t[i:end+1]))
			from, i = end+1, end
		case t[i] == '$' && i+1 < len(t) && (isName(t[i+1]) || t[i+1] == '{'):
			v, end := inner.variable(i, len(t))
			if end <= i {
				continue
			}
			add(i)
			parts = append(parts, v)
			from, i = end, end-1
		}
	}
	add(len(t))
	v := joined(parts)
	p.pay(v)
	return v
}

// substituted returns the value of $(…) within a string.
func (p *program) substituted(t string) value {
	if p.depth > deepest-4 || p.left < 0 {
		return spelled(t)
	}
	budget := min(p.left, longestInside*8)
	inner := &program{text: t[2 : len(t)-1], left: budget, vars: p.vars, depth: p.depth + 4, embedded: true}
	inner.scan()
	v, _ := inner.pipeline(inner.blank(0, len(inner.text), true), len(inner.text))
	p.left -= budget - max(0, inner.left)
	if v.kind == unknown {
		v.text = t
	}
	return v
}

// collection reads a table or a list; open is its bracket.
func (p *program) collection(open, end int) value {
	outermost := p.literal == 0 && !p.embedded
	if outermost {
		p.literals = append(p.literals, [2]int{open, end})
		p.literal = int32(len(p.literals))
	}
	v := value{kind: list, literal: p.literal}
	if p.text[open] == '{' {
		v = p.table(open+1, end)
	} else {
		for i := p.blank(open+1, end, true); i < end && p.left > 0; i = p.blank(i, end, true) {
			one, next := p.pipeline(i, end)
			if one.kind == list {
				v = v.with(one)
			} else if len(v.items()) < mostItems {
				v.add("", one)
			}
			for i = max(next, i+1); i < end && p.text[i] == ','; i++ {
			}
		}
	}
	if outermost {
		p.literal = 0
	}
	return v
}

// table reads the entries of a table. A block in it is code that something runs.
func (p *program) table(from, to int) value {
	v := value{kind: table, literal: p.literal}
	for i := p.blank(from, to, true); i < to && p.left > 0; i = p.blank(i, to, true) {
		p.left -= stepBytes
		var key value
		if c := p.text[i]; isName(c) {
			w := p.wordAt(i, to)
			key, i = wordOf(w), i+len(w)
		} else {
			key, i = p.operand(i, to)
		}
		if i = p.blank(i, to, false); i >= to || p.text[i] != '=' {
			i = max(i, from) + 1
			continue
		}
		name, known := key.plain()
		one, next := p.pipeline(p.blank(i+1, to, true), to)
		if one.kind == block && !undoes.MatchString(name) {
			p.perhaps(int(one.from), int(one.to))
		}
		if i = next; known && len(v.keys()) < mostItems {
			v.add(name, one)
		}
	}
	return v
}
