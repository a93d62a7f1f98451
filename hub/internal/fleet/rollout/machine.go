package rollout

import (
	"fmt"
	"math"
	"time"

	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/peer/order"
)

// State is what the hub knows of one host.
type State string

// The states of a host.
const (
	Pending    State = "pending"    // not ordered
	Measuring  State = "measuring"  // measures the change against itself
	Ordered    State = "ordered"    // a try is on its way
	InTrial    State = "trial"      // the host has reported the trial
	Confirming State = "confirming" // a commit is on its way
	Committed  State = "committed"
	Refused    State = "refused"  // the host refused the order; nothing was written
	Reverted   State = "reverted" // the host took the trial back
	Lost       State = "lost"     // silent; its guard has taken a trial back, which the hub cannot see
	Undoing    State = "undoing"  // an undo is on its way
	Undone     State = "undone"
	Drifted    State = "drifted"    // committed, and another program has set the knob since
	Persisting State = "persisting" // an order to persist is on its way
	Persisted  State = "persisted"  // committed, and survives a restart
	// NotPersistable is committed, and the host has refused to make it permanent.
	NotPersistable State = "not-persistable"
	// NotUndone is a change that stays although an undo was ordered: another program has set the
	// knob since, or the host's policy refuses. A person has to look.
	NotUndone State = "not-undone"
)

// inFlight reports whether the host holds back others of its rack and quorum.
func (s State) inFlight() bool {
	return s == Measuring || s == Ordered || s == InTrial || s == Confirming || s == Undoing || s == Persisting
}

// Kind is what an event says.
type Kind string

// The kinds of events.
const (
	Sent     Kind = "sent"     // Host, Verb: written before the order leaves
	Answered Kind = "answered" // Host, Verb, Code
	Alive    Kind = "alive"    // Host: a heartbeat
	Asked    Kind = "asked"    // Host: a measurement was asked for
	Measured Kind = "measured" // Host, Effect, and Error for an experiment
	Resumed  Kind = "resumed"  // By: a person
	Stopped  Kind = "stopped"  // By: a person
	UndoAll  Kind = "undo-all" // By: a person
	// PersistAll is by a person, of a rollout that is done. Unsigned follows it, and Resumed, for a
	// Host without a signed order, because it gave no report; and comes for one to undo without it.
	PersistAll Kind = "persist-all"
	Unsigned   Kind = "unsigned"
	Started    Kind = "started" // the hub has started again
	Stated     Kind = "stated"  // Host, Orders: what the host reports of all its orders
	Held       Kind = "held"    // By: why the hub cannot go on, such as signatures that have expired
	Ticked     Kind = "ticked"  // time has passed: the machine looks for silent hosts and moves on
)

// Event is one line of the log.
type Event struct {
	At   time.Duration `json:"at_ns"` // on a steady clock
	Kind Kind          `json:"kind"`
	Host int           `json:"host,omitempty"` // index in the plan
	Verb order.Verb    `json:"verb,omitempty"`
	Code order.Code    `json:"code,omitempty"`
	// Effect is the logarithm of the host's measurement after the change over that before it, or,
	// of an experiment, with the change over without it; positive is better.
	Effect float64 `json:"effect_log_ratio,omitempty"`
	Error  float64 `json:"error_log_ratio,omitempty"` // standard error of an experiment
	Pairs  int     `json:"pairs,omitempty"`           // of an experiment; 0: 20
	By     string  `json:"by,omitempty"`              // a person, or why

	Orders []executor.Standing `json:"orders,omitempty"`
}

// Action is what to do now.
type Action struct {
	Host int
	// Verb is the order to send; empty: ask for a measurement.
	Verb    order.Verb
	Attempt int // of the try; each has orders with ids of their own. The same attempt is the same order.
	// Experiment asks the host to measure the change against itself.
	Experiment bool
	// From and To bound the soak whose measurements are asked for.
	From, To time.Duration
}

// Phase is what a machine is doing.
type Phase string

// The phases.
const (
	Ordering   Phase = "ordering"
	Soaking    Phase = "soaking"
	Collecting Phase = "collecting"
	Halted     Phase = "halted"
	Unwinding  Phase = "unwinding" // undoes the rollout
	// Keeping makes the change permanent on the hosts of a rollout that is done. What stops it ends
	// the phase: the change itself stays, and a person can begin again.
	Keeping Phase = "persisting"
	Done    Phase = "done"
)

