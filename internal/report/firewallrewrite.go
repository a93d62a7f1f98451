package report

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/firewall/rewrite"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// FirewallRewrite is what firewall optimise offers: rules that do the same for fewer comparisons.
type FirewallRewrite struct {
	Program string           `json:"program"`
	Before  float64          `json:"rules_per_packet_before"`
	After   float64          `json:"rules_per_packet_after"`
	Counted bool             `json:"counted"` // packets weigh what the counters counted; otherwise all weigh the same
	Proof   FirewallProof    `json:"proof"`
	Changed []FirewallChange `json:"changed"`
	Kept    []FirewallKept   `json:"kept,omitempty"`
	Notes   []string         `json:"notes,omitempty"`
	Ruleset string           `json:"ruleset"` // as its program loads it; empty if nothing is offered
	Old     string           `json:"-"`       // the old rules in the same form
	Applied *FirewallApplied `json:"applied,omitempty"`
}

// FirewallApplied is what firewall optimise --apply has put in force.
type FirewallApplied struct {
	Changes []journal.Change `json:"changes"` // of the journal, one for each table
	// Carried are packets that were counted while the rules changed. They are in the chain
	// linerate_carry of the table, until the next change adds them to their counters.
	Carried  uint64 `json:"carried_packets_total"`
	Counters int    `json:"carried_counters_total"` // that these packets belong to
	// Left are tables that keep their old rules although shorter ones are proven.
	Left []FirewallKept `json:"left,omitempty"`
}

// FirewallProof is how the new rules were compared with the old ones.
type FirewallProof struct {
	Method  []string `json:"method"` // cells, packets, kernel
	Cells   int      `json:"cells_total"`
	Packets int      `json:"packets_total"` // traced through both rulesets
	Equal   bool     `json:"equal"`
	// KernelPackets went through both rulesets in the kernel; 0 if it was not asked.
	KernelPackets  int `json:"kernel_packets_total,omitempty"`
	KernelCounters int `json:"kernel_counters_total,omitempty"` // that were compared after that
}

// FirewallChange is a chain with new rules.
type FirewallChange struct {
	Table  string `json:"table"`
	Chain  string `json:"chain"`
	Before int    `json:"rules_before_total"`
	After  int    `json:"rules_after_total"`
}

// FirewallKept is a chain whose new rules could not be proved.
type FirewallKept struct {
	Table string `json:"table"`
	Chain string `json:"chain"`
	Why   string `json:"why"`
}

// Rewritten adds what a rewrite of one ruleset offers, and returns it. The error is that of rules
// without a text form.
func (d *FirewallDocument) Rewritten(before *ruleset.Ruleset, r rewrite.Result) (*FirewallRewrite, error) {
	var old, now bytes.Buffer
	if err := rewrite.Write(&old, before); err != nil {
		return nil, fmt.Errorf("write the rules of %s: %w", before.Program, err)
	}
	if err := rewrite.Write(&now, r.Rules); err != nil {
		return nil, fmt.Errorf("write the new rules of %s: %w", before.Program, err)
	}
	w := FirewallRewrite{Program: string(before.Program), Changed: []FirewallChange{}, Old: old.String()}
	w.Before, w.After, w.Counted = tenth(r.Before), tenth(r.After), r.Counted
	w.Proof = FirewallProof{Method: []string{"cells", "packets"}, Cells: r.Proof.Cells,
		Packets: r.Proof.Packets, Equal: r.Proof.Answer == 0}
	for _, c := range r.Changed {
		w.Changed = append(w.Changed, FirewallChange(c))
	}
	for _, k := range r.Kept {
		w.Kept = append(w.Kept, FirewallKept(k))
	}
	if len(r.Changed) > 0 && w.Proof.Equal {
		w.Ruleset = now.String()
	}
	if before.Program == ruleset.IPFW || before.Program == ruleset.PF {
		w.Notes = append(w.Notes, "Rules of ipfw and pf start with counters at zero: their programs cannot set them.")
	}
	if d.Rewrite == nil {
		d.Rewrite = &w
		return d.Rewrite, nil
	}
	d.More = append(d.More, &w)
	return &w, nil
}

// mostCompared bounds the lines of one comparison, squared: a longer change is shown as a whole.
const mostCompared = 4_000_000

// Diff returns how the new rules differ from the old ones, a line each, with a plus, a minus or a
// blank before it and three lines around each change.
func (w *FirewallRewrite) Diff() []string {
	old, now := strings.Split(strings.TrimSuffix(w.Old, "\n"), "\n"),
		strings.Split(strings.TrimSuffix(w.Ruleset, "\n"), "\n")
	var all []string
	var changes []bool
	put := func(sign string, lines ...string) {
		for _, l := range lines {
			all, changes = append(all, sign+l), append(changes, sign != " ")
		}
	}
	begin := 0
	for begin < len(old) && begin < len(now) && old[begin] == now[begin] {
		begin++
	}
	end := 0
	for end < len(old)-begin && end < len(now)-begin && old[len(old)-1-end] == now[len(now)-1-end] {
		end++
	}
	put(" ", old[:begin]...)
	a, b := old[begin:len(old)-end], now[begin:len(now)-end]
	if len(a)*len(b) > mostCompared {
		put("-", a...)
		put("+", b...)
	} else {
		// The longest common lines of the rest, from its end.
		long := make([][]int32, len(a)+1)
		for i := range long {
			long[i] = make([]int32, len(b)+1)
		}
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				if a[i] == b[j] {
					long[i][j] = long[i+1][j+1] + 1
				} else {
					long[i][j] = max(long[i+1][j], long[i][j+1])
				}
			}
		}
		i, j := 0, 0
		for i < len(a) || j < len(b) {
			switch {
			case i < len(a) && j < len(b) && a[i] == b[j]:
				put(" ", a[i])
				i, j = i+1, j+1
			case i < len(a) && (j == len(b) || long[i+1][j] >= long[i][j+1]):
				put("-", a[i])
				i++
			default:
				put("+", b[j])
				j++
			}
		}
	}
	put(" ", old[len(old)-end:]...)
	return around(all, changes)
}

// around leaves the changed lines and three beside each, with a line of dots for what is left out.
func around(all []string, changes []bool) []string {
	const beside = 3
	near := make([]bool, len(all))
	for i, c := range changes {
		if !c {
			continue
		}
		for k := max(0, i-beside); k <= min(len(all)-1, i+beside); k++ {
			near[k] = true
		}
	}
	var out []string
	for i, l := range all {
		switch {
		case near[i]:
			out = append(out, l)
		case i > 0 && near[i-1]:
			out = append(out, " …")
		}
	}
	return out
}
