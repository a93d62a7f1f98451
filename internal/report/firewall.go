package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/firewall/cost"
	"github.com/linerate/linerate/internal/firewall/owner"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// The documents of packet filters.
const (
	SchemaFirewall      = "linerate.firewall/1"
	SchemaFirewallTrace = "linerate.firewall-trace/1"
)

// FirewallDocument is linerate.firewall/1: what rules cost each packet, and which of them are to
// blame.
type FirewallDocument struct {
	Envelope
	From string `json:"from,omitempty"` // the file; absent for this host
	// Programs are those that the rules are of: nft, iptables-legacy, iptables-nft, ipfw, pf.
	Programs []string          `json:"programs"`
	Hooks    []FirewallHook    `json:"hooks"`
	Costly   []FirewallRule    `json:"costly"` // by position times hits
	NeverHit int               `json:"never_hit_total"`
	Findings []FirewallFinding `json:"findings"`
	Rewrite  *FirewallRewrite  `json:"rewrite,omitempty"` // of firewall optimise: of the program with most rules
	// More are those of the other programs.
	More []*FirewallRewrite `json:"more_rewrites,omitempty"`
	// Tracking is of connections, for each packet, beside the hooks; absent where no rule needs it.
	Tracking float64        `json:"tracking_nanoseconds_per_packet,omitempty"`
	Prices   FirewallPrices `json:"prices"`
	// Owners are the programs that rewrite parts of these rules when they like.
	Owners []FirewallOwner `json:"owners,omitempty"`
	Notes  []string        `json:"notes,omitempty"`
}

// FirewallOwner is what one program holds of one table.
type FirewallOwner struct {
	Program string   `json:"program,omitempty"` // absent: one that marked the table as its own
	Table   string   `json:"table"`             // family and name
	Chains  []string `json:"chains,omitempty"`  // absent: all of the table
	How     string   `json:"how,omitempty"`     // to change its rules
}

// The sources of prices.
const (
	PricesBuiltIn    = "built-in"
	PricesCalibrated = "calibrated"
)

// FirewallPrices says where the nanoseconds come from.
type FirewallPrices struct {
	Source string `json:"source"` // built-in or calibrated
	// The others are of a calibration.
	Kernel    string     `json:"kernel,omitempty"`
	Processor string     `json:"processor,omitempty"`
	Time      *time.Time `json:"time,omitempty"`
	Cases     int        `json:"cases_total,omitempty"`
	// Missing are cases without their program or module, whose prices are in proportion.
	Missing []string `json:"missing,omitempty"`
	Error   float64  `json:"error_ratio,omitempty"` // median of the cases
	New     bool     `json:"new,omitempty"`         // by this command

	Nanoseconds cost.Prices `json:"nanoseconds"`
}

// FirewallHook is the base chains of one hook of one program.
type FirewallHook struct {
	Name        string          `json:"name"`
	Program     string          `json:"program"`
	Rules       int             `json:"rules_total"`
	PerPacket   float64         `json:"rules_per_packet"`
	Nanoseconds float64         `json:"nanoseconds_per_packet"`
	Counted     bool            `json:"counted"` // by the counters; otherwise for a packet that matches nothing
	Packets     float64         `json:"packets_total,omitempty"`
	Chains      []FirewallChain `json:"chains"`
}

// FirewallChain is one base chain with those that it jumps to.
type FirewallChain struct {
	Table       string  `json:"table"`
	Chain       string  `json:"chain"`
	Priority    int     `json:"priority"`
	Rules       int     `json:"rules_total"`
	Uncounted   int     `json:"rules_without_counter_total"`
	Packets     float64 `json:"packets_total,omitempty"`
	PerPacket   float64 `json:"rules_per_packet"`
	Nanoseconds float64 `json:"nanoseconds_per_packet"`
}

// FirewallRule is one of the rules that cost most.
type FirewallRule struct {
	Table    string  `json:"table"`
	Chain    string  `json:"chain"`
	Position int     `json:"position"` // from 1
	Handle   uint64  `json:"handle,omitempty"`
	Text     string  `json:"text"`
	Hits     float64 `json:"hits_total"`
	Looks    float64 `json:"looks_total"`
	Share    float64 `json:"looks_ratio"` // of all looks at rules
}

// FirewallFinding is a pair of rules of one chain.
type FirewallFinding struct {
	Relation string `json:"relation"` // shadowed, redundant or generalised
	Table    string `json:"table"`
	Chain    string `json:"chain"`
	Position int    `json:"position"`
	Handle   uint64 `json:"handle,omitempty"`
	Text     string `json:"text"`
	Other    int    `json:"other_position"`
	OtherIs  string `json:"other_text"`
}

