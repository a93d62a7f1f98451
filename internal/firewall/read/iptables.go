package read

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// longestLine bounds a line of any of the texts.
const longestLine = 1 << 20

// IPTables reads what iptables-save and ip6tables-save print, with counters (-c) or without, one
// after another in any number. sets are those of [IPSet], which matches may name. The header says
// which program printed it; without one the family is that of the addresses, and ip if there are
// none.
func IPTables(r io.Reader, sets []*ruleset.Set) (*ruleset.Ruleset, error) {
	return iptables(r, sets, mostSteps)
}

func iptables(r io.Reader, sets []*ruleset.Set, most int) (*ruleset.Ruleset, error) {
	x := xtReader{rules: &ruleset.Ruleset{Program: ruleset.IPTablesLegacy}, sets: sets, most: most}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	n := 0
	for lines.Scan() {
		n++
		if err := x.line(strings.TrimSpace(lines.Text())); err != nil {
			return nil, fmt.Errorf("read rules of iptables: line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read rules of iptables: line %d: %w", n+1, err)
	}
	switch {
	case x.table != nil:
		return nil, fmt.Errorf("read rules of iptables: table %s has no COMMIT: %w", x.table.Name, errHalf)
	case len(x.rules.Tables) == 0:
		return nil, errors.New("read rules of iptables: no table in the text")
	}
	return x.rules, nil
}

type xtReader struct {
	rules  *ruleset.Ruleset
	sets   []*ruleset.Set
	table  *ruleset.Table
	family string // of the text's header
	// words are those of the rules of the table that the text adds, for its commands that name a rule
	words map[*ruleset.Rule][]string
	// meanings are those of rules that a command was compared with
	meanings map[*ruleset.Rule]xtMeaning
	// steps taken, and how many are allowed: see mostSteps
	steps, most int
}

// mostSteps bounds the work for commands that look for a chain or a rule, or move rules: it grows
// with the square of a text, which a stranger may have written. A step takes some ten nanoseconds.
// The rules of a host with five thousand chains and fifty thousand rules take half of them.
const mostSteps = 500_000_000

// spend counts steps, and refuses a text that takes too many.
func (x *xtReader) spend(steps int) error {
	if x.steps += steps; x.steps > x.most {
		return errors.New("its commands go through its rules too often: load it in a namespace, and read what is saved " +
			"there (unshare -n sh -c 'iptables-restore FILE; iptables-save -c')")
	}
	return nil
}

func (x *xtReader) line(s string) error {
	switch {
	case s == "":
		return nil
	case s[0] == '#':
		switch {
		case strings.Contains(s, "by ip6tables"):
			x.family = "ip6"
		case strings.Contains(s, "by iptables"):
			x.family = "ip"
		}
		if strings.Contains(s, "(nf_tables)") {
			x.rules.Program = ruleset.IPTablesNFT
		}
		if _, v, ok := strings.Cut(s, "-save v"); ok {
			x.rules.Version, _, _ = strings.Cut(v, " ")
		}
		return nil
	case s[0] == '*':
		if x.table != nil {
			return fmt.Errorf("table %s has no COMMIT", x.table.Name)
		}
		family := x.family
		if family == "" {
			family = "ip"
		}
		x.table = &ruleset.Table{Family: family, Name: s[1:], Sets: x.sets}
		x.words, x.meanings = make(map[*ruleset.Rule][]string), make(map[*ruleset.Rule]xtMeaning)
		return nil
	case x.table == nil:
		return fmt.Errorf("%.60q is in no table: run commands of iptables in a namespace, and read what is saved there "+
			"(unshare -n sh -c 'sh FILE; iptables-save -c')", s)
	case s == "COMMIT":
		x.rules.Tables = append(x.rules.Tables, x.table)
		x.table = nil
		return nil
	case s[0] == ':':
		return x.chain(s[1:])
	}
	return x.rule(s)
}

// hooks of the built-in chains, and the priorities of tables of linux/netfilter_ipv4.h.
var xtHooks = map[string]string{"PREROUTING": "prerouting", "INPUT": "input", "FORWARD": "forward", "OUTPUT": "output",
	"POSTROUTING": "postrouting"}

// xtBuiltIn are the chains that a table has without a line for them: with the policy of an empty
// table, as iptables-restore leaves it.
var xtBuiltIn = map[string]string{"filter": "INPUT FORWARD OUTPUT", "security": "INPUT FORWARD OUTPUT",
	"nat": "PREROUTING INPUT OUTPUT POSTROUTING", "mangle": "PREROUTING INPUT FORWARD OUTPUT POSTROUTING",
	"raw": "PREROUTING OUTPUT"}

func xtPriority(table, hook string) int {
	switch table {
	case "raw":
		return -300
	case "mangle":
		return -150
	case "nat":
		if hook == "input" || hook == "postrouting" {
			return 100
		}
		return -100
	case "security":
		return 50
	}
	return 0
}

func (x *xtReader) chain(s string) error {
	words := strings.Fields(s)
	if len(words) < 2 {
		return fmt.Errorf("chain %.60q has no policy", s)
	}
	c := &ruleset.Chain{Name: words[0]}
	if words[1] != "-" {
		c.Hook, c.Type = xtHooks[words[0]], "filter"
		if c.Hook == "" {
			return fmt.Errorf("chain %s has a policy and is not a built-in one", words[0])
		}
		if x.table.Name == "nat" {
			c.Type = "nat"
		}
		c.Priority = xtPriority(x.table.Name, c.Hook)
		switch words[1] {
		case "ACCEPT":
			c.Policy = ruleset.Accept
		case "DROP":
			c.Policy = ruleset.Drop
		default:
			return fmt.Errorf("chain %s: policy %.60q", words[0], words[1])
		}
	}
	if len(words) > 2 {
		n, err := xtCounter(words[2])
		if err != nil {
			return fmt.Errorf("chain %s: %w", words[0], err)
		}
		if c.Hook != "" {
			c.Counter = n
		}
	}
	x.table.Chains = append(x.table.Chains, c)
	return nil
}

// xtCounter reads [packets:bytes].
func xtCounter(s string) (*ruleset.Counter, error) {
	packets, bytes, ok := strings.Cut(strings.Trim(s, "[]"), ":")
	p, errP := strconv.ParseUint(packets, 10, 64)
	b, errB := strconv.ParseUint(bytes, 10, 64)
	if !ok || errP != nil || errB != nil {
		return nil, fmt.Errorf("counter %.60q", s)
	}
	return &ruleset.Counter{Packets: p, Bytes: b}, nil
}

// split cuts a line into words; quotes keep blanks, and a backslash keeps a quote.
func split(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	in, quotedNow, escaped := false, false, false
	for _, c := range s {
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case quotedNow && c == '\\':
			escaped = true
		case c == '"':
			quotedNow, in = !quotedNow, true
		case !quotedNow && (c == ' ' || c == '\t'):
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
		default:
			word.WriteRune(c)
			in = true
		}
	}
	if quotedNow {
		return nil, fmt.Errorf("a quote without its end: %w", errHalf)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

func (x *xtReader) rule(s string) error {
	counter := new(ruleset.Counter)
	if s[0] == '[' {
		c, rest, _ := strings.Cut(s, " ")
		n, err := xtCounter(c)
		if err != nil {
			return err
		}
		counter, s = n, rest
	}
	words, err := split(s)
	if err != nil {
		return err
	}
	if len(words) == 1 {
		return x.whole(words[0], s)
	}
	if len(words) < 2 {
		return fmt.Errorf("%.60q is no command of iptables", s)
	}
	command, name, words := words[0], words[1], words[2:]
	if err := x.spend(len(x.table.Chains)); err != nil {
		return err
	}
	switch command {
	case "-N", "--new-chain":
		if len(words) > 0 || x.table.Chain(name) != nil || x.builtIn(name) {
			return fmt.Errorf("%.60q: the chain exists, or words follow its name", s)
		}
		return x.chain(name + " -")
	case "-P", "--policy":
		if len(words) != 1 || !x.builtIn(name) {
			return fmt.Errorf("%.60q: want a built-in chain and ACCEPT or DROP", s)
		}
		return x.policy(name, words[0])
	case "-F", "--flush", "-X", "--delete-chain":
		return x.edit(command, name, words, s)
	case "-A", "--append", "-I", "--insert", "-D", "--delete", "-R", "--replace":
	default:
		return fmt.Errorf("%.60q: of the commands, this program reads -A, -I, -R, -D, -N, -F, -X and -P", s)
	}
	c := x.table.Chain(name)
	if c == nil && x.builtIn(name) {
		if err := x.chain(name + " ACCEPT"); err != nil {
			return err
		}
		c = x.table.Chain(name)
	}
	if c == nil {
		return fmt.Errorf("chain %s is not declared: iptables-restore needs a line \":%[1]s -\" before", name)
	}
	if command == "-D" || command == "--delete" {
		at, err := x.place(c, words)
		if err != nil {
			return fmt.Errorf("%.60q: %w", s, err)
		}
		c.Rules = slices.Delete(c.Rules, at, at+1)
		return x.spend((len(c.Rules) - at) / moved)
	}
	at, text := len(c.Rules), s
	replaces := command == "-R" || command == "--replace"
	if replaces || command == "-I" || command == "--insert" {
		at = 0
		if _, err := strconv.Atoi(strings.Join(words[:min(len(words), 1)], "")); replaces && err != nil {
			return fmt.Errorf("%.60q: want the place of a rule before the new one", s)
		}
		if len(words) > 0 {
			if n, err := strconv.Atoi(words[0]); err == nil {
				if n < 1 || n > len(c.Rules)+1 || replaces && n > len(c.Rules) {
					return fmt.Errorf("chain %s: place %d: it has %d rules", name, n, len(c.Rules))
				}
				at, words = n-1, words[1:]
			}
		}
		_, text = cutWord(s)
		_, text = cutWord(text)
		if len(words) > 0 && strings.TrimSpace(text) != "" && text[0] >= '0' && text[0] <= '9' {
			_, text = cutWord(text)
		}
		text = strings.TrimSpace("-A " + name + " " + text)
	}
	p := xtRule{x: x, words: words, counter: counter, rule: &ruleset.Rule{Text: text}}
	if err := p.parse(); err != nil {
		return fmt.Errorf("chain %s, rule %d: %w", c.Name, at+1, err)
	}
	x.words[p.rule] = words
	if replaces {
		c.Rules[at] = p.rule
		return nil
	}
	c.Rules = slices.Insert(c.Rules, at, p.rule)
	return x.spend((len(c.Rules) - at) / moved)
}

// moved is how many rules are moved in one step: pointers of eight bytes, a few tens of bytes in a
// nanosecond.
const moved = 16

// cutWord cuts the first word off a line.
func cutWord(s string) (word, rest string) {
	word, rest, _ = strings.Cut(s, " ")
	return word, strings.TrimLeft(rest, " \t")
}

func (x *xtReader) builtIn(name string) bool {
	return slices.Contains(strings.Fields(xtBuiltIn[x.table.Name]), name)
}

// policy sets the policy of a built-in chain, which may have rules already.
func (x *xtReader) policy(name, policy string) error {
	c := x.table.Chain(name)
	if c == nil {
		return x.chain(name + " " + policy)
	}
	switch policy {
	case "ACCEPT":
		c.Policy = ruleset.Accept
	case "DROP":
		c.Policy = ruleset.Drop
	default:
		return fmt.Errorf("chain %s: policy %.60q", name, policy)
	}
	return nil
}

// xtRule reads the options of one rule.
type xtRule struct {
	x        *xtReader
	words    []string
	rule     *ruleset.Rule
	counter  *ruleset.Counter
	protocol string // of -p without a negation
	module   string // of the last -m
	opaque   []string
	target   string // of -j or -g
	goes     bool
	options  []string // of the target
	again    bool     // matches follow the target
}

func (p *xtRule) next() (string, error) {
	if len(p.words) == 0 {
		return "", errHalf
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w, nil
}

func (p *xtRule) add(s ruleset.Statement) { p.rule.Statements = append(p.rule.Statements, s) }

// flush ends an opaque match of a module.
func (p *xtRule) flush() {
	if len(p.opaque) == 0 {
		return
	}
	text := strings.Join(p.opaque, " ")
	if p.module != "" {
		text = "-m " + p.module + " " + text
	}
	p.add(ruleset.Opaque{Text: text, Effect: xtModules[p.module], Conditional: true, Unprintable: true})
	p.opaque = nil
}

// xtModules are the effects of the matches of iptables-extensions(8) that have one. Others look at
// the packet only.
var xtModules = map[string]ruleset.Effect{"limit": ruleset.EffectLimit, "hashlimit": ruleset.EffectLimit,
	"connlimit": ruleset.EffectLimit, "quota": ruleset.EffectLimit, "quota2": ruleset.EffectLimit,
	"rateest": ruleset.EffectLimit, "connbytes": ruleset.EffectLimit, "recent": ruleset.EffectDynamic,
	"set": ruleset.EffectDynamic, "statistic": ruleset.EffectTime, "time": ruleset.EffectTime,
	"addrtype": ruleset.EffectRoute, "rpfilter": ruleset.EffectRoute, "socket": ruleset.EffectRoute,
	"nfacct": ruleset.EffectOther, "condition": ruleset.EffectOther, "psd": ruleset.EffectLimit,
	"bpf": ruleset.EffectOther, "cluster": ruleset.EffectOther}

func (p *xtRule) parse() error {
	negated := false
	for len(p.words) > 0 {
		option, _ := p.next()
		if option == "!" {
			negated = true
			continue
		}
		if err := p.option(option, negated); err != nil {
			return fmt.Errorf("%s: %w", option, err)
		}
		negated = false
	}
	p.flush()
	p.add(p.counter)
	if p.target != "" {
		p.finish()
	}
	return nil
}

// option reads one option with its values. A file written by hand may have matches behind its
// target.
func (p *xtRule) option(option string, negated bool) (err error) {
	switch option {
	case "-m", "--match":
		p.flush()
		p.again = p.target != ""
		p.module, err = p.next()
		return err
	case "-j", "-g", "--jump", "--goto":
		if p.target == "" { // a second one is an unknown condition
			p.flush()
			p.goes, p.module = option == "-g" || option == "--goto", ""
			p.target, err = p.next()
			return err
		}
	}
	words, old := p.words, false
	if len(words) > 1 && words[0] == "!" && !strings.HasPrefix(words[1], "-") {
		old, p.words = true, words[1:] // -s ! ADDRESS, as iptables before 1.4.3 printed it
	}
	known, err := p.known(option, negated || old)
	if known || err != nil {
		p.again = p.again || p.target != ""
		return err
	}
	p.words = words
	// An unknown option and its values, up to the next option. Where it may be a match, it is taken
	// for one and not for an option of the target, so that no condition is lost.
	into := &p.opaque
	switch {
	case negated:
		p.opaque = append(p.opaque, "!")
	case p.target == "" || p.again || slices.Contains([]string{"ACCEPT", "DROP", "RETURN"}, p.target) ||
		p.x.table.Chain(p.target) != nil || slices.Contains([]string{"--syn", "--tcp-flags", "--tcp-option", "-f"}, option):
	case !strings.HasPrefix(option, "--icmp"):
		into = &p.options
	}
	*into = append(*into, option)
	for len(p.words) > 0 && !strings.HasPrefix(p.words[0], "-") && p.words[0] != "!" {
		*into = append(*into, p.words[0])
		p.words = p.words[1:]
	}
	return nil
}

// known reads the options on fields of the model.
func (p *xtRule) known(option string, negated bool) (bool, error) {
	match := ruleset.Match{Negated: negated}
	term := ruleset.Term{Header: p.x.table.Family}
	var parse func(string) (ruleset.Range, error)
	many := false
	switch option {
	case "-s", "--source", "-d", "--destination":
		if term.Field = ruleset.Source; option == "-d" || option == "--destination" {
			term.Field = ruleset.Destination
		}
		parse = xtAddress
	case "--src-range", "--dst-range":
		if term.Field = ruleset.Source; option == "--dst-range" {
			term.Field = ruleset.Destination
		}
		parse = xtAddressRange
	case "-i", "--in-interface", "-o", "--out-interface":
		term = ruleset.Term{Field: ruleset.InInterface, Header: "iifname"}
		if option == "-o" || option == "--out-interface" {
			term = ruleset.Term{Field: ruleset.OutInterface, Header: "oifname"}
		}
		parse = func(s string) (ruleset.Range, error) {
			if begin, ok := strings.CutSuffix(s, "+"); ok {
				s = begin + "*"
			}
			return ruleset.Names(s), nil
		}
	case "-p", "--protocol":
		term = ruleset.Term{Field: ruleset.Protocol, Header: "meta"}
		parse = func(s string) (ruleset.Range, error) { return valueOf(ruleset.Protocol, s) }
		if len(p.words) > 0 {
			if p.words[0] == "all" || p.words[0] == "0" {
				_, err := p.next()
				return true, err
			}
			if !negated {
				p.protocol = p.words[0]
			}
		}
	case "--sport", "--source-port", "--sports", "--source-ports", "--dport", "--destination-port",
		"--dports", "--destination-ports":
		term = ruleset.Term{Field: ruleset.SourcePort, Header: p.protocol}
		if strings.HasPrefix(option, "--d") {
			term.Field = ruleset.DestinationPort
		}
		if !slices.Contains([]string{"tcp", "udp", "sctp", "dccp", "udplite"}, p.protocol) {
			term.Header = "th"
		}
		parse, many = xtPorts, strings.HasSuffix(option, "s")
	case "--ctstate", "--state":
		// Besides states, conntrack knows SNAT and DNAT, which are no states of the model.
		if len(p.words) > 0 && strings.Contains(p.words[0], "NAT") {
			return false, nil
		}
		term, many = ruleset.Term{Field: ruleset.State}, true
		parse = func(s string) (ruleset.Range, error) { return valueOf(ruleset.State, s) }
	case "--match-set":
		return p.matchSet(negated)
	case "--comment":
		var err error
		p.rule.Comment, err = p.next()
		return true, err
	default:
		return false, nil
	}
	if p.module != "" && option[0] == '-' && len(option) == 2 {
		p.flush()
	}
	text, err := p.next()
	if err != nil {
		return true, err
	}
	parts := []string{text}
	if many {
		parts = strings.Split(text, ",")
	}
	for _, one := range parts {
		r, err := parse(one)
		if err != nil {
			return true, err
		}
		if term.Field == ruleset.Source || term.Field == ruleset.Destination {
			if err := p.x.isOf(r); err != nil {
				return true, err
			}
			term.Header = p.x.table.Family
		}
		match.Plain = append(match.Plain, r)
	}
	match.Key = []ruleset.Term{term}
	p.add(match)
	return true, nil
}

// matchSet reads --match-set NAME src,dst.
func (p *xtRule) matchSet(negated bool) (bool, error) {
	name, err := p.next()
	if err != nil {
		return true, err
	}
	flags, err := p.next()
	if err != nil {
		return true, err
	}
	p.module = ""
	if s := findSet(p.x.sets, name); s != nil {
		if key, ok := setKey(s, strings.Split(flags, ","), p.x.table.Family); ok {
			p.add(ruleset.Match{Key: key, Negated: negated, Set: s})
			return true, nil
		}
	}
	p.add(ruleset.Opaque{Text: "-m set --match-set " + name + " " + flags, Effect: ruleset.EffectDynamic,
		Conditional: true, Unprintable: true})
	return true, nil
}

func findSet(sets []*ruleset.Set, name string) *ruleset.Set {
	for _, s := range sets {
		if s.Name == name {
			return s
		}
	}
	return nil
}
