package advice

import (
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// Loops of configuration tools and of programs, whose items the text writes out: a task of Ansible,
// a block of Jinja, Ruby, Puppet, Python, JavaScript or Go. The lines of the loop become lines for
// each item. A loop whose items come from elsewhere stays as it is.

const (
	longestRepeat = 60      // lines of a loop
	mostRepeated  = 1 << 20 // bytes that the loops of a text may become
)

var (
	// taskItems is the key of a task with its items, on this line or on those below it.
	taskItems = pattern.New(`^(?:with_(?:items|list|flattened)|loop):\s*(\[.*\])?\s*(?:#.*)?$`)
	// usesItem is a place of a task that an item goes to.
	usesItem = pattern.New(`\{\{\s*item(?:\.(\w+)|\[["']?(\w+)["']?\])?\s*(?:\|[^{}]*)?\}\}`)
	// field is an entry of an item that is a mapping.
	field = pattern.New(`["']?(\w+)["']?\s*:\s*("[^"]*"|'[^']*'|[^,{}\[\]]+)`)

	// repeatHead begins a block for each item of a list: the variable, and the list.
	repeatHead = pattern.New(`^(?:` +
		`\{%-?\s*for\s+(\w+)\s+in\s+(\[[^\]]*\]|\([^)]*\)|\w+)\s*-?%\}` + // Jinja
		`|(%w[\[(][^\])]*[\])]|\[[^\]]*\]|\w+)\.each\s+(?:do|\{)\s*\|\s*(\w+)\s*\|` + // Ruby
		`|(\[[^\]]*\]|\$\w+)\.each\s*\|\s*(?:\w+\s+)?\$(\w+)\s*\|\s*\{` + // Puppet
		`|for\s+(\w+)\s+in\s+(\[[^\]]*\]|\([^)]*\)|\w+)\s*:` + // Python
		`|for\s*\((?:const|let|var)\s+(\w+)\s+of\s+(\[[^\]]*\]|\w+)\)\s*\{` + // JavaScript
		`|for\s+_,\s*(\w+)\s*:=\s*range\s+(?:\[\]string)?(\{[^}]*\}|\w+)\s*\{` + // Go
		`|foreach\s*\((?:var|string)\s+(\w+)\s+in\s+(?:new\s*(?:string)?\s*\[\]\s*)?(\{[^}]*\}|\w+)\))`) // C#

	// listVariable is a list that a loop further down goes over.
	listVariable = pattern.New(`^(?:(?:my|var|const|let|final|static|string\[\]|export|private|readonly)\s+)*` +
		`\$?(\w+)\s*:?=\s*` +
		`(?:\[\]string|new\s*(?:string)?\s*\[\]\s*)?(%w[\[(][^\])]*[\])]|[\[({][^\[\](){}:]*[\])}]);?$`)
	plainItem = pattern.New(`^[\w./:*-]+$`)
)

// repeatedLines writes such loops out.
func repeatedLines(text string, lines []line) []line {
	if !strings.Contains(text, "item") && !strings.Contains(text, "for") && !strings.Contains(text, "each") {
		return lines
	}
	x := repeats{lists: map[string][]string{}, tables: map[string][][2]string{}, left: mostRepeated}
	return x.expand(lines, 0)
}

type repeats struct {
	lists  map[string][]string
	tables map[string][][2]string
	left   int
}

func (x *repeats) expand(lines []line, depth int) []line {
	if depth > deepest {
		return lines
	}
	out := make([]line, 0, len(lines))
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		if m := listVariable.FindStringSubmatch(l.text); m != nil {
			x.lists[m[1]] = wordsOfList(m[2])
		}
		if name, entries := tableAt(lines, i); len(entries) > 0 {
			x.tables[name] = entries
		}
		if strings.HasPrefix(l.text, "- ") {
			if end, items, at := taskWithItems(lines, i); len(items) > 0 {
				out = append(out, x.task(slices.Concat(lines[i:at[0]], lines[at[1]:end]), items)...)
				i = end - 1
				continue
			}
		}
		name, list := repeatOf(l.text)
		key, value, table := pairsOf(l.text)
		entries := x.tables[table]
		if name == "" && len(entries) == 0 {
			out = append(out, l)
			continue
		}
		items := x.lists[strings.TrimPrefix(list, "$")]
		if items == nil {
			items = wordsOfList(list)
		}
		if len(entries) > 0 {
			items = make([]string, len(entries))
		}
		end := blockEnd(lines, i)
		if len(items) == 0 || len(items) > mostItems || end <= i+1 {
			out = append(out, l)
			continue
		}
		body := x.expand(lines[i+1:end], depth+1)
		for n, item := range items {
			for _, b := range body {
				if x.left -= len(b.text); x.left < 0 {
					return append(out, lines[i:]...)
				}
				if len(entries) > 0 {
					b.text = withPair(b.text, key, value, entries[n])
				} else {
					b.text = withItem(b.text, name, item)
				}
				out = append(out, b)
			}
		}
		i = end - 1 // its end is a line like any other
	}
	return out
}

// repeatOf returns the variable and the list of the head of a block.
func repeatOf(text string) (name, list string) {
	m := repeatHead.FindStringSubmatch(text)
	for i := 1; i < len(m); i += 2 {
		switch {
		case m[i] == "":
		case i == 3 || i == 5: // Ruby and Puppet, which name the list first
			return m[i+1], m[i]
		default:
			return m[i], m[i+1]
		}
	}
	return "", ""
}