// FirewallCost is the cost of one ruleset.
type FirewallCost struct {
	Rules *ruleset.Ruleset
	Cost  cost.Report
}

// NewFirewall makes the document of the rulesets of one host.
func NewFirewall(e Envelope, from string, all []FirewallCost, prices FirewallPrices) *FirewallDocument {
	d := &FirewallDocument{Envelope: e.Of(SchemaFirewall), From: from, Hooks: []FirewallHook{}, Costly: []FirewallRule{},
		Findings: []FirewallFinding{}, Programs: []string{}, Prices: prices}
	uncounted, worst, cut := 0, false, false
	for _, one := range all {
		program := string(one.Rules.Program)
		d.Programs = append(d.Programs, program)
		for _, h := range one.Cost.Hooks {
			hook := FirewallHook{Name: h.Name, Program: program, Rules: h.Rules, PerPacket: tenth(h.PerPacket),
				Nanoseconds: tenth(h.Nanoseconds), Counted: h.Counted, Packets: math.Round(h.Packets)}
			worst = worst || !h.Counted && h.Rules > 0
			for _, c := range h.Chains {
				chain := FirewallChain{Table: c.Table, Chain: c.Name, Priority: c.Priority, Rules: c.Rules, Uncounted: c.Uncounted,
					PerPacket: tenth(c.PerPacket), Nanoseconds: tenth(c.Nanoseconds)}
				if c.Counted {
					chain.Packets = math.Round(c.Packets)
				}
				uncounted += c.Uncounted
				hook.Chains = append(hook.Chains, chain)
			}
			d.Hooks = append(d.Hooks, hook)
		}
		for _, r := range one.Cost.Costly {
			d.Costly = append(d.Costly, FirewallRule{Table: r.Table, Chain: r.Chain, Position: r.Position, Handle: r.Handle,
				Text: r.Text, Hits: math.Round(r.Hits), Looks: math.Round(r.Looks), Share: math.Round(r.Share*1e4) / 1e4})
		}
		for _, f := range one.Cost.Findings {
			d.Findings = append(d.Findings, FirewallFinding{Relation: string(f.Relation), Table: f.Table, Chain: f.Chain,
				Position: f.Position, Handle: f.Handle, Text: f.Text, Other: f.ByOther, OtherIs: f.Other})
		}
		for _, c := range owner.Claims(one.Rules) {
			d.Owners = append(d.Owners, FirewallOwner{Program: c.Program, Table: c.Family + " " + c.Table, Chains: c.Chains,
				How: c.How})
		}
		d.NeverHit += one.Cost.NeverHit
		d.Tracking = max(d.Tracking, tenth(one.Cost.Tracking))
		cut = cut || one.Cost.Cut
	}
	if worst {
		d.Notes = append(d.Notes, "Where no counter saw a packet, the figures are those of a packet that matches no rule.")
	}
	if uncounted > 0 && !worst {
		d.Notes = append(d.Notes, "Rules without a counter are taken to match nothing, so the figures are the highest "+
			"that the counters allow.")
	}
	if cut {
		d.Notes = append(d.Notes, "There are too many pairs of rules to compare all of them.")
	}
	if len(d.Hooks) == 0 && !prices.New {
		return d
	}
	d.Notes = append(d.Notes, ownersNotes(d.Owners)...)
	if d.Tracking > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("Rules need connection tracking, which costs each packet about %.0f ns more.",
			d.Tracking))
	}
	d.Notes = append(d.Notes, prices.note(from))
	return d
}

// ownersNotes says for each program what of the rules it will write again.
func ownersNotes(owners []FirewallOwner) (notes []string) {
	var names []string
	held, how := make(map[string][]string), make(map[string]string)
	for _, o := range owners {
		if !slices.Contains(names, o.Program) {
			names = append(names, o.Program)
		}
		what := "table " + o.Table
		if len(o.Chains) > 0 {
			what = chainsOf(o)
		}
		held[o.Program], how[o.Program] = append(held[o.Program], what), o.How
	}
	for _, name := range names {
		what := strings.Join(held[name], ", ")
		switch {
		case name == "":
			notes = append(notes, fmt.Sprintf("A running program owns %s: the kernel lets no other change it.", what))
		case how[name] == "":
			notes = append(notes, fmt.Sprintf("%s writes %s: other changes there are lost.", name, what))
		default:
			notes = append(notes, fmt.Sprintf("%s writes %s: other changes there are lost. Use %s.", name, what, how[name]))
		}
	}
	return notes
}

