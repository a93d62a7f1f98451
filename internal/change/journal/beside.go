package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
)

// Some writes set more than their knob: another I/O scheduler gives a disk a new queue, another
// number of channels makes a driver start its NIC again. The backend lists the knobs that such a
// write may set ([knob.Coupler]). The journal reads them before and after the write, keeps those
// that changed with the change, and brings them back with it. A coupled knob that another program
// has set since is left alone, and so is one that has a change of its own on top; if only the write
// of the undo moves it, it gets back what it held before that write.

// coupled returns what the knobs hold that a write of id may set as well. One that is not there
// now, or cannot be read, is missing.
func (j *Journal) coupled(ctx context.Context, id knob.ID) []knob.Setting {
	coupler, ok := knob.As[knob.Coupler](j.options.Backend)
	if !ok {
		return nil
	}
	all := coupler.Coupled(ctx, id)
	for i := range all {
		all[i].Value = j.canonical(all[i].Knob, all[i].Value)
	}
	return all
}

// holding returns what a coupled knob holds: [knob.Absent] when it is not there.
func holding(all []knob.Setting, id knob.ID) knob.Value {
	for _, s := range all {
		if s.Knob == id {
			return s.Value
		}
	}
	return knob.Absent
}

// sideEffects returns which coupled knobs no longer hold what they held before the write.
func (j *Journal) sideEffects(ctx context.Context, e *entry) []SideEffect {
	if len(e.Beside) == 0 {
		return nil
	}
	var all []SideEffect
	now := j.coupled(ctx, e.Knob)
	for _, b := range e.Beside {
		if v := holding(now, b.Knob); !j.same(b.Knob, v, b.Value) {
			all = append(all, SideEffect{Knob: b.Knob, From: b.Value, To: v})
		}
	}
	return all
}

// besideRounds is how often putBeside writes what does not hold yet: one coupled knob may bound
// another, as the switch of adaptive moderation bounds its times.
const besideRounds = 2

// putBeside brings knobs back that are coupled to id, and returns what the note says of that. It
// writes only what the backend calls coupled, whatever the journal says.
func (j *Journal) putBeside(ctx context.Context, id knob.ID, wanted []knob.Setting) (note string, err error) {
	if len(wanted) == 0 {
		return "", nil
	}
	var put []string
	var errs []error
	for range besideRounds {
		now := j.coupled(ctx, id)
		left := slices.DeleteFunc(slices.Clone(wanted), func(w knob.Setting) bool {
			v := holding(now, w.Knob) // one that went with a queue is nowhere to be put back
			return v == knob.Absent || j.same(w.Knob, v, w.Value)
		})
		wanted, errs = nil, nil
		for _, w := range left {
			err := j.options.Backend.Write(ctx, w.Knob, w.Value)
			if errors.Is(err, knob.ErrReadOnly) {
				continue // the kernel places such an interrupt itself
			}
			v, readErr := j.read(ctx, w.Knob)
			if readErr == nil && j.same(w.Knob, v, w.Value) {
				put = append(put, string(w.Knob))
				continue
			}
			if err = errors.Join(err, readErr); err == nil {
				err = fmt.Errorf("it holds %s", v)
			}
			wanted = append(wanted, w)
			errs = append(errs, fmt.Errorf("put back %s of %s, which was set as well: %w", w.Value, w.Knob, err))
		}
		if len(wanted) == 0 {
			break
		}
	}
	const most = 3
	switch {
	case len(put) > most:
		note = "; " + unit.Counted(len(put), "other knob") + " put back as well"
	case len(put) > 0:
		note = "; put back as well: " + strings.Join(put, ", ")
	}
	return note, errors.Join(errs...)
}

// beside returns what the coupled knobs have to hold when the change is gone, by the names that
// they had when it was made.
func (r *restoration) beside(ctx context.Context) []knob.Setting {
	j, e := r.j, r.e
	switch {
	case e.Phase == phaseUndoing || e.Phase == phaseIntent && j.rounded(e):
		return e.Beside
	case e.Phase == phaseIntent:
		return nil // what differs now may be another program's choice
	}
	wanted := j.coupled(ctx, r.id)
	for i := range wanted {
		wanted[i].Knob = renamed(wanted[i].Knob, r.id, e.Knob)
	}
	for _, s := range e.SideEffects {
		at := slices.IndexFunc(wanted, func(w knob.Setting) bool { return w.Knob == s.Knob })
		own := j.history.changed(e, s)
		switch {
		case at < 0 && s.To == knob.Absent && own != nil:
			wanted = append(wanted, knob.Setting{Knob: s.Knob, Value: own.To})
		case at < 0 && s.To == knob.Absent:
			wanted = append(wanted, knob.Setting{Knob: s.Knob, Value: s.From})
		case at < 0 || own != nil:
			// Another write has removed it, or a change of its own is in force.
		case s.To == knob.Absent || j.same(s.Knob, wanted[at].Value, s.To):
			// One that was not there and is now has its value from the write that made it anew.
			wanted[at].Value = s.From
		}
	}
	return wanted
}

