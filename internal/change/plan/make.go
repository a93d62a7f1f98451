package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/change/persist"
)

// candidate is a setting that a role may need.
type candidate struct {
	knob, value string
	reason      string
	cap         bool // a larger present value or default serves as well
	need        bool // the reason says what the path needs
}

// maker makes one plan.
type maker struct {
	Situation
	plan  Plan
	sizes sizes
	files *persist.Planner // Linux: of a host as the distribution makes it
}

func (m *maker) note(text string) {
	if !contains(m.plan.Notes, text) {
		m.plan.Notes = append(m.plan.Notes, text)
	}
}

// Make makes the plan of a situation. The error names everything that the role needs and the
// situation lacks.
func Make(s Situation) (*Plan, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	m := &maker{Situation: s, plan: Plan{Situation: s}}
	if s.Role.windows() {
		m.sizes = s.size()
		memory := m.sizes.memory
		m.plan.Memory = &memory
	}
	var not []Line
	for _, c := range m.candidates() {
		if l := m.line(c); l.Set {
			m.plan.Lines = append(m.plan.Lines, l)
		} else {
			not = append(not, l)
		}
	}
	for _, w := range writeUps(s) {
		not = append(not, m.writeUp(w))
	}
	m.plan.Lines = append(m.plan.Lines, not...)
	m.placeholder()
	return &m.plan, nil
}

// check reports what is missing, all at once.
func (s *Situation) check() error {
	var missing []string
	need := func(is bool, what string) {
		if !is {
			missing = append(missing, what)
		}
	}
	need(s.System.OS != "", "os")
	need(s.Role != "", "role")
	need(s.Link > 0, "link (10G)")
	need(s.RoundTrip > 0 || !s.Role.windows(), "round trip (20ms; linerate measure TARGET --test ping shows it)")
	need(s.Memory > 0 || !s.Role.windows(), "memory (32GiB)")
	if len(missing) > 0 {
		return fmt.Errorf("missing for role %s: %s", orAny(s.Role), strings.Join(missing, ", "))
	}
	return nil
}

func orAny(r Role) string {
	if r == "" {
		return "(none)"
	}
	return string(r)
}

// judge asks package advice about one setting on the system of the plan.
func (m *maker) judge(knob, value string) advice.Judgement {
	o := m.System.OS
	target := advice.Target{OS: o, Release: map[advice.OS]advice.Release{o: m.System.Judged}}
	own := o
	if kind, _, _ := strings.Cut(knob, ":"); kind == "named" {
		own = ""
	}
	return target.Judge(advice.Advice{Settings: []advice.Setting{{Knob: knob, Value: value, OS: own}}})[0]
}

// judged makes a line of a setting with what advice says about it.
func (m *maker) judged(knob, value string) Line {
	j := m.judge(knob, value)
	was := j.Default
	if was == "" {
		was = advice.Default(m.System.OS, m.System.Judged, knob)
	}
	was, about := m.ofMemory(knob, was)
	return Line{Knob: knob, Value: value, Verdict: j.Verdict, What: j.Why, Since: j.Since, Today: j.Today,
		Source: j.Source, Default: was, about: about, Present: m.Present[knob]}
}

// line decides about a candidate: advice must call it right, and the host must not have it yet.
func (m *maker) line(c candidate) Line {
	l := m.judged(c.knob, c.value)
	l.Reason = c.reason
	if c.cap && l.Default != "" && !more(c.value, l.Default) {
		if l.Present != "" && more(c.value, l.Present) {
			return m.back(c, l.Default)
		}
		// Setting less than the default would lower it; setting the default would freeze it.
		l.Verdict, l.Value = advice.NowDefault, l.Default
		l.Reason = fmt.Sprintf("%s; the default of %s has room for it.", strings.TrimSuffix(c.reason, "."), l.Default)
		l.What, l.Today = "Not set: the default is enough.", ""
		if m.short(c) {
			l.Reason = fmt.Sprintf("%s; memory has %s for each connection, which the default of %s exceeds already.",
				strings.TrimSuffix(c.reason, "."), m.sizes.buffer, l.Default)
			l.What = "Not set: memory has no room for more."
		}
		return l
	}
	if c.cap && m.shrunk(&l) {
		l.Verdict, l.Since, l.Today = advice.StillRight, "", ""
		l.What = fmt.Sprintf("Raises what the kernel works out from memory: less on a host of %s than on a large one.",
			m.Memory)
	}
	switch {
	case l.Verdict != advice.StillRight:
		return l
	case l.Present != "" && (same(l.Present, c.value) || c.cap && !more(c.value, l.Present)):
		l.Reason = fmt.Sprintf("%s; the host has %s already.", strings.TrimSuffix(c.reason, "."), l.Present)
		return l
	}
	l.Set = true
	m.reach(&l)
	return l
}

