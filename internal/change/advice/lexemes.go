package advice

import (
	"strings"

	"github.com/linerate/linerate/internal/base/pattern"
)

// lexeme is a string, a word, a number, a sign, or a closed pair of brackets.
type lexeme struct {
	kind  byte   // s, w, n, the sign itself, or g
	text  string // of brackets: the one literal in them, if there is one alone
	key   string // of brackets: the first key in them
	line  int
	casts bool // of brackets: nothing in them but the literal and casts
}

// part is what stands between two commas or ends of lines.
type part struct {
	label   string // NAME = or NAME: before it
	arrow   bool   // NAME => before it
	lexemes []lexeme
	key     string // a key in it, or in the variable that it names
	line    int
}

// line takes the lexemes of a line, and ends the part that it is in where a line ends one.
func (l *literals) line(one line) {
	text := one.text
	if fieldOfPage.MatchString(text) {
		text = text[2:]
	}
	if commentOfAny.MatchString(text) && !globalCall.MatchString(text) {
		return
	}
	if text == "" && len(l.stack) == 1 {
		l.endObject(&l.stack[0])
		l.stack[0].parts, l.stack[0].done = nil, 0
	}
	text = undoes.ReplaceAllString(bullet.ReplaceAllString(text, ""), "")
	text = keyInBackquotes.ReplaceAllString(text, `"$1"`)
	if m := pathOfYAML.FindStringSubmatch(text); m != nil && len(l.stack) == 1 {
		text = m[1] + `: "` + m[2] + `"`
	}
	plain := strings.Contains(text, `:\`) && !strings.Contains(text, `\\`) // no sign takes the next one's meaning
	for at := 0; at < len(text); {
		c := text[at]
		n := 1
		switch {
		case c == ' ' || c == '\t':
		case c == '"' || c == '\'':
			raw := plain || at > 0 && (text[at-1] == '@' || text[at-1] == 'r' || text[at-1] == '$')
			inner, length := stringAt(text[at:], raw)
			if length == 0 {
				break // an apostrophe
			}
			n = length
			l.put(lexeme{kind: 's', text: strings.ReplaceAll(inner, `\\`, `\`), line: one.number})
		case c == '/' && strings.HasPrefix(text[at:], "//") && (at == 0 || text[at-1] != ':'):
			n = len(text)
		case c == '#' && (at == 0 || text[at-1] == ' '):
			n = len(text)
		case wordByte(c):
			for at+n < len(text) && (wordByte(text[at+n]) || strings.HasPrefix(text[at+n:], "::") ||
				text[at+n] == ':' && text[at+n-1] == ':' ||
				text[at+n] == ':' && strings.HasPrefix(text[at+n+1:], `\`)) {
				n++
			}
			if closed := strings.IndexByte(text[at+n:], '>'); closed > 0 && strings.HasSuffix(text[at:at+n], "_cast") {
				n += closed + 1 // reinterpret_cast<const BYTE*>
			} else {
				l.put(wordOrNumber(text[at:at+n], one.number))
			}
		case c == '(' || c == '[' || c == '{':
			l.open(c, one.number)
		case c == ')' || c == ']' || c == '}':
			l.close(c)
		case c == ',' || c == ';':
			l.endPart()
		case strings.HasPrefix(text[at+1:], "=") && (c == '=' || c == '!' || c == '<' || c == '>'):
			n = 2
			l.put(lexeme{kind: 'c', line: one.number}) // compares
		default:
			l.put(lexeme{kind: c, line: one.number})
		}
		at += n
	}
	if top := &l.stack[len(l.stack)-1]; top.open == 0 || top.open == '{' {
		l.endPart()
		l.endLine(top)
	}
}

var (
	// commentOfAny is a line that is a comment in some language.
	commentOfAny = pattern.New(`(?i)^(?:#|//|;|'[^']*$|--\s|\*|/\*|<!--|rem\s|::)`)
	// fieldOfPage is a part of a value of the registry, as an item of a page.
	fieldOfPage = pattern.New(`(?i)^\* (?:value |data )?(?:name|type|data):`)
	// globalCall is a function of C++ without a namespace.
	globalCall = pattern.New(`^::\w+\(`)
	// keyInBackquotes is a key as a raw string of Go.
	keyInBackquotes = pattern.New("(?i)`((?:hk\\w+:?|system|software)\\\\[^`\n]{1,300})`")
	pathOfYAML      = pattern.New(`(?i)^(\w+):\s+["']?((?:hk\w+:?\\|system\\|software\\)[^"',{}]*?)["']?$`)
)

func wordByte(c byte) bool {
	return alphanumeric(c) || c == '_' || c == '.' || c == '\\' || c == '$' || c == '%' || c == '*' || c >= 0x80
}

// stringAt returns the string that a text begins with, and its length with its quotes.
func stringAt(text string, raw bool) (inner string, length int) {
	const longest = 1000
	for i := 1; i < min(len(text), longest); i++ {
		if text[i] == '\\' && !raw {
			i++
		} else if text[i] == text[0] {
			return text[1:i], i + 1
		}
	}
	return "", 0
}

var numberWord = pattern.New(`(?i)^(0x[0-9a-f_]{1,12}?|\d[\d_]{0,12}?)(?:[ul]{0,3}|_?[ui](?:8|16|32|64))$`)

func wordOrNumber(word string, at int) lexeme {
	if m := numberWord.FindStringSubmatch(word); m != nil {
		return lexeme{kind: 'n', text: strings.ReplaceAll(m[1], "_", ""), line: at}
	}
	if mostOfDword.MatchString(word) {
		return lexeme{kind: 'n', text: "0xffffffff", line: at}
	}
	return lexeme{kind: 'w', text: word, line: at}
}

// asKey returns a string as a key of the registry, if it is one.
func (x lexeme) asKey() string {
	if x.kind != 's' && x.kind != 'w' {
		return ""
	}
	return keyOfText(x.text)
}

func keyOfText(text string) string {
	if len(text) > longestName || !keyInside.MatchString(text) {
		return ""
	}
	return registryPathOf(inMachine(text))
}

// keyAndName takes a key apart that has the name of a known value at its end.
func keyAndName(text string) (key, name string) {
	key = keyOfText(text)
	cut := strings.LastIndexByte(key, '\\')
	if _, ok := factOf(Windows, "registry:"+key); !ok || cut < 0 {
		return "", ""
	}
	return key[:cut], key[cut+1:]
}

// data returns the number that a part is, apart from casts.
func (p part) data(numbers map[string]string) string {
	value, negative := "", false
	if n := len(p.lexemes); n > 4 && p.lexemes[n-4].kind == '?' && p.lexemes[n-2].kind == ':' &&
		p.lexemes[n-3].kind == 'n' && p.lexemes[n-3].text == p.lexemes[n-1].text {
		return p.lexemes[n-1].text // either way
	}
	for i, x := range p.lexemes {
		switch x.kind {
		case 'n', 's':
			if value != "" || x.kind == 's' && !literalText.MatchString(x.text) {
				return ""
			}
			value = strings.TrimPrefix(strings.ToLower(x.text), "dword:")
			if value != strings.ToLower(x.text) {
				value = "0x" + value
			}
		case 'g':
			if x.text == "" && x.casts && value == "" {
				continue // (int)
			}
			if x.text == "" || value != "" || !x.casts || i > 0 && p.lexemes[i-1].kind == 'w' &&
				!castOfValue.MatchString(p.lexemes[i-1].text) {
				return ""
			}
			value = x.text
		case 'w':
			if v := numbers[x.text]; v != "" && value == "" {
				value = v
			} else if !castOfValue.MatchString(x.text) {
				return ""
			}
		case '-':
			if i+1 < len(p.lexemes) && p.lexemes[i+1].kind == 'w' { // a parameter
				return ""
			}
			negative = true
		case '&', '@', '*', '+':
			if x.kind == '+' || x.kind == '*' {
				return ""
			}
		default:
			return ""
		}
	}
	if negative && value != "" {
		return "-" + value
	}
	return value
}

// isType reports whether a part only says of which type the number is.
func (p part) isType() bool {
	return len(p.lexemes) > 0 && len(p.lexemes) < 4 && p.label == "" &&
		typeOfValue.MatchString(p.lexemes[len(p.lexemes)-1].text)
}

// parameter returns the number behind -Value, or behind /d.
func (p part) parameter() string {
	for i := 0; i+2 < len(p.lexemes); i++ {
		sign, word := p.lexemes[i].kind, strings.ToLower(p.lexemes[i+1].text)
		if (sign == '-' && (word == "value" || word == "data" || word == "dword") || sign == '/' && word == "d") &&
			p.lexemes[i+1].kind == 'w' {
			return part{lexemes: p.lexemes[i+2 : i+3]}.data(nil)
		}
	}
	return ""
}