// track is what the machine knows of one host.
type track struct {
	state            State
	attempt, resends int
	sent, last       time.Duration // of the order that is under way: first and last time
	seen             time.Duration // the last sign of life
	changed          time.Duration // start of the trial
	proven           bool          // by an experiment of its own
	filed            bool          // files bring the change back at the next start
	benefit          float64       // p of the benefit in this experiment; 1: none
}

// Machine is a rollout at one moment.
type Machine struct {
	plan   *Plan
	hosts  []track
	now    time.Duration
	phase  Phase
	before Phase // Halted: what goes on after a person resumes
	stage  int
	since  time.Duration // start of the phase
	began  time.Duration // start of the stage
	reason string
	halted time.Duration // since when
	harm   bool          // the halt is for measured harm
	undone bool          // the rollout is or was undone: a host that is back with its change is undone too
	moves  int

	collected map[int]float64 // of this stage, by host
	pairs     map[int]int     // of this stage: host to change → like host, decided before the first change
	repair    bool            // pairs have to be looked through, after a halt
	controls  map[int]int     // those of them that are judged
	units     []unit          // differences of all looks
	looks     []Look
	proven    bool
}

// New returns the machine of a plan before its first event.
func New(p *Plan) *Machine {
	m := &Machine{plan: p, hosts: make([]track, len(p.Hosts)), phase: Ordering}
	for i := range m.hosts {
		m.hosts[i].state, m.hosts[i].benefit = Pending, 1
	}
	if p.class == nil {
		p.index()
	}
	return m
}

// Phase, Stage, Reason and Proven describe the machine.
func (m *Machine) Phase() Phase { return m.phase }

// Stage is the present stage.
func (m *Machine) Stage() int { return m.stage }

// Reason is why the rollout is halted.
func (m *Machine) Reason() string { return m.reason }

// Proven reports whether the benefit is proven.
func (m *Machine) Proven() bool { return m.proven }

// Harmed reports whether the rollout is halted because measurements show harm.
func (m *Machine) Harmed() bool { return m.phase == Halted && m.harm }

// Harm reports whether measurements have shown harm since a person last resumed.
func (m *Machine) Harm() bool { return m.harm }

// Moves rises whenever time alone has changed something: a Ticked that leaves it as it was need not
// be in the log.
func (m *Machine) Moves() int { return m.moves }

// Attempt is the number of the present try of a host, from 0.
func (m *Machine) Attempt(host int) int { return m.hosts[host].attempt }

// Watched reports whether the machine waits for signs of life of a host.
func (m *Machine) Watched(host int) bool {
	h := &m.hosts[host]
	return h.state.inFlight() ||
		h.state.Kept() && h.changed > 0 && m.now-h.changed <= 3*m.plan.Timing.Deadline
}

// InFlight reports whether an order or an experiment is under way at a host.
func (m *Machine) InFlight(host int) bool { return m.hosts[host].state.inFlight() }

// Looks are the looks so far, for the page that draws the boundary.
func (m *Machine) Looks() []Look { return append([]Look(nil), m.looks...) }

// State returns what the machine knows of a host.
func (m *Machine) State(host int) State { return m.hosts[host].state }

// Counts returns the number of hosts in each state.
func (m *Machine) Counts() map[State]int {
	n := make(map[State]int)
	for i := range m.hosts {
		n[m.hosts[i].state]++
	}
	return n
}

func (m *Machine) halt(format string, args ...any) {
	switch m.phase {
	case Halted, Unwinding, Done:
		return
	case Keeping:
		m.kept(fmt.Sprintf(format, args...))
		return
	}
	m.before, m.phase, m.reason, m.halted = m.phase, Halted, fmt.Sprintf(format, args...), m.now
	m.harm = false
	m.moves++
}

// harmed halts because a measurement shows harm.
func (m *Machine) harmed(format string, args ...any) {
	if m.halt(format, args...); m.phase == Halted {
		m.harm = true
	}
}

// Apply changes the machine by one event. Time never goes back: an event with an earlier time
// counts as of now.
func (m *Machine) Apply(e Event) {
	m.now = max(m.now, e.At)
	if e.Host < 0 || e.Host >= len(m.hosts) {
		return
	}
	h := &m.hosts[e.Host]
	switch e.Kind {
	case Sent:
		m.sent(h, e)
	case Answered:
		h.seen = m.now
		m.answered(e)
	case Alive:
		h.seen = m.now
	case Asked:
		if h.state == Pending {
			h.state, h.sent, h.last, h.seen = Measuring, m.now, m.now, m.now
		}
	case Measured:
		h.seen = m.now
		m.measured(e)
	case Started:
		m.halt("the hub has started again")
	case Stopped:
		m.halt("stopped by %s", e.By)
	case Held:
		m.halt("%s", e.By)
	case Stated:
		m.Reported(e.Host, executor.Report{Orders: e.Orders})
	case UndoAll:
		m.unwindAll()
	case PersistAll:
		m.keep()
	case Unsigned:
		m.unsigned(h)
	case Resumed:
		m.resume(e.By)
	}
	if m.phase == Done && m.undone && h.takesUndo() {
		m.phase, m.since = Unwinding, m.now // it was lost while the others were undone
		m.moves++
	}
	if e.Kind == Ticked {
		if m.repair {
			m.pair()
			m.repair = false
			m.moves++
		}
		m.watch()
		m.advance()
	}
}

