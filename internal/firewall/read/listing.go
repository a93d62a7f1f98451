package read

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// NFTText reads what nft list ruleset prints, and files for nft -f that are written so: tables with
// chains, sets and objects, variables, and no commands but flush ruleset. The error names the line.
func NFTText(r io.Reader) (*ruleset.Ruleset, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read rules of nft: %w", err)
	}
	tokens, err := lex(string(b))
	if err != nil {
		return nil, fmt.Errorf("read rules of nft: %w", err)
	}
	p := &listing{text: string(b), tokens: tokens, rules: &ruleset.Ruleset{Program: ruleset.NFT},
		variables: make(map[string][]token), bodies: make(map[*ruleset.Chain][]body)}
	if err := p.file(); err != nil {
		return nil, fmt.Errorf("read rules of nft: %w", err)
	}
	return p.rules, nil
}

// included says what to do about a text that is not whole.
const included = "the text includes another file: load it, and read what nft list ruleset prints"

// listing reads one text.
type listing struct {
	text      string
	tokens    []token
	next      int
	rules     *ruleset.Ruleset
	variables map[string][]token
	table     *ruleset.Table
	// Rules name sets and counters that may stand behind them, so they are read at the end.
	bodies map[*ruleset.Chain][]body
}

// body is a rule that is not read yet.
type body struct {
	tokens []token
}

func (p *listing) fail(what string, args ...any) error {
	line := 1
	if p.next < len(p.tokens) {
		line = p.tokens[p.next].line
	} else if len(p.tokens) > 0 {
		return fmt.Errorf("line %d: %w", p.tokens[len(p.tokens)-1].line, errHalf)
	}
	return fmt.Errorf("line %d: %s", line, fmt.Sprintf(what, args...))
}

// peek returns the next token; an empty one at the end.
func (p *listing) peek() token {
	if p.next < len(p.tokens) {
		return p.tokens[p.next]
	}
	return token{quoted: true}
}

// take returns the next token if it is a word.
func (p *listing) take(s string) bool {
	if p.peek().is(s) {
		p.next++
		return true
	}
	return false
}

// ends skips the ends of lines and statements.
func (p *listing) ends() {
	for p.take("\n") || p.take(";") {
	}
}

// word returns the next token, which must be a name.
func (p *listing) word() (string, error) {
	t := p.peek()
	if p.next >= len(p.tokens) || !t.quoted && strings.Contains("{}(),;\n", t.text) {
		return "", p.fail("a name is missing")
	}
	p.next++
	return t.text, nil
}

func (p *listing) file() error {
	for {
		p.ends()
		t := p.peek()
		switch {
		case p.next >= len(p.tokens):
			for _, table := range p.rules.Tables {
				p.table = table
				for _, c := range table.Chains {
					for _, b := range p.bodies[c] {
						if err := p.rule(c, b); err != nil {
							return err
						}
					}
				}
			}
			return nil
		case t.is("table"):
			p.next++
			if err := p.tableOf(); err != nil {
				return err
			}
		case t.is("define"), t.is("redefine"):
			p.next++
			if err := p.define(); err != nil {
				return err
			}
		case t.is("flush"), t.is("destroy"), t.is("delete"):
			p.line() // of an earlier load
		case t.is("add") && p.next+1 < len(p.tokens) && p.tokens[p.next+1].is("table"):
			p.line()
		case t.is("include"):
			return p.fail(included)
		default:
			return p.fail("%.40q is not the beginning of a table: read what nft list ruleset prints", t.text)
		}
	}
}

// line returns the tokens up to the end of a line or statement, outside braces.
func (p *listing) line() []token {
	start, depth := p.next, 0
	for ; p.next < len(p.tokens); p.next++ {
		t := p.tokens[p.next]
		switch {
		case t.is("{"):
			depth++
		case t.is("}"):
			if depth == 0 {
				return p.tokens[start:p.next]
			}
			depth--
		case depth == 0 && (t.is("\n") || t.is(";")):
			return p.tokens[start:p.next]
		}
	}
	return p.tokens[start:]
}

