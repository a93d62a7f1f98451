package powershell

import (
	"slices"
	"strconv"
	"strings"
)

// kind says what a value is.
type kind uint8

const (
	unknown kind = iota // text is its spelling
	word                // a string or a number, as text
	list                // items
	table               // keys and items
	block               // the code between from and to
	below               // the keys below the key text, one of them
)

// value is what a variable or an expression holds.
type value struct {
	text     string
	parts    *parts
	from, to int32
	literal  int32 // number of the literal around it; 0 for none
	kind     kind
	argument bool // it comes from the words of a call
}

// parts are what a list or a table holds.
type parts struct {
	items []value
	keys  []string
}

//go:noinline
func (v *value) items() []value {
	if v.parts == nil {
		return nil
	}
	return v.parts.items
}

//go:noinline
func (v *value) keys() []string {
	if v.parts == nil {
		return nil
	}
	return v.parts.keys
}

// add puts an item, or an entry of a table, behind the others.
//
//go:noinline
func (v *value) add(key string, item value) {
	if v.parts == nil {
		v.parts = &parts{}
	}
	v.parts.items = append(v.parts.items, item)
	if v.kind == table {
		v.parts.keys = append(v.parts.keys, key)
	}
}

// own gives a value parts of its own, because the others may hold the same.
//
//go:noinline
func (v *value) own() {
	v.parts = &parts{slices.Clone(v.items()), slices.Clone(v.keys())}
}

const (
	longestText = 4096 // bytes of a string
	mostItems   = 256  // of a list or a table
)

//go:noinline
func spelled(text string) value { return value{text: text} }

//go:noinline
func wordOf(text string) value { return value{kind: word, text: text} }

// listOf returns a list of one item.
//
//go:noinline
func listOf(item value) value {
	return value{kind: list, parts: &parts{items: []value{item}}, literal: item.literal, argument: item.argument}
}

