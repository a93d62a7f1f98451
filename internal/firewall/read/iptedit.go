package read

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// whole carries out a command for all chains of the table. Without --noflush a text begins with
// empty chains. Of what the text itself has added, iptables-nft-restore 1.8.9 leaves the rules
// where iptables-legacy-restore takes them out, so -F has one meaning only while there are none.
func (x *xtReader) whole(command, s string) error {
	rules := 0
	for _, c := range x.table.Chains {
		rules += len(c.Rules)
	}
	switch command {
	case "-F", "--flush":
		if rules > 0 {
			return fmt.Errorf("%.60q: iptables-legacy deletes the %d rules of this text before it and iptables-nft does not: "+
				"name the chain", s, rules)
		}
	case "-X", "--delete-chain":
		for _, c := range slices.Clone(x.table.Chains) {
			if c.Hook == "" {
				if err := x.drop(c.Name); err != nil {
					return fmt.Errorf("%.60q: %w", s, err)
				}
			}
		}
	default:
		return fmt.Errorf("%.60q is no command of iptables", s)
	}
	return nil
}

// edit carries out -F or -X of a chain.
func (x *xtReader) edit(command, name string, words []string, s string) error {
	c := x.table.Chain(name)
	switch {
	case len(words) > 0:
		return fmt.Errorf("%.60q: words follow the chain", s)
	case c == nil && x.builtIn(name) && command != "-X" && command != "--delete-chain":
		return nil // it is empty
	case c == nil:
		return fmt.Errorf("%.60q: chain %s is not there", s, name)
	}
	switch command {
	case "-F", "--flush":
		c.Rules = nil
	case "-X", "--delete-chain":
		if err := x.drop(name); err != nil {
			return fmt.Errorf("%.60q: %w", s, err)
		}
	}
	return nil
}

// drop deletes a chain of the text, which must be empty and no rule may jump to it.
func (x *xtReader) drop(name string) error {
	at := slices.IndexFunc(x.table.Chains, func(c *ruleset.Chain) bool { return c.Name == name })
	switch c := x.table.Chains[at]; {
	case c.Hook != "":
		return fmt.Errorf("chain %s is a built-in one", name)
	case len(c.Rules) > 0:
		return fmt.Errorf("chain %s has %d rules", name, len(c.Rules))
	}
	for _, c := range x.table.Chains {
		for _, r := range c.Rules {
			if err := x.spend(len(r.Statements)); err != nil {
				return err
			}
			for _, s := range r.Statements {
				if v, ok := s.(ruleset.Verdict); ok && v.Chain == name {
					return fmt.Errorf("a rule of chain %s jumps to %s", c.Name, name)
				}
			}
		}
	}
	x.table.Chains = slices.Delete(x.table.Chains, at, at+1)
	return nil
}

// place returns which rule -D names: by its place, or the first one that is the same rule.
func (x *xtReader) place(c *ruleset.Chain, words []string) (int, error) {
	if len(words) == 1 {
		if n, err := strconv.Atoi(words[0]); err == nil {
			if n < 1 || n > len(c.Rules) {
				return 0, fmt.Errorf("chain %s has %d rules", c.Name, len(c.Rules))
			}
			return n - 1, nil
		}
	}
	want, err := x.meaning(words)
	if err != nil {
		return 0, err
	}
	const compared = 100 // steps of one comparison
	for i, r := range c.Rules {
		if err := x.spend(compared); err != nil {
			return 0, err
		}
		got, known := x.meanings[r]
		if !known {
			if got, err = x.meaning(x.words[r]); err != nil {
				return 0, err
			}
			x.meanings[r] = got
		}
		if reflect.DeepEqual(got, want) {
			return i, nil
		}
	}
	return 0, errors.New("no rule of the chain is this one, as this program reads them")
}

// xtHeaders are the options that match the header of a packet, whose order means nothing. That of
// other matches does: iptables does not find a rule by its matches in another order.
var xtHeaders = []string{"-p", "-s", "-d", "-i", "-o", "-f"}

var xtHeaderNames = map[string]string{"--protocol": "-p", "--proto": "-p", "--source": "-s", "--src": "-s",
	"--destination": "-d", "--dst": "-d", "--in-interface": "-i", "--out-interface": "-o", "--fragment": "-f"}

// xtProtocols are the modules that -p implies where one of their options follows.
var xtProtocols = []string{"tcp", "udp", "udplite", "icmp", "icmp6", "sctp", "dccp", "ah", "esp", "mh"}

// xtMeaning is what iptables compares of two rules.
type xtMeaning struct {
	modules    []string // in their order, without those of the protocol
	comment    string
	statements []ruleset.Statement
}

// meaning returns what a rule matches and does, without its counters.
func (x *xtReader) meaning(words []string) (xtMeaning, error) {
	own := make(map[string][]string)
	var rest, modules []string
	for i := 0; i < len(words); {
		begin := i
		if words[i] == "!" {
			i++
		}
		if i == len(words) {
			return xtMeaning{}, errHalf
		}
		option := words[i]
		if long := xtHeaderNames[option]; long != "" {
			option = long
		}
		if !slices.Contains(xtHeaders, option) {
			rest = append(rest, words[begin:i+1]...)
			i++
			if (option == "-m" || option == "--match") && i < len(words) && !slices.Contains(xtProtocols, words[i]) {
				modules = append(modules, words[i])
			}
			for i < len(words) && words[i] != "!" && !strings.HasPrefix(words[i], "-") {
				rest = append(rest, words[i])
				i++
			}
			continue
		}
		i++
		if option != "-f" {
			if i < len(words) && words[i] == "!" {
				i++
			}
			i = min(i+1, len(words))
		}
		own[option] = append(own[option], words[begin:i]...)
	}
	var ordered []string
	for _, option := range xtHeaders {
		ordered = append(ordered, own[option]...)
	}
	p := xtRule{x: x, words: append(ordered, rest...), counter: &ruleset.Counter{}, rule: &ruleset.Rule{}}
	if err := p.parse(); err != nil {
		return xtMeaning{}, err
	}
	return xtMeaning{modules, p.rule.Comment, slices.DeleteFunc(p.rule.Statements, func(s ruleset.Statement) bool {
		c, ok := s.(*ruleset.Counter)
		return ok && c == p.counter
	})}, nil
}
