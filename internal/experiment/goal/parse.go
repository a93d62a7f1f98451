package goal

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is a problem in an objective, with its place.
type Error struct {
	Text    string // the objective as typed
	At, Len int    // bytes of Text that are wrong
	Problem string // a clause
	Advice  string // what to do next; may be empty
}

// Error returns one sentence with the place, counted in characters from 1.
func (e *Error) Error() string {
	column := utf8.RuneCountInString(e.Text[:e.At]) + 1
	if e.Len == 0 {
		return fmt.Sprintf("objective %q: at character %d: %s", e.Text, column, e.Problem)
	}
	return fmt.Sprintf("objective %q: at character %d, %q: %s", e.Text, column, e.Text[e.At:e.At+e.Len], e.Problem)
}

// Hint returns what to do next.
func (e *Error) Hint() string { return e.Advice }

// example is an objective that shows the whole grammar.
const example = "throughput where p99_rtt<5ms and cpu<80%"

// maxText bounds an objective in bytes: one with every term twice has half of that.
const maxText = 1000

// token is a word, an operator or a value, with its place.
type token struct {
	text string
	at   int
}

// parser reads the text once.
type parser struct {
	text string
	at   int
}

// Parse parses an objective such as "throughput where p99_rtt<5ms and cpu<80%", in any letter case.
// The error is an *Error: for syntax, unknown words, and contradictions.
func Parse(text string) (Objective, error) {
	if len(text) > maxText || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return Objective{}, &Error{Text: "…",
			Problem: fmt.Sprintf("longer than %d bytes, or not plain text on one line", maxText),
			Advice:  "like " + quoted(example)}
	}
	p := &parser{text: text}
	o, err := p.objective()
	if err != nil {
		return Objective{}, err
	}
	if err := p.contradictions(o); err != nil {
		return Objective{}, err
	}
	return o, nil
}

func quoted(s string) string { return "'" + s + "'" }

func (p *parser) fail(t token, advice, format string, args ...any) error {
	return &Error{Text: p.text, At: t.at, Len: len(t.text), Problem: fmt.Sprintf(format, args...), Advice: advice}
}

func (p *parser) objective() (Objective, error) {
	word := p.word()
	if word.text == "" {
		return Objective{}, p.fail(p.rest(), "one of "+goalList()+"; like "+quoted(example), "no goal")
	}
	g, ok := goalOf(word.text)
	if !ok {
		advice := "the goals are " + goalList()
		if near := nearest(strings.ToLower(word.text), goalNames()); near != "" {
			advice = "did you mean " + near + "?"
		}
		return Objective{}, p.fail(word, advice, "not a goal")
	}
	o := Objective{Goal: g}
	joint := p.word()
	switch strings.ToLower(joint.text) {
	case "":
		if end := p.rest(); end.text != "" {
			return o, p.second(end)
		}
		return o, nil
	case "where", "with":
	default:
		return o, p.second(joint)
	}
	for {
		b, err := p.bound()
		if err != nil {
			return o, err
		}
		o.Bounds = append(o.Bounds, b)
		if p.end() {
			return o, nil
		}
		// A value ends where the next "and" begins, so the next word is "and".
		p.word()
	}
}

// second returns the error for text after the goal: most often another goal.
func (p *parser) second(t token) error {
	for _, w := range strings.FieldsFunc(p.text[t.at:],
		func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == '+' }) {
		if _, also := goalOf(w); also {
			at := t.at + strings.Index(p.text[t.at:], w)
			return p.fail(token{w, at}, "bound the other one instead, like "+quoted("throughput where p99_rtt<5ms"),
				"a second goal: a run improves one thing")
		}
	}
	return p.fail(t, "like "+quoted(example), "want \"where\" and a bound, or nothing")
}

func (p *parser) bound() (Bound, error) {
	name := p.word()
	if name.text == "" {
		return Bound{}, p.fail(p.rest(), "like "+quoted(example), "no bound")
	}
	b := Bound{Term: strings.ToLower(name.text), At: name.at}
	t, ok := terms[b.Term]
	if !ok {
		advice := "the terms are " + strings.Join(termOrder[:], ", ")
		if near := nearest(b.Term, termOrder[:]); near != "" {
			advice = "did you mean " + near + "?"
		}
		return b, p.fail(name, advice, "not a quantity that can be bounded")
	}
	if b.Op = p.op(); b.Op == "" {
		return b, p.fail(p.rest(), "like "+quoted(b.Term+string(t.good())+t.written.example),
			"want <, <=, > or >= behind %s", b.Term)
	}
	value := p.value()
	b.Text = value.text
	if value.text == "" {
		return b, p.fail(value, "like "+quoted(b.Term+string(b.Op)+t.written.example), "no value for %s", b.Term)
	}
	v, err := t.written.parse(value.text)
	if err != nil {
		return b, p.fail(value, "write it like "+t.written.example, "not a value of %s", b.Term)
	}
	b.Value = v
	return b, p.sensible(b, t, value)
}