// putBeside brings the coupled knobs back under their present names.
func (r *restoration) putBeside(ctx context.Context, wanted []knob.Setting) (note string, err error) {
	now := slices.Clone(wanted)
	for i := range now {
		now[i].Knob = renamed(now[i].Knob, r.e.Knob, r.id)
	}
	return r.j.putBeside(ctx, r.id, now)
}

// renamed returns a knob that is coupled to one of an interface under the name that this has there.
func renamed(id, from, to knob.ID) knob.ID {
	if name := from.Interface(); name != "" && id.Interface() == name {
		return onInterface(id, to.Interface())
	}
	return id
}

// keeps reports whether an unfinished step of a change has still to bring an object back.
func (e *entry) keeps(of object) bool {
	return slices.ContainsFunc(e.Beside, func(w knob.Setting) bool {
		return e.objectOf(SideEffect{Knob: w.Knob}).same(of)
	})
}

// withInterrupted adds to changes the unfinished undos that have moved their knobs.
func (j *Journal) withInterrupted(entries []*entry) []*entry {
	all := slices.Clone(entries)
	for _, other := range j.history.entries {
		if other.Phase != phaseUndoing || slices.Contains(all, other) {
			continue
		}
		if slices.ContainsFunc(entries, func(e *entry) bool {
			return e.Phase != phaseDone && other.keeps(e.object())
		}) {
			all = append(all, other)
		}
	}
	return all
}

// ends adjusts what unfinished undos of other changes keep: a value that this change gave a coupled
// knob is over with it.
func (h *history) ends(e *entry) {
	for _, other := range h.entries {
		if other == e || other.Phase != phaseUndoing {
			continue
		}
		other.Beside = slices.Clone(other.Beside)
		for i := range other.Beside {
			w := &other.Beside[i]
			of := other.objectOf(SideEffect{Knob: w.Knob})
			if w.Value == e.To && e.object().same(of) {
				w.Value = e.From
			}
			for _, s := range e.SideEffects {
				if w.Value == s.To && e.objectOf(s).same(of) {
					w.Value = s.From
				}
			}
			// The value may now be what the other change itself has left.
			for _, s := range other.SideEffects {
				if w.Knob == s.Knob && w.Value == s.To {
					w.Value = s.From
				}
			}
		}
	}
}

// changed returns the newest later change of a coupled knob that is in force, nil without one.
func (h *history) changed(e *entry, s SideEffect) (newest *entry) {
	of := e.objectOf(s)
	for _, later := range h.entries[slices.Index(h.entries, e)+1:] {
		if later.Phase != phaseDone && later.object().same(of) {
			newest = later
		}
	}
	return newest
}

// objectOf returns the object of a knob that the change set as well.
func (e *entry) objectOf(s SideEffect) object {
	o := object{BootID: e.BootID, Knob: s.Knob}
	switch {
	case s.Knob.Interface() != "" && s.Knob.Interface() == e.Knob.Interface():
		o.Identity = e.Identity
	case inNamespace(s.Knob):
		o.Identity.Namespace = e.Identity.Namespace
	}
	return o
}

// setAsWell returns which side effect of a later change found a value on the object; below 0: none.
// What was absent may have any value since.
func (e *entry) setAsWell(of object, found knob.Value) int {
	return slices.IndexFunc(e.SideEffects, func(s SideEffect) bool {
		return (s.From == found || found == knob.Absent) && e.objectOf(s).same(of)
	})
}

// foundAs sets what a side effect goes back to. Copies of the change share the list.
func (e *entry) foundAs(at int, v knob.Value) {
	e.SideEffects = slices.Clone(e.SideEffects)
	e.SideEffects[at].From = v
}

// inherit gives the old value of a change, and what it set as well, to the change on top of it.
func (h *history) inherit(heir, e *entry) {
	if heir.object().same(e.object()) || heir.Knob == e.Knob {
		heir.From = e.From
	} else if at := heir.setAsWell(e.object(), e.To); at >= 0 {
		heir.foundAs(at, e.From)
	}
	// Whatever the heir found as e left it would have come from the heir without e.
	rest := h.passOn(e, heir)
	heir.SideEffects = append(slices.Clone(heir.SideEffects), rest...)
}

// passOn gives what the coupled knobs held before a change to later changes in force that found
// them as this one left them, no later than last; nil stands for the newest. It returns those that
// no such change has touched.
func (h *history) passOn(e, last *entry) (rest []SideEffect) {
	at := slices.Index(h.entries, e)
	for _, s := range e.SideEffects {
		if !taken(h.entries[at+1:], last, s, e.objectOf(s)) {
			rest = append(rest, s)
		}
	}
	return rest
}

// taken gives what one knob held before a change to the first of later changes that found it as the
// change left it.
func taken(later []*entry, last *entry, s SideEffect, of object) bool {
	for _, e := range later {
		switch at := e.setAsWell(of, s.To); {
		case e.Phase == phaseDone:
		case (e.From == s.To || s.To == knob.Absent) && e.object().same(of):
			e.From = s.From
			return true
		case at >= 0:
			e.foundAs(at, s.From)
			return true
		}
		if e == last {
			break
		}
	}
	return false
}