// wordsOfList returns the items of a list of plain words, or nothing.
func wordsOfList(list string) []string {
	words := strings.HasPrefix(list, "%w")
	list = strings.TrimPrefix(list, "%w")
	if len(list) < 2 || !strings.ContainsAny(list[:1], "[({") {
		return nil
	}
	parts := strings.Split(list[1:len(list)-1], ",")
	if words {
		parts = strings.Fields(list[1 : len(list)-1])
	}
	var out []string
	for _, p := range parts {
		p = strings.Trim(strings.TrimSpace(p), `"'`)
		if p == "" && len(out) > 0 {
			continue // a comma at the end
		}
		if !plainItem.MatchString(p) || len(out) > mostItems {
			return nil
		}
		out = append(out, p)
	}
	return out
}

// blockEnd returns the line behind the last one of a block: the next that is not further in, or the
// end of a block of Jinja.
func blockEnd(lines []line, at int) int {
	jinja := strings.HasPrefix(lines[at].text, "{%")
	for i := at + 1; i < len(lines) && i < at+longestRepeat; i++ {
		l := lines[i]
		switch {
		case l.text == "":
		case jinja && strings.HasPrefix(strings.TrimLeft(l.text, "{%- "), "endfor"),
			!jinja && l.indent <= lines[at].indent && l.text != "{":
			return i
		}
	}
	if !jinja && len(lines) <= at+longestRepeat {
		return len(lines)
	}
	return 0
}

// withItem puts an item in the places of a variable: in the braces of a template, within a string,
// and as a word of a program.
func withItem(text, name, item string) string {
	if !strings.Contains(text, name) {
		return text
	}
	for _, form := range strings.Split("{{ N }}~{{N}}~${N}~#{N}~{N}~\" + N + \"~\"+N+\"~' + N + '~'+N+'", "~") {
		text = strings.ReplaceAll(text, strings.Replace(form, "N", name, 1), item)
	}
	var out strings.Builder
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote == 0 && (c == '"' || c == '\'' || c == '`'):
			quote = c
		case c == quote:
			quote = 0
		case quote == 0 && strings.HasPrefix(text[i:], name) && (i == 0 || notInName(rune(text[i-1])) && text[i-1] != '.') &&
			(i+len(name) == len(text) || notInName(rune(text[i+len(name)]))):
			if dollar := out.String(); strings.HasSuffix(dollar, "$") {
				out.Reset()
				out.WriteString(dollar[:len(dollar)-1])
			}
			out.WriteString(`"` + item + `"`)
			i += len(name) - 1
			continue
		}
		out.WriteByte(c)
	}
	return out.String()
}

// taskWithItems returns the end of the task that begins at a line, its items, and where the lines
// of its loop begin and end.
func taskWithItems(lines []line, at int) (end int, items []map[string]string, loop [2]int) {
	end, inner, uses := at+1, -1, usesItem.MatchString(lines[at].text)
	for ; end < len(lines) && end < at+longestRepeat; end++ {
		l := lines[end]
		if l.text == "" {
			continue
		}
		if l.indent <= lines[at].indent {
			break
		}
		uses = uses || usesItem.MatchString(l.text)
		if inner < 0 {
			inner = lines[at].indent + 2
		}
		m := taskItems.FindStringSubmatch(l.text)
		if m == nil || l.indent != inner || loop[0] > 0 {
			continue
		}
		loop = [2]int{end, end + 1}
		if m[1] != "" {
			for _, w := range wordsOfList(m[1]) {
				items = append(items, map[string]string{"": w})
			}
			continue
		}
		items, loop[1] = itemsBelow(lines, end)
		end = loop[1] - 1
	}
	if !uses || len(items) > mostItems {
		return end, nil, loop
	}
	return end, items, loop
}

// itemsBelow reads a list of YAML: words, mappings on one line, or mappings over lines.
func itemsBelow(lines []line, at int) (items []map[string]string, end int) {
	begin := -1
	for end = at + 1; end < len(lines) && end < at+longestRepeat; end++ {
		l := lines[end]
		text, isItem := strings.CutPrefix(l.text, "- ")
		switch {
		case l.text == "" || strings.HasPrefix(l.text, "#"):
			continue
		case l.indent < lines[at].indent, !isItem && l.indent <= lines[at].indent, isItem && begin >= 0 && l.indent < begin:
			return items, end
		case isItem:
			begin = l.indent
			items = append(items, map[string]string{})
		case len(items) == 0:
			return nil, end
		}
		text = strings.TrimSpace(text)
		item := items[len(items)-1]
		fields := field.FindAllStringSubmatch(text, -1)
		if isItem && (len(fields) == 0 || text[0] == '"' || text[0] == '\'') {
			item[""] = strings.Trim(text, `"'`)
			continue
		}
		for _, f := range fields {
			item[f[1]] = strings.Trim(strings.TrimSpace(f[2]), `"'`)
		}
	}
	return items, end
}

// task writes the lines of a task for each item. An item that has not what a line asks for leaves
// the line as it is.
func (x *repeats) task(lines []line, items []map[string]string) []line {
	var out []line
	for _, item := range items {
		for _, l := range lines {
			l.text = usesItem.ReplaceAllStringFunc(l.text, func(m string) string {
				parts := usesItem.FindStringSubmatch(m)
				if v, ok := item[parts[1]+parts[2]]; ok {
					return v
				}
				return m
			})
			if x.left -= len(l.text); x.left < 0 {
				return out
			}
			out = append(out, l)
		}
	}
	return out
}