// good returns the comparison that a bound on the term has.
func (t term) good() Op {
	if t.more {
		return More
	}
	return Less
}

// sensible rejects values that no measurement can have.
func (p *parser) sensible(b Bound, t term, value token) error {
	switch {
	case math.IsNaN(b.Value) || math.IsInf(b.Value, 0) || b.Value < 0:
		return p.fail(value, "", "%s is never negative", b.Term)
	case b.Value == 0 && b.Op == AtMost && t.none:
		return nil
	case b.Value == 0 && b.Op == Less && t.none:
		return p.fail(value, "like "+b.Term+string(AtMost)+b.Text, "%s is never below zero", b.Term)
	case b.Value == 0 && b.Op.upper():
		return p.fail(value, "", "%s is always more than zero", b.Term)
	case b.Value == 0:
		return p.fail(value, "", "%s is never below zero, so this bound has no effect", b.Term)
	case t.written.example == ratio.example && b.Value > 1:
		return p.fail(value, "", "%s is never above 100 %%", b.Term)
	}
	return nil
}

// contradictions rejects bounds that no result can meet on any path.
func (p *parser) contradictions(o Objective) error {
	for i, b := range o.Bounds {
		for _, c := range o.Bounds[:i] {
			low, high := b, c
			if low.Op.upper() {
				low, high = c, b
			}
			if b.Term == c.Term && low.Op.upper() != high.Op.upper() && low.Value >= high.Value {
				return p.fail(p.whole(b), "give one of them", "contradicts %s: no value is both", c)
			}
		}
	}
	for _, b := range o.Bounds {
		t := terms[b.Term]
		switch {
		case b.Op.upper() != t.more:
		case t.goal == o.Goal:
			return p.fail(p.whole(b), "leave it out",
				"contradicts the goal: it forbids a better %s", o.Goal)
		default:
			return p.fail(p.whole(b), fmt.Sprintf("like %s%s%s", b.Term, t.good(), b.Text),
				"asks for a worse %s", b.Term)
		}
	}
	return nil
}

// whole returns the place of a bound.
func (p *parser) whole(b Bound) token {
	end := b.At + len(b.Term)
	end += strings.Index(p.text[end:], b.Text) + len(b.Text)
	return token{p.text[b.At:end], b.At}
}

func (p *parser) space() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
}

// word reads letters, digits and underscores; the token is empty if there are none.
func (p *parser) word() token {
	p.space()
	from := p.at
	for p.at < len(p.text) && wordByte(p.text[p.at]) {
		p.at++
	}
	return token{p.text[from:p.at], from}
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// operators are ordered longest first; users paste the mathematical ones.
var operators = [...]struct {
	text string
	op   Op
}{{"<=", AtMost}, {">=", AtLeast}, {"≤", AtMost}, {"≥", AtLeast}, {"<", Less}, {">", More}}

// op reads a comparison; the result is empty if there is none.
func (p *parser) op() Op {
	p.space()
	for _, o := range operators {
		if strings.HasPrefix(p.text[p.at:], o.text) {
			p.at += len(o.text)
			return o.op
		}
	}
	return ""
}

// value reads everything up to the next separate "and", or to the end.
func (p *parser) value() token {
	p.space()
	from := p.at
	for p.at < len(p.text) {
		if rest := p.text[p.at:]; p.at > from && (rest[0] == ' ' || rest[0] == '\t') {
			if word := (&parser{text: p.text, at: p.at}).word(); strings.EqualFold(word.text, "and") {
				break
			}
		}
		p.at++
	}
	return token{strings.TrimRight(p.text[from:p.at], " \t"), from}
}

// rest returns the remaining text.
func (p *parser) rest() token {
	p.space()
	return token{strings.TrimRight(p.text[p.at:], " \t"), p.at}
}

func (p *parser) end() bool { return p.rest().text == "" }

func goalOf(word string) (Goal, bool) {
	for _, g := range goals {
		if strings.EqualFold(string(g), word) {
			return g, true
		}
	}
	return "", false
}

func goalNames() []string {
	names := make([]string, len(goals))
	for i, g := range goals {
		names[i] = string(g)
	}
	return names
}

func goalList() string { return strings.Join(goalNames(), ", ") }
