package advice

import (
	"cmp"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// The reader of literals is the last resort for texts about Windows: programs, installers and
// catalogues in any language. It knows no language. It knows strings, words, numbers, brackets,
// commas and the ends of lines, and takes a setting where a name of the registry and a number are
// arguments of one call, items of one tuple, or fields of one object.

var (
	// aboutRegistry is what each text has that sets a value of the registry.
	aboutRegistry = pattern.New(`(?i)\bhk(?:lm|cu|ey_)|currentcontrolset|regist?ry|regedit|winreg|regwrite|itemproperty|` +
		`reg add|reg_dword|systemprofile|netsh\s+int|netadapter|tcp_?ip\W{0,2}param|` +
		`energy.efficient ethernet|wake on magic packet|tcpackfrequency|networkthrottlingindex|tcptimedwaitdelay`)

	// takesBack names a call or a table that reads, deletes or restores: what is in it sets nothing.
	takesBack = pattern.New(`(?i)^(?:.*[._:>-])?(?:if|while|elif|try_?get|get|read|query|exist|has|del|rm\b|` +
		`remove|clear|unset|` +
		`check|test|is_|contains|backup|save|restor|revert|undo|assert|expect|log|print|echo|` +
		`format|mock|report|verify|` +
		`old|orig|previous|baseline)|default|restore|rollback|undo|revert|_back`)
	// backupThatSets is an object that keeps the old value and sets the new one.
	backupThatSets = pattern.New(`(?i)^_?\w*backup\w*\.(?:set|write)\w*$`)
	setsValue      = pattern.New(`(?i)set|write`)
	writesValue    = pattern.New(`(?i)set|write|add|dword|put|apply|reg`)

	typeOfValue = pattern.New(`(?i)(?:^|[._:])(?:reg_?|kind|type)?(?:dword|qword|u?int(?:32|64)?|` +
		`sz|string|binary|expandstring|multi_?sz)$`)
	castOfValue = pattern.New(`(?i)(?:^|[._:])(?:unchecked|object|byte|some|value|u?int(?:16|32|64|eger)?|` +
		`[ui](?:32|64)|dword|u?long|number)$`)
	mostOfDword = pattern.New(`(?i)^(?:u32::max|(?:uint|uint32)\.maxvalue|maxdword|dword_max|uint32_max)$`)
	literalText = pattern.New(`(?i)^(?:0x[0-9a-f]{1,8}|\d{1,10}|-1|[0-9a-f]{8}|dword:[0-9a-f]{1,8})$`)
	optionText  = pattern.New(`^[/-]\w+$`)

	fieldOfName  = pattern.New(`(?i)^(?:.*name|property|entry|setting|key|value)$`)
	fieldOfValue = pattern.New(`(?i)^(?:(?:dsc_)?value_?|v|new_?|target_?|desired_?|recommended_?|optimi[sz]ed_?|` +
		`appl(?:y|ied)_?|tweak(?:ed)?_?|` +
		`active_?|enabled?_?|on_?|set_?|wanted_?|gaming_?)?(?:value|data|val|dword)(?:data|_?on)?$|` +
		`^(?:desired|target|recommended|optimi[sz]ed|enabled?|apply|on|set_?to)$`)
	joinsKeys = pattern.New(`(?i)format|join|concat|open|create`)

	// ofProgram gives a variable of a program or an argument of a call its value. Names of the
	// registry have capitals inside.
	ofProgram = pattern.New(`^\w+\s*=\s*(?:\$|if\b|\[)|` +
		`^(?:[a-z][a-z0-9_]*|[A-Z][A-Z0-9_]*|\w+(?:\.[A-Z]\w*)+|Hive|Path|Entries|Values|` +
		`Name|Category|Description|Title|Label|Group|Type|Risk|Apply|Revert)\s*=[^=]|` +
		"^\\w+\\s*=\\s*[@rL]?[\"'`](?:HK|SYSTEM|SOFTWARE)")

	// keyInside is a key of the registry, with its hive or from its first part on.
	keyInside = pattern.New(`(?i)^(?:(?:registry::)?hk(?:lm|cu|u|cr|ey_\w+):?\\|(?:system|software)\\)`)
	// keyOfNetwork has values of the network alone, so that each name in it is one.
	keyOfNetwork = pattern.New(`(?i)\\services\\(?:tcpip6?|afd|dnscache|netbt|ndis|lanman\w+)\\|\\psched$|\\msmq\\|` +
		`\\multimedia\\systemprofile$|featurecontrol\\feature_maxconn`)
)

// bracket is an open pair of brackets, or the text around all of them.
type bracket struct {
	open   byte // 0 for the text
	head   string
	key    string // that it or its head names, the last one
	parts  []part
	now    part
	done   int // parts that have been looked through
	taken  map[string]bool
	undone bool // it or one around it takes back
	around bool // one around it does
}

// literal is a setting that was found.
type literal struct {
	name, key, value string // value is empty if it cannot be decided
	first, last      int    // lines
	line             int
}

// literals goes once through the lines of a text.
type literals struct {
	stack   []bracket
	found   []literal
	keys    map[string]string // variables that hold a key
	numbers map[string]string // variables that hold a number
	lastKey string
	keyLine int
}

const (
	deepestBracket = 64
	mostLexemes    = 40 // of a part; the rest of a longer one is not looked at
	mostAhead      = 8  // parts between a name and its number
	keyReaches     = 40 // lines behind a key that opened it
)

// literal adds what the reader of literals finds and no other form has read.
func (r *reader) literal(text string, lines []line) {
	if !r.windows {
		return
	}
	l := literals{stack: []bracket{{}}, keys: map[string]string{}, numbers: map[string]string{}}
	for _, one := range lines {
		// The key of a block over the keys below one is not the key of the block's commands.
		if !r.script.power.body[one.number] && !strings.Contains(strings.ToLower(one.text), "$_.pspath") {
			l.line(one)
		}
	}
	for len(l.stack) > 0 {
		l.close(0)
	}
	type place struct {
		line int
		name string
	}
	at := func(s string, line int) place {
		return place{line, strings.ToLower(s[strings.LastIndexAny(s, `\/`)+1:])}
	}
	before := map[place][]int{}
	for i, s := range r.advice.Settings {
		if p := at(s.Knob, s.Line); len(before[p]) < mostItems {
			before[p] = append(before[p], i)
		}
	}
	texts := map[int]string{}
	for _, one := range lines {
		texts[one.number] = one.text
	}
	read, missed := map[int]bool{}, map[int]string{}
	seen := map[literal]bool{}
	for _, f := range l.found {
		full := f.full()
		if full == "" || seen[f] {
			continue
		}
		seen[f] = true
		known := false
		for n := f.first; n <= f.last && n < f.first+mostLines; n++ {
			for _, i := range before[at(f.name, n)] {
				s := &r.advice.Settings[i]
				known = true
				// Its key was a guess.
				if f.key != "" && s.Value == f.value && s.Knob == registryNamed(f.name) && !r.keyed[s.Line] {
					s.Knob = full
				}
			}
			read[n] = read[n] || f.value != ""
		}
		switch {
		case known:
		case f.value == "":
			missed[f.line] = texts[f.line]
		default:
			r.line, r.shown = line{number: f.line}, shortened(texts[f.line])
			r.add(Windows, full, f.value)
			r.fromTable = true
		}
	}
	if r.fromTable {
		r.advice.Settings = slices.DeleteFunc(r.advice.Settings, func(s Setting) bool {
			return strings.HasPrefix(s.Knob, "registry:") && openName(s.Knob)
		})
	}
	kept := r.advice.Unread[:0]
	for _, s := range r.advice.Unread {
		if !read[s.Line] && (!ofProgram.MatchString(s.Text) || hidden.MatchString(s.Text)) {
			kept = append(kept, s)
		}
	}
	r.advice.Unread = kept
	for _, s := range r.advice.Unread {
		delete(missed, s.Line)
	}
	for n, t := range missed {
		if !read[n] {
			r.advice.Unread = append(r.advice.Unread, Setting{Line: n, Text: shortened(t)})
		}
	}
}

// full returns the setting under its whole name, or nothing if the name is none of the network.
func (f literal) full() string {
	if strings.HasPrefix(f.name, "*") {
		return "registry:" + nicClass + `\` + f.name
	}
	if f.key != "" {
		full := "registry:" + f.key + `\` + f.name
		if _, ok := factOf(Windows, full); ok || keyOfNetwork.MatchString(f.key) {
			return full
		}
		return ""
	}
	if len(f.name) < 7 || strings.ToLower(f.name[1:]) == f.name[1:] {
		return ""
	}
	return registryNamed(f.name)
}

// put adds a lexeme to the present part.
func (l *literals) put(x lexeme) {
	top := &l.stack[len(l.stack)-1]
	p := &top.now
	if len(p.lexemes) == 0 {
		p.line = x.line
	}
	// NAME = VALUE, "NAME": VALUE, 'NAME' => VALUE
	if n := len(p.lexemes); (x.kind == '=' || x.kind == ':') && p.label == "" && n > 0 && n <= 6 {
		if last := p.lexemes[n-1]; last.kind == 's' || last.kind == 'w' || last.kind == ':' {
			*p = part{label: last.text, line: last.line}
			return
		}
	}
	if (x.kind == '>' || x.kind == '=') && len(p.lexemes) == 0 && p.label != "" { // => and :=
		p.arrow = x.kind == '>'
		return
	}
	if key := x.asKey(); key != "" {
		if p.key == "" {
			p.key = key
		}
		l.lastKey, l.keyLine = key, x.line
	} else if x.kind == '+' && strings.HasSuffix(p.key, `\Interfaces`) { // and the name of one
		p.key += `\*`
	} else if x.kind == 'g' && p.key == "" {
		p.key = x.key
	} else if x.kind == 'w' {
		if n := len(p.lexemes); p.key == "" && (n == 0 || p.lexemes[n-1].kind != '-') { // no parameter
			p.key = l.keyOf(x.text)
		}
	}
	if len(p.lexemes) < mostLexemes {
		p.lexemes = append(p.lexemes, x)
	}
}

func (l *literals) open(c byte, at int) {
	top := &l.stack[len(l.stack)-1]
	if len(l.stack) > deepestBracket {
		l.put(lexeme{kind: c, line: at})
		return
	}
	head := top.now.label
	if n := len(top.now.lexemes); n > 0 && top.now.lexemes[n-1].kind == 'w' {
		head = top.now.lexemes[n-1].text
	}
	b := bracket{open: c, head: head, undone: top.undone, around: top.undone}
	if (top.head == "if" || top.head == "while") && setsValue.MatchString(head) { // and asks whether it worked
		b.undone = top.around
	}
	if b.key = keyOfText(head); b.key == "" {
		b.key = l.keyOf(head) // the variable of a method
	}
	label := top.now.label
	b.undone = b.undone || takesBack.MatchString(head) && c != '{' && !backupThatSets.MatchString(head) ||
		label != "" && takesBack.MatchString(label)
	l.stack = append(l.stack, b)
}

// close ends the innermost bracket that a sign closes. Any sign closes any bracket: texts are cut.
func (l *literals) close(c byte) {
	n := len(l.stack) - 1
	if n == 0 && c != 0 {
		return
	}
	l.endPart()
	top := &l.stack[n]
	l.endLine(top)
	l.endObject(top)
	x := lexeme{kind: 'g', casts: true, line: top.now.line}
	literals := 0
	for i, p := range top.parts {
		if i == 0 {
			x.line = p.line
		}
		if x.key == "" {
			x.key = p.key
		}
		numbers := map[string]string(nil)
		if len(p.lexemes) == 2 && p.lexemes[0].kind == '&' { // the address of a number
			numbers = l.numbers
		}
		if v := p.data(numbers); v != "" && p.label == "" {
			x.text = v
			literals++
		} else {
			x.casts = x.casts && len(p.lexemes) == 1 && p.lexemes[0].kind == 'w'
		}
	}
	if literals != 1 {
		x.text = ""
	}
	one := len(top.parts) == 1 && len(top.parts[0].lexemes) == 1 && top.parts[0].label == ""
	wrapped := one && top.parts[0].lexemes[0].kind == 's' && wrapsString.MatchString(top.head)
	converted := len(top.parts) == 2 && top.parts[1].data(nil) == "16" && toNumber.MatchString(top.head)
	first := lexeme{}
	if wrapped || converted {
		first = top.parts[0].lexemes[0]
	}
	l.stack = l.stack[:n]
	if n == 0 {
		return
	}
	// The text of QStringLiteral("NAME") or the number of Convert.ToInt32("ff", 16) is all of it.
	if p := &l.stack[n-1].now; (wrapped || converted) && len(p.lexemes) > 0 {
		p.lexemes = p.lexemes[:len(p.lexemes)-1]
		if x = first; converted && literalText.MatchString("0x"+first.text) {
			x = lexeme{kind: 'n', text: "0x" + first.text, line: first.line}
		}
	}
	l.put(x)
}

// endPart ends the present part, and keeps what a variable holds from here on.
func (l *literals) endPart() {
	top := &l.stack[len(l.stack)-1]
	p := top.now
	if len(p.lexemes) == 0 && p.label == "" {
		return
	}
	top.now = part{}
	if p.label != "" {
		joined := p.key != "" && slices.ContainsFunc(p.lexemes, func(x lexeme) bool {
			return x.asKey() == "" && (x.kind == '+' ||
				x.kind == 'w' && l.keyOf(x.text) == p.key && strings.Contains(x.text, ".") ||
				x.kind == 'w' && joinsKeys.MatchString(x.text) && !slices.ContainsFunc(p.lexemes, func(y lexeme) bool {
					return y.kind == 'g' && y.key == p.key && y.casts
				}) && strings.HasSuffix(p.key, "Interfaces") && l.keyLine < p.line-3)
		})
		switch v := p.data(nil); {
		case p.key != "" && joined:
			l.keys[p.label] = strings.TrimSuffix(p.key, `\*`) + `\*`
		case p.key != "":
			l.keys[p.label] = p.key
		case v != "":
			l.numbers[p.label] = v
		default:
			delete(l.keys, p.label)
			delete(l.numbers, p.label)
			// InterfacesPath + "\\" + guid
			if n := len(p.lexemes); n > 1 && p.lexemes[1].kind == '+' && oneInterface.MatchString(p.lexemes[0].text) {
				l.keys[p.label] = tcpipPath + `Interfaces\*`
			}
		}
		// key, err := open(path)
		if n := len(top.parts); p.label == "err" && n > 0 && len(top.parts[n-1].lexemes) == 1 && p.key != "" {
			l.keys[top.parts[n-1].lexemes[0].text] = p.key
		}
		// KEY\NAME = 1
		if key, name := keyAndName(p.label); top.open == 0 && name != "" && p.data(nil) != "" && !p.arrow {
			l.find(top, literal{name: name, key: key, value: p.data(nil), line: p.line}, p.line, p.line)
			return
		}
		// "NAME" = 1, in a table or alone
		if v := p.data(l.numbers); v != "" && !top.undone && nameOfValue.MatchString(p.label) &&
			(registryNamed(p.label) != "" || keyOfText(top.head) != "") {
			key := l.around()
			if key == "" && (top.open == '{' || p.arrow) {
				key = l.near(p.line, p.label)
			}
			if key != "" {
				l.find(top, literal{name: p.label, key: key, value: v, line: p.line}, p.line, p.line)
			}
		}
	}
	for i := 0; top.open == 0 && p.label != "" && i < len(top.parts); i++ {
		// The next item of a list, or the head of one.
		if strings.EqualFold(top.parts[i].label, p.label) || len(p.lexemes) == 0 {
			l.endObject(top)
			top.parts, top.done = nil, 0
		}
	}
	top.parts = append(top.parts, p)
	if p.key != "" && (top.open == '(' || top.open == '[' || top.open == '{' && p.label != "") {
		top.key = cmp.Or(l.keys[p.label], p.key)
	}
}

var nameOfValue = pattern.New(`^(?:\*?[A-Za-z][A-Za-z0-9_]{2,60}|(?i:do not use nla))$`)

// oneInterface is a variable of a program that holds the key above those of the interfaces.
var oneInterface = pattern.New(`(?i)interfaces(?:key|path)?$`)

// endLine looks through the parts of a call, a tuple or a line for names and what follows them.
func (l *literals) endLine(b *bracket) {
	parts := b.parts[min(b.done, len(b.parts)):]
	for i := range parts {
		if !b.undone {
			l.arguments(b, parts, i)
		}
	}
	if (b.open == 0 || b.open == '{') && len(b.parts) > 2*mostLines {
		b.parts = slices.Clone(b.parts[len(b.parts)-mostLines:])
	}
	b.done = len(b.parts)
}

// arguments takes the name in a part, and the number behind it.
func (l *literals) arguments(b *bracket, parts []part, at int) {
	p := parts[at]
	if p.label != "" && !strings.EqualFold(p.label, "name") {
		return
	}
	if len(p.lexemes) > 1 && p.lexemes[0].kind == 'w' && takesBack.MatchString(p.lexemes[0].text) {
		return
	}
	for i, x := range p.lexemes {
		name, key := x.text, ""
		switch {
		case x.kind != 's' && (x.kind != 'w' || p.key == "" && (at == 0 || parts[at-1].key == "")) ||
			len(x.text) > longestName:
			continue
		case x.asKey() != "": // a key with the name at its end
			if key, name = keyAndName(x.text); name == "" {
				continue
			}
		case !nameOfValue.MatchString(name) || !l.mayBe(name, parts, at, i):
			continue
		}
		value, decided, last := l.valueBehind(b, parts, at, i, key != "")
		if value == "" && (decided || !writesValue.MatchString(b.head) || b.open != '(') {
			continue
		}
		if key == "" {
			key = l.keyFor(parts, at, name)
		}
		l.find(b, literal{name: name, key: key, value: value, line: x.line}, p.line, max(last, x.line))
		if value != "" {
			return
		}
	}
}

// mayBe reports whether a word can be the name of a value: it is one of the names, or the string
// behind a key of the network.
func (l *literals) mayBe(name string, parts []part, at, i int) bool {
	if registryNamed(name) != "" || strings.HasPrefix(name, "*") {
		return true
	}
	p := parts[at]
	if p.lexemes[i].kind != 's' || typeOfValue.MatchString(name) {
		return false
	}
	return i == 0 && at > 0 && keyOfNetwork.MatchString(parts[at-1].key) || i > 0 && p.lexemes[i-1].asKey() != "" &&
		keyOfNetwork.MatchString(p.key)
}

// valueBehind returns the number that belongs to a name, and the line it stands on. decided says
// that nothing follows which could be one.
func (l *literals) valueBehind(b *bracket, parts []part, at, i int, whole bool) (value string, decided bool, last int) {
	rest := part{lexemes: parts[at].lexemes[i+1:]}
	for len(rest.lexemes) > 0 && rest.lexemes[0].kind == 'w' && typeOfValue.MatchString(rest.lexemes[0].text) {
		rest.lexemes = rest.lexemes[1:]
	}
	if v := rest.data(l.numbers); v != "" {
		return v, true, parts[at].line
	}
	if len(rest.lexemes) > 0 && !whole {
		return rest.parameter(), true, parts[at].line
	} else if len(rest.lexemes) > 0 {
		return "", true, 0
	}
	decided = true
	inGroup := whole || parts[at].key != "" || at > 0 && parts[at-1].key != ""
	for k := at + 1; k < len(parts) && k <= at+mostAhead; k++ {
		p := parts[k]
		if p.label != "" {
			if fieldOfValue.MatchString(p.label) {
				return p.data(l.numbers), true, p.line
			}
			continue
		}
		reserved := k+2 < len(parts) && parts[k+1].isType() &&
			(p.data(nil) == "0" || len(p.lexemes) == 1 && p.lexemes[0].kind == 'w')
		if v := p.data(l.numbers); v != "" && !reserved {
			return v, true, p.line
		}
		if p.isType() || reserved {
			continue
		}
		if len(p.lexemes) == 1 && p.lexemes[0].kind == 's' {
			text := p.lexemes[0].text
			if registryNamed(text) != "" {
				return "", true, 0
			}
			if optionText.MatchString(text) || inGroup {
				continue
			}
		}
		decided = false
	}
	if at == len(parts)-1 && at > 0 && len(parts[0].lexemes) == 2 &&
		strings.EqualFold(parts[0].lexemes[0].text, "RegWrite") {
		return part{lexemes: parts[0].lexemes[1:]}.data(nil), true, parts[0].line // AutoHotkey 2
	}
	if at == len(parts)-1 && at > 0 && strings.EqualFold(b.head, "RegWrite") {
		return parts[0].data(nil), true, parts[0].line
	}
	return "", decided, 0
}

// endObject reads the fields of an object: a name, a value, and perhaps a key.
func (l *literals) endObject(b *bracket) {
	var name, value, key string
	first, last, at := 0, 0, 0
	for _, p := range b.parts {
		if p.label == "" {
			continue
		}
		if first == 0 {
			first = p.line
		}
		last = p.line
		v := p.data(l.numbers)
		// registry_value { 'KEY\NAME':
		if k, n := keyAndName(p.label); n != "" {
			key, name, at = k, n, p.line
		}
		switch {
		case len(p.lexemes) == 0 && name == "" && registryNamed(p.label) != "": // registry::value { 'NAME':
			name, at = p.label, p.line
		case fieldOfValue.MatchString(p.label) && v != "" && value == "":
			value = v
		case p.key != "" && key == "":
			key = p.key
		case fieldOfName.MatchString(p.label) && len(p.lexemes) == 1 && nameOfValue.MatchString(p.lexemes[0].text) &&
			(name == "" || registryNamed(name) == ""):
			name, at = p.lexemes[0].text, p.line
		}
	}
	if name != "" && value != "" && !b.undone {
		key = cmp.Or(key, l.around(), l.near(at, name))
		if key != "" || registryNamed(name) != "" {
			l.find(b, literal{name: name, key: key, value: value, line: at}, first, last)
		}
	}
}

// find keeps a setting once for each pair of brackets.
func (l *literals) find(b *bracket, f literal, first, last int) {
	if f.value != "" {
		f.value = registryWord(f.value)
	}
	f.first, f.last = min(first, f.line), max(last, f.line)
	id := f.name + "=" + f.value
	if b.taken[id] && b.open != 0 && b.open != '{' {
		return
	}
	if b.taken == nil {
		b.taken = map[string]bool{}
	}
	b.taken[id] = true
	l.found = append(l.found, f)
}