func (m *Machine) sent(h *track, e Event) {
	if again := e.Verb == order.Try && h.state == Ordered || e.Verb == order.Commit && h.state == Confirming ||
		e.Verb == order.Undo && h.state == Undoing || e.Verb == order.Persist && h.state == Persisting; again {
		h.resends++
		h.last = m.now
		return
	}
	h.sent, h.last, h.resends = m.now, m.now, 0
	switch e.Verb {
	case order.Try:
		h.state = Ordered
	case order.Commit:
		h.state = Confirming
	case order.Undo:
		h.state = Undoing
	case order.Persist:
		h.state = Persisting
	}
}

// answered takes the answer of a host to the order that is under way, or a later report of it.
func (m *Machine) answered(e Event) {
	h, id := &m.hosts[e.Host], m.plan.Hosts[e.Host].ID
	if e.Verb == order.Persist {
		m.persistAnswered(h, id, e.Code)
		return
	}
	switch e.Code {
	case order.InTrial:
		if h.state == Ordered || h.state == Lost || h.state == Pending {
			h.state, h.changed = InTrial, m.now
		}
	case order.Committed:
		if h.state != Undoing && h.state != Undone && h.state != Persisting && !h.state.Kept() {
			if h.changed == 0 {
				h.changed = m.now
			}
			h.state = Committed
		}
	case order.Undone:
		h.state = Undone
	case order.Busy:
		// The same order is sent again.
	case order.Reverted, order.NotPersisted:
		if h.state == Undoing || h.state == Undone {
			h.state = Undone
			return
		}
		h.state = Reverted
		m.halt("host %s took the change back: %s", id, e.Code)
	case order.ReadBack:
		h.state = Reverted
		m.halt("host %s read back another value than was ordered", id)
	case order.OldEpoch, order.OldSerial, order.IDReused:
		h.state = Refused
		m.halt("host %s has orders of another hub: %s", id, e.Code)
	default:
		m.refused(e, h)
	}
}

// refused counts refusals, class by class.
func (m *Machine) refused(e Event, h *track) {
	switch h.state {
	case Confirming, InTrial: // the trial ends at its deadline
		h.state = Reverted
	case Undoing:
		h.state = NotUndone
		return
	default:
		h.state = Refused
	}
	refused, size := 0, 0
	for i := range m.hosts {
		if m.plan.class[i] != m.plan.class[e.Host] {
			continue
		}
		size++
		if s := m.hosts[i].state; s == Refused || s == Reverted {
			refused++
		}
	}
	if refused >= 2 && float64(refused) > 0.05*float64(size) {
		m.halt("%d of %d hosts of class %s refused, the last with %s", refused, size, m.plan.Names[m.plan.class[e.Host]],
			e.Code)
	}
}

// measured takes the result of an experiment, or a measurement of a stage.
func (m *Machine) measured(e Event) {
	h := &m.hosts[e.Host]
	if h.state == Measuring {
		h.state = Pending
		if !(e.Error > 0) || e.Effect != e.Effect {
			why := "the experiment on host " + m.plan.Hosts[e.Host].ID + " has no result"
			if e.By != "" {
				why += ": " + e.By
			}
			m.halt("%s", why)
			return
		}
		h.proven = true
		df := float64(experimentDF)
		if e.Pairs > 1 {
			df = float64(e.Pairs - 1)
		}
		h.benefit = lowerTail(-e.Effect/e.Error, df)
		if p := lowerTail(e.Effect/e.Error, df); p < experimentLevel/float64(m.experiments()) {
			m.harmed("the experiment on host %s shows harm: %.1f %%", m.plan.Hosts[e.Host].ID, 100*math.Expm1(e.Effect))
		}
		return
	}
	if m.phase == Collecting && e.Effect == e.Effect {
		m.collected[e.Host] = e.Effect
	}
}

