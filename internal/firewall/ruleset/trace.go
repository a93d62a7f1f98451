package ruleset

// Step is one rule that a packet met.
type Step struct {
	Table   *Table
	Chain   *Chain
	Index   int // of the rule in its chain, from 0
	Rule    *Rule
	Matched bool // every condition held
	// Assumed is set if an opaque condition was answered by assumption.
	Assumed bool
	Verdict Verdict
}

// Trace is what one packet met at one hook.
type Trace struct {
	Steps    []Step
	Met      int        // rules that the packet was compared with
	Lookups  int        // in sets and maps
	Counters []*Counter // that increased, in order; one may appear twice
	Verdict  Kind       // Accept, Drop or Reject
	// Decided is the base chain that decided, and Policy reports that its policy did.
	Decided *Chain
	Policy  bool
	// Cut is set if the rules jump deeper than the kernel allows or in a circle; the kernel refuses
	// such rules, but half a file may have them.
	Cut bool

	brief bool // keeps only steps that matched
}

// Assume answers an opaque condition; nil answers no. known is false for an assumption, which marks
// the step.
type Assume func(*Rule, Opaque) (holds, known bool)

// deepest is NFT_JUMP_STACK_SIZE of nf_tables.h; iptables allows as many as a table has chains.
const deepest = 16

// mostSteps bounds one walk. It exceeds any ruleset that the kernel loads in its time.
const mostSteps = 1 << 18

// Trace walks a packet through all base chains of a hook.
func (r *Ruleset) Trace(hook string, p Packet, assume Assume) Trace {
	return r.trace(hook, p, assume, Trace{Verdict: Accept})
}

// TraceMatches is Trace, and returns only the steps that matched, which takes half of the time.
func (r *Ruleset) TraceMatches(hook string, p Packet, assume Assume) Trace {
	return r.trace(hook, p, assume, Trace{Verdict: Accept, brief: true})
}

func (r *Ruleset) trace(hook string, p Packet, assume Assume, t Trace) Trace {
	for _, h := range r.Hooked(hook, p.Family()) {
		// Only the first packet of a connection passes nat chains.
		if h.Chain.Type == "nat" && p.State != StateNew {
			continue
		}
		if len(h.Chain.Devices) > 0 && !has(h.Chain.Devices, p, hook) {
			continue
		}
		if t.walk(h.Table, h.Chain, p, assume); t.Verdict != Accept {
			break
		}
	}
	return t
}

func has(devices []string, p Packet, hook string) bool {
	name := p.In
	if hook == "egress" {
		name = p.Out
	}
	for _, d := range devices {
		if Names(d).Contains(Name(name)) {
			return true
		}
	}
	return false
}

// WalkMatches walks a packet through one base chain of a table, and returns the steps that matched.
func (t *Table) WalkMatches(c *Chain, p Packet, assume Assume) Trace {
	trace := Trace{brief: true}
	trace.walk(t, c, p, assume)
	return trace
}

type frame struct {
	chain *Chain
	next  int
}

// walk follows the rules from a base chain until one decides.
func (t *Trace) walk(table *Table, base *Chain, p Packet, assume Assume) {
	depth := deepest
	if table.Family == "ip" || table.Family == "ip6" {
		depth = max(depth, len(table.Chains))
	}
	at := frame{chain: base}
	var stack []frame
	provisional := None
	decide := func(k Kind, policy bool) {
		t.Verdict, t.Decided, t.Policy = k, base, policy
	}
	for {
		if t.Met > mostSteps {
			t.Cut = true
			decide(Drop, false)
			return
		}
		if at.next >= len(at.chain.Rules) {
			if len(stack) > 0 {
				at, stack = stack[len(stack)-1], stack[:len(stack)-1]
				continue
			}
			break
		}
		rule := at.chain.Rules[at.next]
		step := Step{Table: table, Chain: at.chain, Index: at.next, Rule: rule}
		at.next++
		v, ends := t.rule(rule, p, assume, &step)
		step.Verdict = v
		if t.Met++; step.Matched || !t.brief {
			t.Steps = append(t.Steps, step)
		}
		switch {
		case v.Provisional:
			provisional = v.Kind
			continue
		case ends:
			decide(Accept, false)
			return
		}
		switch v.Kind {
		case Accept, Drop, Reject:
			decide(v.Kind, false)
			return
		case Return:
			if len(stack) == 0 {
				at.next = len(at.chain.Rules)
			} else {
				at, stack = stack[len(stack)-1], stack[:len(stack)-1]
			}
		case Jump, Goto:
			to := table.Chain(v.Chain)
			if to == nil || len(stack) >= depth {
				t.Cut = true
				decide(Drop, false)
				return
			}
			if v.Kind == Jump {
				stack = append(stack, at)
			}
			at = frame{chain: to}
		case Skip:
			for at.next < len(at.chain.Rules) && at.chain.Rules[at.next].Number < v.Number {
				at.next++
			}
		}
	}
	if provisional != None {
		decide(provisional, false)
		return
	}
	if base.Counter != nil {
		t.Counters = append(t.Counters, base.Counter)
	}
	if base.Policy == Drop {
		decide(Drop, true)
		return
	}
	decide(Accept, true)
}

// fails reports whether one of the conditions that this model knows does not hold for a packet.
// Without an opaque statement that ends the chain or changes the packet before it, the rule then
// does not match.
func fails(statements []Statement, p Packet) bool {
	for _, s := range statements {
		switch s := s.(type) {
		case Match:
			if ok, _ := s.Holds(p); !ok {
				return true
			}
		case VerdictMap:
			values, ok := hits(s.Key, p)
			return !ok || s.Set.Find(values) == nil
		case Verdict:
			return false
		case Opaque:
			if s.Ends || !s.Conditional {
				return false
			}
		}
	}
	return false
}

// rule evaluates the statements of one rule. ends is set if an opaque statement ends the chain.
func (t *Trace) rule(r *Rule, p Packet, assume Assume, step *Step) (v Verdict, ends bool) {
	for i, s := range r.Statements {
		switch s := s.(type) {
		case Match:
			if s.Set != nil {
				t.Lookups++
			}
			ok, element := s.Holds(p)
			if !ok {
				return Verdict{}, false // and an element that ends a negated match counts nothing
			}
			if element != nil && element.Counter != nil {
				t.Counters = append(t.Counters, element.Counter)
			}
		case *Counter:
			t.Counters = append(t.Counters, s)
		case Verdict:
			step.Matched = true
			return s, false
		case VerdictMap:
			t.Lookups++
			values, ok := hits(s.Key, p)
			if !ok {
				return Verdict{}, false
			}
			element := s.Set.Find(values)
			if element == nil {
				return Verdict{}, false
			}
			if element.Counter != nil {
				t.Counters = append(t.Counters, element.Counter)
			}
			step.Matched = true
			return element.Verdict, false
		case Opaque:
			if s.Conditional {
				holds, known := false, false
				if assume != nil {
					holds, known = assume(r, s)
				}
				// A later condition that fails decides, whatever this one answers.
				step.Assumed = step.Assumed || !known && !fails(r.Statements[i+1:], p)
				if !holds {
					return Verdict{}, false
				}
			}
			if s.Ends {
				step.Matched = true
				return Verdict{}, true
			}
		}
	}
	step.Matched = true
	return Verdict{}, false
}
