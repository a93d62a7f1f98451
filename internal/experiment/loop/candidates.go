package loop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/owner"
)

// target is one knob at one end.
type target struct {
	side tune.Side
	knob knob.ID
}

// candidatesOf returns what the findings propose, most important first, each knob and side once.
//
// The first proposal of a knob wins, because it comes from the more important finding and its
// levels fit that one. A notice proposes nothing, because it has no proven cost: a trial would take
// minutes, and of many useless trials some pass by chance. Knobs that the user names are tried
// anyway.
func candidatesOf(findings []evidence.Finding, wanted func(knob.ID) bool) []tune.Candidate {
	seen := map[target]bool{}
	var all []tune.Candidate
	for _, f := range findings {
		if wanted == nil && f.Severity != evidence.Warning && f.Severity != evidence.Critical {
			continue
		}
		for _, s := range f.Remedy.Settings {
			at := target{tune.Side(s.Side), s.Knob}
			if seen[at] || (wanted != nil && !wanted(s.Knob)) {
				continue
			}
			seen[at] = true
			all = append(all, tune.Candidate{Knob: s.Knob, Side: at.side, Levels: s.Levels, Why: s.Why})
		}
	}
	return all
}

// reader is the part of a host that a plan needs.
type reader interface {
	Read(ctx context.Context, id knob.ID) (knob.Value, error)
}

// widen adds candidates for the knobs that the user named and no finding proposed: on both ends, if
// that end has the knob, at the levels of its definition. They come after those of the findings,
// which have a reason.
func widen(ctx context.Context, v *Verdict, o TuneOptions, hosts map[tune.Side]reader,
	found []tune.Candidate) []tune.Candidate {
	all := slices.Clone(found)
	seen := map[target]bool{}
	for _, c := range found {
		seen[target{c.Side, c.Knob}] = true
	}
	for _, d := range o.Wide {
		if d.Advise || d.Disturbance > o.Allow {
			continue
		}
		for _, side := range []tune.Side{tune.Near, tune.Far} {
			for _, id := range instancesOn(d.Pattern, v.cardOf(side)) {
				at := target{side, id}
				if seen[at] || hosts[side] == nil || (o.Knobs != nil && !o.Knobs(id)) {
					continue
				}
				seen[at] = true
				present, err := hosts[side].Read(ctx, id)
				if err != nil {
					continue // that end does not have the knob
				}
				if levels := d.Levels(present); len(levels) > 0 {
					all = append(all, tune.Candidate{Knob: id, Side: side, Levels: levels, Why: "asked for by name"})
				}
			}
		}
	}
	return all
}

// cardOf returns the NIC at one end that carries the loaded flow; nil if unknown.
func (v *Verdict) cardOf(side tune.Side) *host.Interface {
	for _, f := range evidence.FlowsOf(&v.Case) {
		for _, e := range []evidence.End{f.Sender, f.Receiver} {
			if e.Name == string(side) && e.Card != nil {
				return e.Card
			}
		}
	}
	return nil
}

// instancesOn returns the knobs of a catalogue pattern on the path: those of the NIC that carries
// it, and those without a NIC. Routes, CPUs, mounts and similar have none, because nothing connects
// one of them with the path.
func instancesOn(pattern knob.ID, card *host.Interface) []knob.ID {
	text := string(pattern)
	if !strings.Contains(text, "*") {
		return []knob.ID{pattern}
	}
	if card == nil || pattern.Interface() == "" && !strings.Contains(text, ".*.") {
		return nil
	}
	name := card.Name
	if pattern.Kind() == knob.KindSysctl {
		name = strings.ReplaceAll(name, ".", "/")
	}
	one := strings.Replace(text, "*", name, 1)
	if !strings.Contains(one, "*") {
		return []knob.ID{knob.ID(one)}
	}
	if pattern.Kind() != knob.KindQueue {
		return nil // "every feature": each useful one has a definition of its own
	}
	var all []knob.ID
	for _, q := range card.Queues {
		// The spelling of the queue is rx-0; a pattern of the other direction does not fit.
		id := knob.ID(knob.KindQueue + ":" + name + "/" + q.Name + "/" + pattern.Attribute())
		if id.Fits(pattern) {
			all = append(all, id)
		}
	}
	return all
}

// foreseer is a host that can predict, without writing, that a write would be refused.
type foreseer interface {
	Foresee(ctx context.Context, s knob.Setting) error
}

// refusals has the reasons against candidates that are known before any change.
type refusals struct {
	allow      knob.Disturbance
	farFixed   string               // why the far end must not change; empty: it may
	farRefuses func(knob.ID) string // why the far end must not change one knob; nil: it may change all
	owners     map[tune.Side][]owner.Owner
	force      bool // also try knobs that another program owns
	near       foreseer
	asked      map[target]string // reasons against settings that the user asked for; empty: none
}

// of returns the reason as a clause, or nothing.
func (r refusals) of(ctx context.Context, c tune.Candidate) string {
	if why := r.asked[target{c.Side, c.Knob}]; why != "" {
		return why
	}
	d, known := lookup(c.Knob)
	switch {
	case len(c.Levels) == 0:
		return "no level to try"
	case !known:
		return "not in the catalogue"
	case d.Advise:
		return "only ever reported: " + d.Risk
	case d.Disturbance > r.allow:
		return fmt.Sprintf("disturbs running traffic (class d%d, allowed is d%d; --allow d%d widens)", d.Disturbance,
			r.allow, d.Disturbance)
	case c.Side == tune.Far && r.farFixed != "":
		return r.farFixed
	case c.Side == tune.Far && r.farRefuses != nil:
		if why := r.farRefuses(c.Knob); why != "" {
			return why
		}
	}
	if !r.force {
		for _, o := range r.owners[c.Side] {
			if why := o.Reapplies(string(c.Knob)); why != "" {
				return why + "; --force-owned tries it anyway"
			}
		}
	}
	if c.Side != tune.Near || r.near == nil {
		return ""
	}
	err := r.near.Foresee(ctx, knob.Setting{Knob: c.Knob, Value: c.Levels[0]})
	for _, answer := range []error{fs.ErrPermission, fs.ErrNotExist, knob.ErrNotSupported, knob.ErrReadOnly} {
		if errors.Is(err, answer) {
			if of := (*knob.Error)(nil); errors.As(err, &of) {
				err = of.Err // the caller names the knob
			}
			return err.Error()
		}
	}
	return "" // the trial reveals what a check cannot foresee
}