// define reads a variable.
func (p *listing) define() error {
	name, err := p.word()
	if err != nil {
		return err
	}
	name, value, glued := strings.Cut(name, "=")
	if !glued && !p.take("=") {
		return p.fail("define %s: = is missing", name)
	}
	var tokens []token
	if value != "" {
		tokens = append(tokens, token{text: value})
	}
	p.variables[name] = p.replaced(append(tokens, p.line()...))
	return nil
}

// replaced puts the values of variables into tokens. A variable in braces loses its own ones, as
// nft joins sets.
func (p *listing) replaced(tokens []token) []token {
	if !slices.ContainsFunc(tokens, func(t token) bool { return !t.quoted && strings.HasPrefix(t.text, "$") }) {
		return tokens
	}
	var out []token
	depth := 0
	for _, t := range tokens {
		switch {
		case t.is("{"):
			depth++
		case t.is("}"):
			depth--
		}
		value, ok := p.variables[strings.TrimPrefix(t.text, "$")]
		if t.quoted || !strings.HasPrefix(t.text, "$") || !ok || len(out)+len(value) > mostTokens/10 {
			out = append(out, t)
			continue
		}
		if n := len(value); depth > 0 && n > 1 && value[0].is("{") && value[n-1].is("}") {
			value = value[1 : n-1]
		}
		for _, v := range value {
			v.line, v.at, v.to = t.line, 0, 0
			out = append(out, v)
		}
	}
	return out
}

var nftFamilies = []string{"ip", "ip6", "inet", "arp", "bridge", "netdev"}

func (p *listing) tableOf() error {
	family := "ip"
	name, err := p.word()
	if err == nil && slices.Contains(nftFamilies, name) && !p.peek().is("{") {
		family = name
		name, err = p.word()
	}
	if err != nil {
		return err
	}
	p.table = p.rules.Table(family, name)
	if p.table == nil {
		p.table = &ruleset.Table{Family: family, Name: name}
		p.rules.Tables = append(p.rules.Tables, p.table)
	}
	if !p.take("{") {
		p.line() // an empty one, before flush table
		return nil
	}
	for {
		p.ends()
		if p.take("}") {
			return nil
		}
		if err := p.member(); err != nil {
			return fmt.Errorf("table %s %s: %w", family, name, err)
		}
	}
}

// objects are what a table has beside chains and sets.
var objects = []string{"counter", "quota", "limit", "flowtable", "synproxy", "secmark", "ct helper", "ct timeout",
	"ct expectation"}

// member reads one thing in a table.
func (p *listing) member() error {
	what, err := p.word()
	if err != nil {
		return err
	}
	switch what {
	case "flags":
		for _, t := range p.line() {
			if !t.is(",") {
				p.table.Flags = append(p.table.Flags, t.text)
			}
		}
		return nil
	case "comment":
		p.table.Comment, err = p.word()
		return err
	case "define", "redefine":
		return p.define()
	case "chain":
		return p.chain()
	case "set", "map":
		return p.set(what == "map")
	case "ct":
		kind, err := p.word()
		if err != nil {
			return err
		}
		what += " " + kind
	}
	if !slices.Contains(objects, what) {
		if p.next--; what == "include" {
			return p.fail(included)
		}
		return p.fail("%.40q is unknown", what)
	}
	return p.object(what)
}

// object reads a named object.
func (p *listing) object(kind string) error {
	name, err := p.word()
	if err != nil {
		return err
	}
	o := ruleset.Object{Kind: kind, Name: name}
	var tokens []token
	if p.take("{") {
		if tokens = p.inside(); !p.take("}") {
			return p.fail("%s %s has no end", kind, name)
		}
	} else {
		tokens = p.line()
	}
	o.Body = p.raw(p.replaced(tokens))
	if kind == "counter" {
		o.Counter = &ruleset.Counter{Name: name}
		r := words{tokens: tokens}
		r.blank()
		o.Counter.Packets, o.Counter.Bytes = r.counted()
		o.Body = ""
	}
	p.table.Objects = append(p.table.Objects, o)
	return nil
}