func (m *Machine) experiments() int {
	n := 0
	for i := range m.hosts {
		if m.experimentsFirst(i) {
			n++
		}
	}
	return n
}

func (m *Machine) experimentsFirst(i int) bool {
	return m.plan.Stage[i] == Experiment || m.plan.ByHost[i]
}

// watch halts for hosts that are silent within two deadlines of their change.
func (m *Machine) watch() {
	t := m.plan.Timing
	for i := range m.hosts {
		h := &m.hosts[i]
		var from time.Duration
		switch h.state {
		case Measuring, Ordered, InTrial, Confirming, Undoing, Persisting:
			from = h.sent
		case Committed:
			if from = h.changed; from == 0 {
				continue // from before the hub's start
			}
		default:
			continue
		}
		if h.state != Committed && h.state != Measuring && m.now-max(h.sent, h.changed) > 2*t.Deadline {
			// It lives, and does not answer: what became of the order is not known.
			h.state = Lost
			m.moves++
			m.halt("host %s does not answer an order", m.plan.Hosts[i].ID)
			continue
		}
		seen := max(h.seen, from)
		if m.now-seen > 2*t.Deadline && seen-from < 2*t.Deadline {
			h.state = Lost
			m.moves++
			m.halt("host %s is silent since its change", m.plan.Hosts[i].ID)
		}
	}
}

// advance moves on to the next phase where this one is complete.
func (m *Machine) advance() {
	t := m.plan.Timing
	switch m.phase {
	case Ordering:
		for i := range m.hosts {
			if s := m.hosts[i].state; s.inFlight() || s == Pending && m.plan.Stage[i] <= m.stage {
				return
			}
		}
		if m.stage != Experiment && !m.changedNow() {
			m.next() // no host of this stage has changed: there is nothing to wait for
			return
		}
		m.phase, m.since = Soaking, m.now
		m.moves++
	case Soaking:
		if m.now-m.since < m.soak() {
			return
		}
		m.controls, m.collected = m.matchControls(), make(map[int]float64)
		m.phase, m.since = Collecting, m.now
		m.moves++
		if len(m.controls) == 0 { // the experiments, or a stage without a new host
			m.next()
		}
	case Collecting:
		for a, b := range m.controls {
			_, changed := m.collected[a]
			_, like := m.collected[b]
			if changed && like {
				continue
			}
			if m.now-m.since > t.Collect {
				m.halt("the measurements of host %s or %s are missing", m.plan.Hosts[a].ID, m.plan.Hosts[b].ID)
			}
			return
		}
		m.look()
		if m.phase == Collecting {
			m.next()
		}
	case Unwinding:
		for i := range m.hosts {
			if s := m.hosts[i].state; s.inFlight() || m.hosts[i].takesUndo() {
				return
			}
		}
		m.phase = Done
		m.moves++
	case Keeping:
		for i := range m.hosts {
			if s := m.hosts[i].state; s == Persisting || s == Committed {
				return
			}
		}
		m.kept("")
	case Halted, Done:
	}
}

// changedNow reports whether the stage has changed a host.
func (m *Machine) changedNow() bool {
	for i := range m.hosts {
		if m.plan.Stage[i] == m.stage && m.hosts[i].state == Committed {
			return true
		}
	}
	return false
}

// provenAlone reports whether every host of the plan experiments itself, and all that have done so
// show the benefit: a fleet of a few hosts has no other proof.
func (m *Machine) provenAlone() bool {
	tried := false
	for i := range m.hosts {
		h := &m.hosts[i]
		if !m.experimentsFirst(i) || h.proven && h.benefit > aloneLevel {
			return false
		}
		tried = tried || h.proven
	}
	return tried
}

func (m *Machine) soak() time.Duration {
	switch m.stage {
	case Experiment:
		return 0
	case Wave10, Wave50:
		return m.plan.Timing.LongSoak
	}
	return m.plan.Timing.Soak
}

// next begins the next stage.
func (m *Machine) next() {
	m.moves++
	if m.stage == WaveAll {
		m.phase = Done
		return
	}
	if m.stage == Wave50 {
		m.proven = m.proven || m.provenAlone()
	}
	if m.stage == Wave50 && !m.proven {
		// After a person has resumed, the stage is complete and the last wave begins.
		m.stage++
		m.phase, m.since, m.began = Ordering, m.now, m.now
		m.pair()
		m.halt("the benefit is not proven")
		return
	}
	m.stage++
	m.phase, m.since, m.began = Ordering, m.now, m.now
	m.pair()
	m.advance()
}
