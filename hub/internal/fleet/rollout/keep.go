package rollout

import "github.com/linerate/linerate/internal/peer/order"

// Kept reports whether the host has confirmed the change and not taken it back.
func (s State) Kept() bool { return s == Committed || s == Persisted || s == NotPersistable }

// takesUndo reports whether an undo has something to take back: a change, or files of it that
// another program's value hides until the next start.
func (t *track) takesUndo() bool { return t.state.Kept() || t.state == Drifted && t.filed }

// persisted notes that files bring the change back at the next start.
func (t *track) persisted() {
	if t.filed = t.state != Undone; t.filed && t.state != Undoing && t.state != Drifted {
		t.state = Persisted
	}
}

// keep begins to make the change permanent, where the rollout is done and its benefit is proven.
func (m *Machine) keep() {
	if !m.CanPersist() {
		return
	}
	m.phase, m.reason, m.since = Keeping, "", m.now
	for i := range m.hosts {
		m.hosts[i].seen = m.now // the hub has not listened since the rollout was done
		if h := &m.hosts[i]; h.state == Committed || h.state == NotPersistable {
			h.state = Committed // a person has signed anew, perhaps because a policy has changed
			h.attempt++
		}
	}
}

// persistAnswered takes the answer to an order to persist, also one that comes after the phase.
func (m *Machine) persistAnswered(h *track, id string, code order.Code) {
	if h.state == Undoing || h.state == Undone {
		return
	}
	switch code {
	case order.Persisted:
		h.persisted()
	case order.Busy, order.Interrupted: // the same order is sent again
	case order.Reverted, order.NotPersisted, order.Undone:
		h.state = Reverted
		m.halt("host %s took the change back: %s", id, code)
	case order.Foreign:
		h.state = Drifted
	default:
		h.state = NotPersistable
		if code == order.OldEpoch || code == order.OldSerial || code == order.IDReused {
			m.halt("host %s has orders of another hub: %s", id, code)
		}
	}
}

// unsigned takes out a host that gave no report, so that no person could sign an order for it. In
// an undo, it is one whose signatures are missing or have ended.
func (m *Machine) unsigned(h *track) {
	switch {
	case m.phase == Unwinding && h.takesUndo():
		h.state = NotUndone
	case h.state == Committed && m.phase != Unwinding, h.state == Pending && m.phase != Unwinding && m.phase != Keeping:
		h.state, m.repair = Lost, true
	}
}

// CanPersist reports whether the change may be made permanent: the rollout is done, its benefit is
// proven, and no person has taken it back.
func (m *Machine) CanPersist() bool { return m.phase == Done && m.proven && !m.undone }

// Undone reports whether the rollout was taken back, or is being so.
func (m *Machine) Undone() bool { return m.undone }

// kept ends the phase. A host that has not answered is lost until it reports.
func (m *Machine) kept(why string) {
	for i := range m.hosts {
		if h := &m.hosts[i]; h.state == Persisting {
			h.state = Lost
		}
	}
	m.phase, m.reason = Done, why
	m.moves++
}

// persist makes the change permanent, one host of a rack and of a quorum at a time: a file that a
// host cannot start with must not reach all of them before one has answered.
func (m *Machine) persist() []Action {
	t := m.taken()
	var out []Action
	for i := range m.hosts {
		h := &m.hosts[i]
		again := h.state == Persisting && m.late(h)
		first := h.state == Committed && t.free(m.plan.Hosts[i])
		if again || first {
			t.take(m.plan.Hosts[i])
			out = append(out, Action{Host: i, Verb: order.Persist, Attempt: h.attempt})
		}
	}
	return out
}
