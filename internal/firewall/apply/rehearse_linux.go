package apply

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/firewall/read"
	"github.com/linerate/linerate/internal/firewall/ruleset"
)

// mostLinks bounds the interfaces of a rehearsal.
const mostLinks = 1024

// Rehearse makes the plan of a change of one table, of which both forms share their counters. It
// loads both into network namespaces of their own, changes the rules there and back, and reads what
// became of rules and counters. It needs root and the programs nft and ip. The error is
// [ErrRefused] if the table is not changed while packets pass.
func Rehearse(ctx context.Context, program ruleset.Program, before, after *ruleset.Table) (*Plan, error) {
	s := scopeOf(before, after)
	if len(s.changed) == 0 {
		return nil, fmt.Errorf("%w: table %s %s: nothing changes", ErrRefused, before.Family, before.Name)
	}
	if err := s.suits(before, after); err != nil {
		return nil, err
	}
	w := workshop{program: program}
	var err error
	if w.sets, err = read.SavedSets(ctx, before); err != nil {
		return nil, fmt.Errorf("rehearse the change: %w", err)
	}
	w.links, err = net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("rehearse the change: %w", err)
	}
	p := &Plan{Program: program, Family: before.Family, Table: before.Name}
	numbers := &capturing{}
	defer numbers.restore()
	for _, name := range s.changed {
		for _, r := range before.Chain(name).Rules {
			counters(r, numbers.tag)
		}
	}
	p.Counters = len(numbers.seen)
	for _, form := range []*ruleset.Table{before, after} {
		err := apart(func() error {
			k, err := hold(ctx, false)
			if err != nil {
				return err
			}
			defer k.release()
			if err := w.furnish(ctx, k, form); err != nil {
				return err
			}
			t, err := k.table(ctx, program, form.Family, form.Name)
			if err != nil {
				return err
			}
			state, err := stateOf(t, s, form == after)
			if err == nil {
				p.States = append(p.States, state)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("rehearse the change of table %s %s: %w", before.Family, before.Name, err)
		}
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := apart(func() error { return p.act(ctx, &w, before) }); err != nil {
		return nil, fmt.Errorf("rehearse the change of table %s %s: %w", before.Family, before.Name, err)
	}
	return p, nil
}

// apart runs a function in a network namespace of its own.
func apart(f func() error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread and its namespace end with this function
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			err = f()
		}
	}()
	<-done
	return err
}

// workshop is what a rehearsal needs besides a table.
type workshop struct {
	program ruleset.Program
	links   []net.Interface
	sets    []byte // of ipset
}

// furnish loads a table into an empty namespace, with the sets of ipset and the interfaces of this
// one that its text names. They stay down.
func (w *workshop) furnish(ctx context.Context, k *keeper, t *ruleset.Table) error {
	var text, batch strings.Builder
	if xtables(w.program) {
		if len(w.sets) > 0 {
			if _, err := k.run(ctx, string(w.sets), "ipset", "restore"); err != nil {
				return err
			}
		}
		err := ruleset.WriteXtables(&text, &ruleset.Ruleset{Program: w.program, Tables: []*ruleset.Table{t}})
		if err != nil {
			return err
		}
		_, err = k.run(ctx, text.String(), read.XTables(w.program, t.Family, "restore"), "-c")
		return err
	}
	if err := ruleset.WriteNFT(&text, &ruleset.Ruleset{Program: ruleset.NFT, Tables: []*ruleset.Table{t}}); err != nil {
		return err
	}
	n := 0
	for _, l := range w.links {
		if l.Name != "lo" && n < mostLinks && strings.Contains(text.String(), l.Name) {
			n++
			fmt.Fprintf(&batch, "link add name %s type veth peer name lrpeer%d\n", l.Name, n)
		}
	}
	if n > 0 {
		if _, err := k.run(ctx, batch.String(), "ip", "-batch", "-"); err != nil {
			return err
		}
	}
	return k.load(ctx, w.program, t.Family, text.String())
}

// stateOf returns a form as nft prints it. Its counters hold their numbers.
func stateOf(t *ruleset.Table, s scope, own bool) (State, error) {
	var out State
	c := &capturing{}
	defer c.restore()
	chains := func(names []string) ([]Chain, error) {
		var all []Chain
		for _, name := range names {
			chain := Chain{Name: name}
			if t.Chain(name) == nil {
				return nil, fmt.Errorf("chain %s was not loaded", name)
			}
			for _, r := range t.Chain(name).Rules {
				numbered := func(n *ruleset.Counter) bool { return n.Packets >= tagged }
				fresh := r.Text != "" && !slices.ContainsFunc(r.Counters(), numbered)
				untag(r)
				l, err := c.rule(r)
				if err != nil {
					return nil, err
				}
				if fresh {
					l.Counters = nil
				}
				chain.Rules = append(chain.Rules, l)
			}
			all = append(all, chain)
		}
		return all, nil
	}
	var err error
	if out.Chains, err = chains(s.changed); err != nil {
		return out, err
	}
	if own {
		if out.Own, err = chains(s.own); err != nil {
			return out, err
		}
		for _, name := range s.sets {
			set := t.Set(name)
			if set == nil {
				return out, fmt.Errorf("set %s was not loaded", name)
			}
			for _, e := range set.Elements {
				if e.Counter != nil {
					e.Counter.Packets -= tagged
				}
			}
			printed, err := c.set(t, set)
			if err != nil {
				return out, err
			}
			out.Sets = append(out.Sets, printed)
		}
	}
	// A counter was loaded with its number in the plan, and was just met in another order.
	renumber := func(lines []Line) {
		for _, l := range lines {
			for i, n := range l.Counters {
				l.Counters[i] = int(c.values[n].Packets)
			}
		}
	}
	for _, chain := range append(out.Chains[:len(out.Chains):len(out.Chains)], out.Own...) {
		renumber(chain.Rules)
	}
	for _, set := range out.Sets {
		renumber(set.Elements)
	}
	out.seal()
	return out, nil
}

// untag makes numbers of the values that the counters of a rule were loaded with.
func untag(r *ruleset.Rule) {
	counters(r, func(c *ruleset.Counter) {
		if c.Packets >= tagged {
			c.Packets -= tagged
		}
	})
}

// act changes the rules and back, and compares rules and counters.
func (p *Plan) act(ctx context.Context, w *workshop, before *ruleset.Table) error {
	k, err := hold(ctx, false)
	if err != nil {
		return err
	}
	err = w.furnish(ctx, k, before)
	k.release()
	if err != nil {
		return err
	}
	b := &Tables{apart: true}
	b.remember(p)
	for _, v := range []knob.Value{p.From(), p.To(), p.From()} {
		if err := b.write(ctx, p.ID(), v); err != nil {
			return err
		}
		k, err := hold(ctx, false)
		if err != nil {
			return err
		}
		seen, err := p.live(ctx, k)
		k.release()
		if err != nil {
			return err
		}
		if seen.front == nil || seen.front.Value != v || seen.back != nil {
			return errors.New("the rules did not become what they should")
		}
		for i, n := range seen.now {
			if want := uint64(tagged + i); n.Packets != want || n.Bytes != want {
				return fmt.Errorf("counter %d became %d packets, %d bytes", i, n.Packets-tagged, n.Bytes-tagged)
			}
		}
	}
	return nil
}