// chainsOf names few chains, and counts many.
func chainsOf(o FirewallOwner) string {
	const few = 3
	switch n := len(o.Chains); {
	case n == 1:
		return fmt.Sprintf("chain %s of table %s", o.Chains[0], o.Table)
	case n <= few:
		return fmt.Sprintf("chains %s of table %s", strings.Join(o.Chains, ", "), o.Table)
	default:
		return fmt.Sprintf("%d chains of table %s (%s, …)", n, o.Table, strings.Join(o.Chains[:few], ", "))
	}
}

// note says whose nanoseconds these are.
func (p FirewallPrices) note(from string) string {
	if p.Source != PricesCalibrated {
		return "The nanoseconds are those of a virtual machine with Linux 6.18. On another machine the ratios hold better; " +
			"--calibrate measures this one."
	}
	text := fmt.Sprintf("The nanoseconds were calibrated on this host (kernel %s, %s)", p.Kernel, p.Processor)
	if p.New {
		text += fmt.Sprintf(" by this command: %d rulesets in network namespaces of their own, by CPU time", p.Cases)
	}
	if len(p.Missing) > 0 {
		text += fmt.Sprintf("; %d more need a program or a kernel module that is not loaded, and their prices are in "+
			"proportion", len(p.Missing))
	}
	if from != "" {
		text += "; the rules may be of another"
	}
	return text + "."
}

func tenth(v float64) float64 { return math.Round(v*10) / 10 }

// FirewallTraceDocument is linerate.firewall-trace/1: the rules that one packet meets.
type FirewallTraceDocument struct {
	Envelope
	From   string              `json:"from,omitempty"`
	Packet string              `json:"packet"`
	Hooks  []FirewallTraceHook `json:"hooks"`
}

// FirewallTraceHook is what the packet meets at one hook.
type FirewallTraceHook struct {
	Name     string              `json:"name"`
	Program  string              `json:"program"`
	Verdict  string              `json:"verdict"`
	By       string              `json:"by"` // the chain that decided; its policy, if no rule did
	Rules    int                 `json:"rules_total"`
	Lookups  int                 `json:"lookups_total"`
	Counters int                 `json:"counters_total"` // that increase
	Matched  []FirewallTraceRule `json:"matched"`
}

// FirewallTraceRule is a rule that matches, or that may match.
type FirewallTraceRule struct {
	Table    string `json:"table"`
	Chain    string `json:"chain"`
	Position int    `json:"position"`
	Handle   uint64 `json:"handle,omitempty"`
	Text     string `json:"text"`
	Unknown  bool   `json:"unknown,omitempty"` // a condition is not modelled, and was taken not to hold
}

// NewFirewallTrace makes the document of a packet's way through the hooks that it passes.
func NewFirewallTrace(e Envelope, from string, p ruleset.Packet, all []*ruleset.Ruleset,
	hooks []string) *FirewallTraceDocument {
	d := &FirewallTraceDocument{Envelope: e.Of(SchemaFirewallTrace), From: from, Packet: p.Text(),
		Hooks: []FirewallTraceHook{}}
	for _, hook := range hooks {
		for _, r := range all {
			if len(r.Hooked(hook, p.Family())) == 0 {
				continue
			}
			for name, q := range r.Passes(hook, p) {
				h := firewallTraced(name, r, hook, q)
				if d.Hooks = append(d.Hooks, h); h.Verdict != ruleset.Accept.String() {
					return d
				}
			}
		}
	}
	return d
}

// firewallTraced is what a packet meets in one pass.
func firewallTraced(name string, r *ruleset.Ruleset, hook string, p ruleset.Packet) FirewallTraceHook {
	h := FirewallTraceHook{Name: name, Program: string(r.Program), Verdict: ruleset.Accept.String(), By: "state",
		Matched: []FirewallTraceRule{}}
	if r.PassesByState(p) {
		return h
	}
	t := r.Trace(hook, p, func(_ *ruleset.Rule, o ruleset.Opaque) (bool, bool) { return p.Answers(o) })
	h.Verdict, h.By, h.Rules, h.Lookups, h.Counters = t.Verdict.String(), "", len(t.Steps), t.Lookups, len(t.Counters)
	if t.Decided != nil {
		h.By = t.Decided.Name
		if t.Policy {
			h.By += ", policy"
		}
	}
	for _, s := range t.Steps {
		if s.Matched || s.Assumed {
			h.Matched = append(h.Matched, FirewallTraceRule{Table: s.Table.Family + " " + s.Table.Name, Chain: s.Chain.Name,
				Position: s.Index + 1, Handle: s.Rule.Handle, Text: cost.Text(s.Rule), Unknown: s.Assumed && !s.Matched})
		}
	}
	return h
}