// inside returns the tokens up to the brace that closes.
func (p *listing) inside() []token {
	start, depth := p.next, 0
	for ; p.next < len(p.tokens); p.next++ {
		switch t := p.tokens[p.next]; {
		case t.is("{"):
			depth++
		case t.is("}"):
			if depth--; depth < 0 {
				return p.tokens[start:p.next]
			}
		}
	}
	return p.tokens[start:]
}

// raw returns tokens as nft prints them.
func (p *listing) raw(tokens []token) string {
	var b strings.Builder
	for i, t := range tokens {
		if t.is("\n") {
			continue
		}
		if i > 0 && b.Len() > 0 && !t.is(",") && !t.is(";") {
			// What stands together in the text is one word: a value behind a comma.
			if before := tokens[i-1]; before.to == 0 || t.at == 0 || before.to != t.at {
				b.WriteByte(' ')
			}
		}
		if t.quoted {
			fmt.Fprintf(&b, "%q", t.text)
			continue
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// priorities are the names of nft(8) for the families of IP.
var priorities = map[string]int{"raw": -300, "mangle": -150, "dstnat": -100, "filter": 0, "security": 50, "srcnat": 100}

// bridged are those of bridges.
var bridged = map[string]int{"dstnat": -300, "filter": -200, "out": 100, "srcnat": 300}

func (p *listing) chain() error {
	name, err := p.word()
	if err != nil {
		return err
	}
	c := p.table.Chain(name)
	if c == nil {
		c = &ruleset.Chain{Name: name}
		p.table.Chains = append(p.table.Chains, c)
	}
	if !p.take("{") {
		p.line()
		return nil
	}
	for {
		p.ends()
		if p.take("}") {
			return nil
		}
		if p.next >= len(p.tokens) {
			return p.fail("chain %s has no end", name)
		}
		start := p.next
		line := p.replaced(p.line())
		if len(line) == 0 {
			return p.fail("chain %s: a rule begins with a brace", name)
		}
		w := words{tokens: line}
		switch {
		case line[0].is("type") && len(line) > 3:
			if err := p.base(c, line); err != nil {
				p.next = start
				return p.fail("chain %s: %v", name, err)
			}
		case line[0].is("policy") && len(line) == 2:
			c.Policy = map[string]ruleset.Kind{"accept": ruleset.Accept, "drop": ruleset.Drop}[line[1].text]
		case w.take("comment") && len(line) == 2:
			c.Comment = line[1].text
		case line[0].is("devices"), line[0].is("flags"):
		default:
			p.bodies[c] = append(p.bodies[c], body{line})
		}
	}
}

// base reads what makes a chain a base chain.
func (p *listing) base(c *ruleset.Chain, line []token) error {
	c.Policy = ruleset.Accept
	for i := 0; i+1 < len(line); i++ {
		value := line[i+1].text
		switch {
		case line[i].is("type"):
			c.Type = value
		case line[i].is("hook"):
			c.Hook = value
		case line[i].is("device"):
			c.Devices = append(c.Devices, value)
		case line[i].is("devices"):
			for _, t := range line[i+1:] {
				if t.is("}") {
					break
				}
				if !t.is("{") && !t.is(",") && !t.is("=") && !t.is("\n") {
					c.Devices = append(c.Devices, t.text)
				}
			}
		case line[i].is("priority"):
			names := priorities
			if p.table.Family == "bridge" {
				names = bridged
			}
			n, named := names[value]
			if !named {
				var err error
				if n, err = strconv.Atoi(value); err != nil {
					return fmt.Errorf("priority %.40q", value)
				}
			}
			if i+3 < len(line) && (line[i+2].is("+") || line[i+2].is("-")) {
				more, err := strconv.Atoi(line[i+3].text)
				if err != nil {
					return fmt.Errorf("priority %s %s %.40q", value, line[i+2].text, line[i+3].text)
				}
				if line[i+2].is("-") {
					more = -more
				}
				n += more
			}
			c.Priority = n
		}
	}
	if c.Hook == "" {
		return fmt.Errorf("the hook is missing")
	}
	return nil
}
