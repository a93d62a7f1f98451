package loop

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host"
)

// Asked is a setting that the user wants tried, as a file of tuning advice has it.
type Asked struct {
	Knob    knob.ID    // the name of its interface stands for the NIC that carries the path
	Value   knob.Value // as written
	AtLeast bool       // the value is a least one: a host with a larger number has it
	Why     string     // where it comes from: "line 3 of net.conf"
	Refused string     // why it is tried on no host; empty: it is
}

// askedFor returns a candidate for each asked setting at each end that has the knob, in their
// order, and the reasons against those that cannot help there. A later setting of a knob replaces
// an earlier one, as it does when a file is applied.
//
// A setting that is tried nowhere stands once, at the near end.
func askedFor(ctx context.Context, v *Verdict, asked []Asked, hosts map[tune.Side]reader) (
	[]tune.Candidate, map[target]string) {
	var all []tune.Candidate
	reasons, at := map[target]string{}, map[target]int{}
	add := func(on target, a Asked, value knob.Value, reason string) {
		c := tune.Candidate{Knob: on.knob, Side: on.side, Levels: []knob.Value{value}, Why: a.Why}
		if i, again := at[on]; again {
			all[i] = c
		} else {
			at[on] = len(all)
			all = append(all, c)
		}
		reasons[on] = reason
	}
	for _, a := range asked {
		d, known := knob.Catalogue().Lookup(a.Knob)
		if a.Refused != "" || !known {
			add(target{tune.Near, a.Knob}, a, a.Value, a.Refused)
			continue
		}
		for _, side := range []tune.Side{tune.Near, tune.Far} {
			if hosts[side] == nil {
				continue
			}
			on := target{side, onPath(a.Knob, v.cardOf(side))}
			present, err := hosts[side].Read(ctx, on.knob)
			value, invalid := d.Normalize(a.Value)
			switch {
			case err != nil:
				add(on, a, a.Value, "") // the plan reads it again, and shows the reason
			case invalid != nil:
				add(on, a, a.Value, invalid.Error())
			case d.Equal(present, value), a.AtLeast && larger(present, value):
				add(on, a, value, "this host has it already")
			default:
				add(on, a, value, "")
			}
		}
	}
	return all, reasons
}

// PlanNear returns what a tune would do with asked settings at this host, as far as that is known
// without a path: the far end, the times and what a finding adds are not. Settings of the path's
// NIC are those of card, and refused without one.
func PlanNear(ctx context.Context, near tune.Host, h *host.Snapshot, card *host.Interface, asked []Asked,
	allow knob.Disturbance) *Plan {
	v := &Verdict{}
	v.Near = h
	asked = slices.Clone(asked)
	for i, a := range asked {
		switch own := a.Knob.Interface(); {
		case own == "" || a.Refused != "":
		case card == nil:
			asked[i].Refused = "the NIC that carries the path is only known with a TARGET"
		default:
			asked[i].Knob = onPath(a.Knob, card)
		}
	}
	o := TuneOptions{Allow: allow}
	hosts := map[tune.Side]reader{tune.Near: near}
	refused := o.refusals(v, near)
	candidates, reasons := askedFor(ctx, v, asked, hosts)
	refused.asked = reasons
	p := &Plan{}
	p.fill(ctx, o, candidates, refused, hosts)
	return p
}

// larger reports whether two values are numbers of which the first is the larger.
func larger(a, b knob.Value) bool {
	x, err := strconv.ParseInt(string(a), 10, 64)
	y, invalid := strconv.ParseInt(string(b), 10, 64)
	return err == nil && invalid == nil && x > y
}

// onPath returns a knob with the NIC that carries the path in the place of its own interface; the
// knob itself if it has none, or if that NIC is not known.
func onPath(id knob.ID, card *host.Interface) knob.ID {
	own := id.Interface()
	if own == "" || card == nil {
		return id
	}
	if id.Kind() != knob.KindSysctl {
		before := id.Kind() + ":"
		return knob.ID(before + card.Name + strings.TrimPrefix(string(id), before+own))
	}
	elements := id.Path()
	elements[3] = card.Name // net.ipv4.conf.IF.x
	for i := range elements {
		elements[i] = strings.ReplaceAll(elements[i], ".", "/") // as sysctl(8) writes a VLAN's name
	}
	return knob.ID(knob.KindSysctl + ":" + strings.Join(elements, "."))
}
