package rollout

import (
	"github.com/linerate/linerate/internal/peer/order"
)

// Bounds of how an order without an answer is repeated. It is the same order: the host carries it
// out once.
const (
	// leastResends come whatever the deadline; more come until one deadline has passed. A trial that
	// begins with the last one has then ended before a halt for a lost host can be resumed.
	leastResends = 2
	// mostSends is about how often an order leaves within a deadline, where the settling time is
	// short.
	mostSends = 8
)

// late reports whether an order without an answer is due to be repeated.
func (m *Machine) late(h *track) bool {
	t := m.plan.Timing
	wait, until := t.Settle, h.sent+2*t.Deadline
	if h.resends >= leastResends {
		wait, until = max(wait, t.Deadline/mostSends), h.sent+t.Deadline
	}
	return m.now-h.last >= wait && m.now < until
}

// Next returns what to do now. It changes nothing: the caller writes Sent or Asked to the log
// before it acts, and asks again after each event.
func (m *Machine) Next() []Action {
	switch m.phase {
	case Ordering:
		return append(m.confirm(), m.begin()...)
	case Collecting:
		return m.ask()
	case Unwinding:
		return m.unwind()
	case Keeping:
		return m.persist()
	case Soaking, Halted, Done:
	}
	return nil
}

// confirm keeps the trials that have settled, and repeats orders without an answer.
func (m *Machine) confirm() []Action {
	t := m.plan.Timing
	var out []Action
	for i := range m.hosts {
		h := &m.hosts[i]
		late := m.late(h) && m.now-h.seen < t.Deadline
		switch {
		case h.state == InTrial && m.now-h.changed >= t.Settle && h.seen > h.changed:
			out = append(out, Action{Host: i, Verb: order.Commit, Attempt: h.attempt})
		case h.state == Ordered && late:
			out = append(out, Action{Host: i, Verb: order.Try, Attempt: h.attempt})
		case h.state == Confirming && late:
			out = append(out, Action{Host: i, Verb: order.Commit, Attempt: h.attempt})
		}
	}
	return out
}

// taken is what hosts in flight hold back.
type taken struct {
	site         string
	any          bool
	rack, quorum map[string]bool
}

func (m *Machine) taken() taken {
	t := taken{rack: make(map[string]bool), quorum: make(map[string]bool)}
	for i := range m.hosts {
		if m.hosts[i].state.inFlight() {
			t.take(m.plan.Hosts[i])
		}
	}
	return t
}

func (t *taken) take(h Host) {
	t.any, t.site = true, h.Site
	t.rack[h.Rack], t.quorum[h.Quorum] = h.Rack != "", h.Quorum != ""
}

func (t *taken) free(h Host) bool {
	return !t.rack[h.Rack] && !t.quorum[h.Quorum] && (!t.any || t.site == h.Site)
}

// begin starts as many hosts of the stage as the caps allow.
func (m *Machine) begin() []Action {
	t := m.taken()
	var out []Action
	for i := range m.hosts {
		h := &m.hosts[i]
		if h.state != Pending || m.plan.Stage[i] > m.stage || !t.free(m.plan.Hosts[i]) {
			continue
		}
		t.take(m.plan.Hosts[i])
		if m.experimentsFirst(i) && !h.proven {
			out = append(out, Action{Host: i, Experiment: true})
			continue
		}
		out = append(out, Action{Host: i, Verb: order.Try, Attempt: h.attempt})
	}
	return out
}

// ask asks for the measurements of this stage that have not arrived.
func (m *Machine) ask() []Action {
	wanted := make([]bool, len(m.hosts))
	for changed, like := range m.controls {
		wanted[changed], wanted[like] = true, true
	}
	var out []Action
	for i := range m.hosts {
		if _, have := m.collected[i]; wanted[i] && !have {
			out = append(out, Action{Host: i, From: m.began, To: m.since})
		}
	}
	return out
}

// unwind undoes the newest stage first.
func (m *Machine) unwind() []Action {
	t := m.taken()
	newest := -1
	for i := range m.hosts {
		if m.hosts[i].takesUndo() || m.hosts[i].state == Undoing {
			newest = max(newest, m.plan.Stage[i])
		}
	}
	var out []Action
	for i := range m.hosts {
		h := &m.hosts[i]
		again := h.state == Undoing && m.late(h)
		first := h.takesUndo() && m.plan.Stage[i] == newest && t.free(m.plan.Hosts[i])
		if again || first {
			t.take(m.plan.Hosts[i])
			out = append(out, Action{Host: i, Verb: order.Undo, Attempt: h.attempt})
		}
	}
	return out
}