// short reports whether a candidate is a buffer that memory made smaller than the path needs.
func (m *maker) short(c candidate) bool {
	return m.sizes.memory.Lowered && c.need
}

// placeholder says in the plan which interface its commands name, where the situation has none.
func (m *maker) placeholder() {
	if m.Interface != "" {
		return
	}
	for _, l := range m.plan.Lines {
		if _, of, _ := subject(l.Knob); l.Set && of == m.nic() {
			m.note(fmt.Sprintf("No interface is given: the commands name %s. Give --interface, or a line `interface: "+
				"NAME`, before you run them.", of))
			return
		}
	}
}

// back returns the line that sets a limit to its default again: the host has less than the path
// needs, and the default has room for it.
func (m *maker) back(c candidate, value string) Line {
	l := m.judged(c.knob, value)
	room := "has room for it"
	if m.short(c) {
		room = fmt.Sprintf("exceeds the %s that memory has for each connection", m.sizes.buffer)
	}
	l.Reason = fmt.Sprintf("%s; the host has %s, and the default of %s %s.",
		strings.TrimSuffix(c.reason, "."), l.Present, value, room)
	if l.Verdict == advice.NowDefault || l.Verdict == advice.StillRight {
		l.Verdict, l.Set = advice.StillRight, true
		m.reach(&l)
	}
	return l
}

// writeUp decides about a setting of an old write-up, with the value that it had. The plan has its
// own value for the same knob, or leaves it out; it never sets this one.
func (m *maker) writeUp(w setting) Line {
	l := m.judged(w.knob, w.value)
	l.WriteUp = true
	bySet := slices.IndexFunc(m.plan.Lines, func(x Line) bool {
		return x.Set && (x.Knob == w.knob || x.Knob == w.now)
	})
	buffers := m.Role.forwards() && w.buffer
	switch {
	case buffers && l.Verdict == advice.StillRight:
		// The role makes it harmful, on every release, and by the way of today as well.
		l.Verdict, l.Since, l.Today = advice.Harmful, "", ""
		l.Reason = fmt.Sprintf("Buffers belong to connections that end here. A %s ends few, and each takes the memory "+
			"to handle a small flow: they are not raised.", m.Role)
	case w.routes && m.Role.forwards() && m.System.major() < 6:
		l.Verdict = advice.StillRight
		l.Reason = "This host routes, and reads it: raise both where it discards packets."
	case bySet >= 0 && same(m.plan.Lines[bySet].Value, w.value):
		l.Reason = "The plan sets it."
		if set := m.plan.Lines[bySet].Knob; set != w.knob {
			l.Reason = fmt.Sprintf("The plan sets %s.", set)
		}
	case bySet >= 0:
		_, _, name := subject(m.plan.Lines[bySet].Knob)
		l.Reason = fmt.Sprintf("The plan sets %s to %s, from this link, this path and this memory.", name,
			m.plan.Lines[bySet].Value)
	case l.Verdict == advice.StillRight:
		l.Reason = "Exists, and this role on this path does not need it."
		if w.needs != "" {
			l.Reason = w.needs
		}
	case l.Verdict == advice.NowDefault:
		l.Reason = "The system does so without the setting now."
	case l.Verdict == advice.Unknown:
		l.Reason = "Not judged, and so not set."
	default:
		l.Reason = "Not set, because of what it does on this release."
	}
	return l
}

// more reports whether the limit in a value is larger than that in another: the last number.
func more(value, than string) bool {
	a, b := strings.Fields(value), strings.Fields(than)
	if len(a) != len(b) || len(a) == 0 {
		return true
	}
	x, err := strconv.ParseInt(a[len(a)-1], 0, 64)
	y, err2 := strconv.ParseInt(b[len(b)-1], 0, 64)
	return err != nil || err2 != nil || x > y
}

// same reports whether two values are one, but for blanks.
func same(a, b string) bool {
	return strings.EqualFold(strings.Join(strings.Fields(a), " "), strings.Join(strings.Fields(b), " "))
}
