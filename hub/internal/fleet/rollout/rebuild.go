package rollout

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/peer/order"
)

// OrderID is the id of the order of a verb: the same action is always the same order.
func OrderID(rollout, host string, verb order.Verb, attempt int) string {
	return fmt.Sprintf("%s.%s.%d.%s", rollout, host, attempt, verb)
}

// AttemptOf is the reverse for the orders of one host.
func AttemptOf(rollout, host, id string) (int, bool) {
	rest, ok := strings.CutPrefix(id, rollout+"."+host+".")
	text, _, dotted := strings.Cut(rest, ".")
	n, err := strconv.Atoi(text)
	return n, ok && dotted && err == nil && n >= 0 && n < 1000
}

// Serial is the number of the order within the attempts of a rollout, after the first one.
func Serial(first uint64, verb order.Verb, attempt int) uint64 {
	step := map[order.Verb]uint64{order.Try: 0, order.Commit: 1, order.Persist: 2, order.Undo: 3}[verb]
	return first + 4*uint64(attempt) + step
}

// Rebuild makes a machine from the reports of the hosts, by host id, after the hub has lost its
// log. It is halted until a person resumes it. A host without a report is lost.
func Rebuild(p *Plan, reports map[string]executor.Report) *Machine {
	m := New(p)
	m.stage = WaveAll
	for i, h := range p.Hosts {
		r, answered := reports[h.ID]
		t := &m.hosts[i]
		if !answered || r.Host != h.ID {
			t.state = Lost
			continue
		}
		for _, s := range r.Orders {
			if s.Rollout == p.ID {
				t.take(p.ID, h.ID, s)
			}
		}
		if t.state == Pending {
			m.stage = min(m.stage, p.Stage[i])
		}
	}
	m.before = Ordering
	m.halt("the hub has started again")
	return m
}

// Reported takes the report of a host at any later time, for instance of one that was lost.
func (m *Machine) Reported(host int, r executor.Report) {
	t := &m.hosts[host]
	t.state, t.filed = Pending, false
	for _, s := range r.Orders {
		if s.Rollout == m.plan.ID {
			t.take(m.plan.ID, m.plan.Hosts[host].ID, s)
		}
	}
	t.seen = m.now
}

// take brings a host to where a report of one of its orders shows it, oldest first.
func (t *track) take(rollout, host string, s executor.Standing) {
	if n, ok := AttemptOf(rollout, host, s.Order); ok {
		t.attempt = max(t.attempt, n)
	}
	switch s.Answer.Code {
	case order.InTrial:
		t.state, t.proven = InTrial, true
	case order.Committed:
		t.state, t.proven = Committed, true
	case order.Persisted:
		t.proven = true
		t.persisted()
	case order.Undone:
		t.state, t.filed = Undone, false
	case order.Foreign:
		t.state, t.proven = Drifted, true
	case order.Reverted, order.NotPersisted, order.ReadBack:
		if t.state != Undone {
			t.state = Reverted
		}
	case order.Interrupted:
		if s.Verb == order.Try {
			t.state = Reverted // nothing was written; a new attempt may
		}
	default:
		switch {
		case s.Verb == order.Try:
			t.state = Refused
		case s.Verb == order.Persist && t.state == Committed:
			t.state = NotPersistable
		}
	}
}
