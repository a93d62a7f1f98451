package rewrite

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// Write writes rules as their program loads them: nft -f, iptables-restore -c, a script of ipfw's
// commands, or lines of pf.conf. The last two cannot set counters.
func Write(w io.Writer, r *ruleset.Ruleset) error {
	b := bufio.NewWriter(w)
	switch r.Program {
	case ruleset.NFT:
		return ruleset.WriteNFT(w, r)
	case ruleset.IPFW:
		writeIPFW(b, r)
	case ruleset.PF:
		writePF(b, r)
	default:
		return ruleset.WriteXtables(w, r)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	return nil
}

// The writers of a buffer keep its first error, which Flush returns.

func writeIPFW(b *bufio.Writer, r *ruleset.Ruleset) {
	for _, t := range r.Tables {
		for _, s := range t.Sets {
			kind := "addr"
			if slices.Contains(s.Types, "ifname") {
				kind = "iface"
			}
			_, _ = fmt.Fprintf(b, "table %s create type %s valtype skipto\n", s.Name, kind)
			for _, e := range s.Elements {
				_, _ = fmt.Fprintf(b, "table %s add %s %d\n", s.Name,
					strings.Trim(s.Fields()[0].FormatRange(e.Key[0]), `"`), e.Verdict.Number)
			}
		}
		for _, c := range t.Chains {
			for _, rule := range c.Rules {
				if rule.Number == 65535 {
					continue // the kernel keeps it
				}
				_, _ = fmt.Fprintf(b, "add %s\n", rule.Text)
			}
		}
	}
}

func writePF(b *bufio.Writer, r *ruleset.Ruleset) {
	for _, t := range r.Tables {
		for _, s := range t.Sets {
			_, _ = fmt.Fprintf(b, "table <%s> counters {", s.Name)
			for i, e := range s.Elements {
				comma := ","
				if i == 0 {
					comma = ""
				}
				_, _ = fmt.Fprintf(b, "%s %s", comma, s.Fields()[0].FormatRange(e.Key[0]))
			}
			_, _ = b.WriteString(" }\n")
		}
		for _, c := range t.Chains {
			for _, rule := range c.Rules {
				_, text, _ := strings.Cut(rule.Text, " ")
				_, _ = b.WriteString(text + "\n")
			}
		}
	}
}