// isKey reports whether a text begins like a key of the registry.
func isKey(text string) bool {
	t := strings.TrimPrefix(strings.ToLower(strings.TrimPrefix(text, "Microsoft.PowerShell.Core\\")), "registry::")
	return strings.HasPrefix(t, "hk") && strings.Contains(t[:min(len(t), 22)], `\`)
}

// plain returns a value as a part of a string.
func (v value) plain() (text string, known bool) {
	switch v.kind {
	case word:
		return v.text, true
	case below:
		return v.text + `\*`, true
	case list:
		var b strings.Builder
		for n, i := range v.items() {
			if i.kind != word || b.Len() > longestText {
				return v.spelling(), false
			}
			if n > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(i.text)
		}
		return b.String(), true
	}
	return v.spelling(), false
}

// spelling is how a value that is not known is shown.
//
//go:noinline
func (v value) spelling() string {
	if v.text == "" {
		return "$_"
	}
	return v.text
}

// joined puts values side by side. Behind the beginning of a key a star stands for what is not
// known; elsewhere the whole is not known.
func joined(parts []value) value {
	var b strings.Builder
	out := value{kind: word}
	for _, p := range parts {
		out.argument = out.argument || p.argument
		out.literal = max(out.literal, p.literal)
		t, known := p.plain()
		if !known && isKey(b.String()) {
			t, known = "*", true
		}
		if !known {
			out.kind = unknown
		}
		b.WriteString(t)
		if b.Len() > longestText {
			return spelled("$_")
		}
	}
	out.text = b.String()
	return out
}

// member returns a member of a value: the entry of a table, the path of a key.
func (v value) member(name string) value {
	of := func(m value) value {
		m.argument, m.literal = m.argument || v.argument, max(m.literal, v.literal)
		return m
	}
	switch v.kind {
	case table:
		for i := len(v.keys()) - 1; i >= 0; i-- {
			if strings.EqualFold(v.keys()[i], name) {
				return of(v.items()[i])
			}
		}
		switch strings.ToLower(name) {
		case "keys":
			keys := value{kind: list}
			for _, k := range v.keys() {
				keys.add("", of(wordOf(k)))
			}
			return of(keys)
		case "values":
			return of(value{kind: list, parts: v.parts})
		case "psobject":
			return v
		case "properties":
			return v.pairs()
		}
	case below:
		switch strings.ToLower(name) {
		case "pspath", "name":
			return of(wordOf(v.text + `\*`))
		case "pschildname":
			return of(wordOf("*"))
		}
	case list:
		out := value{kind: list}
		for _, i := range v.items() {
			m := value{}
			if i.kind == table || i.kind == below {
				m = i.member(name)
			}
			if m.kind == unknown {
				return of(spelled(v.spelling() + "." + name))
			}
			out.add("", m)
		}
		if len(out.items()) > 0 {
			return of(out)
		}
	}
	return of(spelled(v.spelling() + "." + name))
}

// pairs returns the entries of a table, each with its key and its value.
func (v value) pairs() value {
	if v.kind != table {
		return spelled(v.spelling())
	}
	out := value{kind: list, literal: v.literal, argument: v.argument}
	for i, k := range v.keys() {
		key := wordOf(k)
		key.literal, key.argument = v.literal, v.argument
		pair := value{kind: table, literal: v.literal, argument: v.argument}
		pair.add("Key", key)
		pair.add("Name", key)
		pair.add("Value", v.items()[i])
		out.add("", pair)
	}
	return out
}

// at returns the item of a list or the entry of a table.
func (v value) at(index value) value {
	if index.kind == list && v.kind == list { // a part of the list
		out := value{kind: list, literal: v.literal, argument: v.argument}
		for _, n := range index.items() {
			if n.kind == word {
				out.add("", v.at(n))
			}
		}
		return out
	}
	t, known := index.plain()
	if !known {
		return spelled(v.spelling() + "[" + t + "]")
	}
	switch v.kind {
	case table:
		return v.member(t)
	case list:
		if n, err := strconv.Atoi(t); err == nil && n < len(v.items()) && n >= -len(v.items()) {
			return v.items()[(n+len(v.items()))%len(v.items())]
		}
	}
	return spelled(v.spelling() + "[" + t + "]")
}

// method returns what a method gives for its arguments.
func (v value) method(name string, arguments []value) value {
	first := ""
	if len(arguments) > 0 {
		first, _ = arguments[0].plain()
	}
	name = strings.ToLower(name)
	switch name {
	case "getenumerator":
		if v.kind == table {
			return v.pairs()
		}
		return v
	case "tostring", "tolower", "toupper", "normalize":
		return v
	}
	if v.kind != word {
		return spelled(v.spelling() + "." + name + "()")
	}
	switch {
	case name == "trim" && first == "":
		v.text = strings.TrimSpace(v.text)
	case name == "trim":
		v.text = strings.Trim(v.text, first)
	case name == "trimend":
		v.text = strings.TrimRight(v.text, first)
	case name == "trimstart":
		v.text = strings.TrimLeft(v.text, first)
	case name == "replace" && len(arguments) == 2:
		to, _ := arguments[1].plain()
		if first == "" || len(v.text)*(len(to)+1) > longestText {
			return spelled("$_")
		}
		v.text = strings.ReplaceAll(v.text, first, to)
	case name == "split" && first != "":
		return v.split(first)
	default:
		return spelled("$_." + name + "()")
	}
	return v
}

// split returns the parts of a string.
func (v value) split(by string) value {
	t, known := v.plain()
	if !known || by == "" || strings.Count(t, by) >= mostItems {
		return spelled("$_")
	}
	out := value{kind: list, literal: v.literal, argument: v.argument}
	for _, p := range strings.Split(t, by) {
		out.add("", value{kind: word, text: p, literal: v.literal, argument: v.argument})
	}
	return out
}

// number returns the number that a value is.
func (v value) number() (int64, bool) {
	if v.kind != word {
		return 0, false
	}
	t, unit := strings.ToLower(v.text), int64(1)
	for i, u := range []string{"kb", "mb", "gb"} {
		if rest, ok := strings.CutSuffix(t, u); ok {
			t, unit = rest, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(t, 0, 64)
	return n * unit, err == nil && n < 1<<40 && n > -1<<40
}

// applied returns the value of two operands.
func applied(operator string, a, b value) value {
	out := joined([]value{a, b})
	x, isX := a.number()
	y, isY := b.number()
	result := func(n int64) value {
		out.kind, out.text = word, strconv.FormatInt(n, 10)
		return out
	}
	switch operator {
	case "+":
		switch {
		case a.kind == list || b.kind == list && a.kind == unknown && a.text == "":
			return a.with(b)
		case isX && isY:
			return result(x + y)
		case a.kind == table && b.kind == table && len(a.keys())+len(b.keys()) <= mostItems:
			a.own()
			for i, k := range b.keys() {
				a.add(k, b.items()[i])
			}
			return a
		}
		return out
	case "-":
		if isX && isY {
			return result(x - y)
		}
	case "*":
		if isX && isY {
			return result(x * y)
		}
	case "/":
		if isX && isY && y != 0 && x%y == 0 {
			return result(x / y)
		}
	case "..":
		if isX && isY && y >= x && y-x < mostItems {
			out.kind = list
			for ; x <= y; x++ {
				out.add("", wordOf(strconv.FormatInt(x, 10)))
			}
			return out
		}
	case "-f":
		return formatted(a, b)
	case "-split":
		by, _ := b.plain()
		return a.split(strings.TrimPrefix(by, `\`))
	case "-join":
		by, known := b.plain()
		if a.kind == list && known {
			var parts []value
			for i, item := range a.items() {
				if i > 0 {
					parts = append(parts, wordOf(by))
				}
				parts = append(parts, item)
			}
			return joined(parts)
		}
	case "-bor":
		if isX && isY {
			return result(x | y)
		}
	}
	out.kind, out.text = unknown, "$_"
	return out
}

// with returns a list with another value, or its items, behind it.
func (v value) with(more value) value {
	items := []value{more}
	if more.kind == list {
		items = more.items()
	}
	if v.kind != list || len(v.items())+len(items) > mostItems {
		return spelled("$_")
	}
	v.own()
	v.parts.items = append(v.parts.items, items...)
	v.literal, v.argument = max(v.literal, more.literal), v.argument || more.argument
	return v
}

// formatted puts values into the places of a format: "{0}\{1}" -f $a, $b.
func formatted(format, values value) value {
	all := []value{values}
	if values.kind == list {
		all = values.items()
	}
	var parts []value
	t, known := format.plain()
	for known && t != "" {
		before, rest, ok := strings.Cut(t, "{")
		if parts = append(parts, wordOf(before)); !ok {
			break
		}
		index, after, ok := strings.Cut(rest, "}")
		n, err := strconv.Atoi(index)
		if !ok || err != nil || n < 0 || n >= len(all) {
			return spelled("$_")
		}
		parts, t = append(parts, all[n]), after
	}
	if !known {
		return spelled("$_")
	}
	return joined(parts)
}
