package rollout

import "time"

// CanResume reports whether a person may resume: every trial from before the halt has ended, so
// that the hosts' reports are final. The caller asks the hosts for them first; see Reported.
func (m *Machine) CanResume() bool {
	return m.phase == Halted && m.now-m.halted >= m.plan.Timing.Deadline
}

// ResumeIn is how long a halted rollout must wait until a person may resume it.
func (m *Machine) ResumeIn() time.Duration { return m.plan.Timing.Deadline - (m.now - m.halted) }

// Experimented reports whether a host has measured the change against itself.
func (m *Machine) Experimented(host int) bool { return m.hosts[host].proven }

// resume goes on after a halt. A host whose trial ended unconfirmed gets a new order. One of which
// the hub does not know what became of its order is lost until it reports.
func (m *Machine) resume(by string) {
	if !m.CanResume() || by == "" {
		return
	}
	m.phase, m.reason, m.harm, m.since = Ordering, "", false, m.now
	if m.before == Soaking || m.before == Collecting {
		m.phase = Soaking
	}
	for i := range m.hosts {
		switch h := &m.hosts[i]; h.state {
		case Reverted:
			h.state, h.attempt, h.changed = Pending, h.attempt+1, 0
		case Ordered, InTrial, Confirming:
			h.state = Lost
		case Measuring, Pending: // new orders have names of their own
			h.state, h.attempt = Pending, h.attempt+1
		case Committed, Refused, Lost, Undoing, Undone, Drifted, NotUndone, Persisting, Persisted, NotPersistable:
		}
		m.hosts[i].seen = m.now
	}
	m.repair = true
}

// unwindAll begins to undo the rollout. Experiments end with it: their trials end alone.
func (m *Machine) unwindAll() {
	m.phase, m.since, m.undone = Unwinding, m.now, true
	for i := range m.hosts {
		if m.hosts[i].state == Measuring {
			m.hosts[i].state = Pending
		}
	}
}

// Missed returns the hosts that were lost while a rollout was undone. Each is undone when it
// reports that it has the change.
func (m *Machine) Missed() []int {
	var all []int
	for i := range m.hosts {
		if m.phase == Done && m.undone && m.hosts[i].state == Lost {
			all = append(all, i)
		}
	}
	return all
}
