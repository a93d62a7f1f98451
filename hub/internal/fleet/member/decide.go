package member

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
)

// running is what the hub knows about the node that runs for a member.
type running struct {
	instance string
	past     []string // instances before it, the latest last
	returns  int      // times that one of them came back
}

// How many earlier instances of a host are kept, and how often one of them must return before the
// host counts as two. A single message that overtakes another on its way is not enough.
const (
	pastInstances  = 8
	returnsOfClone = 2
)

// Beat looks at a sign of life. It returns the member with changed set if the message shows that
// two nodes run with one key; the member is then quarantined. A host that is no member is a
// *Refusal.
func (r *Registry) Beat(id, instance, machine string) (m Member, changed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.members[id]
	if one == nil {
		return Member{}, false, errUnknown
	}
	if one.State != Joined {
		return *one, false, refusal(one)
	}
	reason := ""
	if machine != one.Machine && machine != "" && one.Machine != "" {
		reason = "its key speaks from another machine: a copied key, or a new machine id"
	} else if r.returned(id, instance) {
		reason = "two nodes speak with its key in turn: a copy of the whole disk"
	}
	if reason == "" {
		return *one, false, nil
	}
	next := *one
	next.State, next.Reason = Quarantined, reason
	b := r.put(record{Member: &next})
	delete(r.runs, id)
	r.mu.Unlock()
	err = b.wait()
	r.mu.Lock()
	return next, true, err
}

// returned notes an instance, and reports whether it shows a second node. The caller holds r.mu.
func (r *Registry) returned(id, instance string) bool {
	run := r.runs[id]
	switch {
	case run == nil:
		r.runs[id] = &running{instance: instance}
		return false
	case run.instance == instance:
		return false
	}
	if slices.Contains(run.past, instance) {
		run.returns++
	}
	run.past = append(slices.DeleteFunc(run.past, func(p string) bool { return p == instance }), run.instance)
	if len(run.past) > pastInstances {
		run.past = run.past[1:]
	}
	run.instance = instance
	return run.returns >= returnsOfClone
}

// Decide sets the state of a member by a person's decision, and returns its state before and after.
// A removed member stays removed.
func (r *Registry) Decide(id string, to State, reason string) (before, after Member, err error) {
	r.mu.Lock()
	m := r.members[id]
	if m == nil {
		r.mu.Unlock()
		return before, after, fmt.Errorf("%.40q: %w", id, ErrNoMember)
	}
	if m.State == Removed {
		r.mu.Unlock()
		return *m, *m, fmt.Errorf("%s (%s) is removed; the host has to join again", m.ID, m.Name)
	}
	next := *m
	next.State, next.Reason = to, reason
	if to == Joined {
		next.Reason = ""
		next.Renewed = r.now().UTC() // a person has seen it now, however long it was silent
	}
	delete(r.runs, id)
	b := r.put(record{Member: &next})
	r.mu.Unlock()
	return *m, next, b.wait()
}

// Withdraw ends an invitation.
func (r *Registry) Withdraw(id string) error {
	r.mu.Lock()
	i := r.invites[id]
	if i == nil {
		r.mu.Unlock()
		return fmt.Errorf("%.40q: %w", id, ErrNoMember)
	}
	next := *i
	next.Withdrawn = true
	b := r.put(record{Invitation: &next})
	r.mu.Unlock()
	return b.wait()
}

// Get returns a member.
func (r *Registry) Get(id string) (Member, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[id]; m != nil {
		return *m, true
	}
	return Member{}, false
}

// Members returns all members, removed ones too, in the order of their ids, which is that of
// joining.
func (r *Registry) Members() []Member {
	r.mu.Lock()
	all := make([]Member, 0, len(r.members))
	for _, m := range r.members {
		all = append(all, *m)
	}
	r.mu.Unlock()
	sorting.Func(all, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Invitations returns the invitations that can still be used, the one that ends first first.
func (r *Registry) Invitations() []Invitation {
	now := r.now()
	r.mu.Lock()
	var all []Invitation
	for _, i := range r.invites {
		if !i.Withdrawn && i.Used < i.Uses && now.Before(i.Expires) {
			all = append(all, *i)
		}
	}
	r.mu.Unlock()
	sorting.Func(all, func(a, b Invitation) int { return a.Expires.Compare(b.Expires) })
	return all
}
