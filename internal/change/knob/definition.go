package knob

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Effect is when a change takes effect.
type Effect string

// The moments at which a change takes effect.
const (
	EffectNow        Effect = "now"
	EffectNewSockets Effect = "new sockets"
	EffectAtListen   Effect = "at listen"  // sockets that call listen(2) afterwards: the service must be restarted
	EffectNewQdisc   Effect = "new qdisc"  // queueing disciplines created afterwards
	EffectAtLoad     Effect = "at load"    // when the module is loaded again
	EffectAtMount    Effect = "at mount"   // when the file system is mounted again
	EffectAtReload   Effect = "at reload"  // when the server has read its configuration again, which a write makes it do
	EffectAtRestart  Effect = "at restart" // when the server is started again, which a write does
	EffectAtBoot     Effect = "at boot"    // when the host starts the next time
)

// Form is the grammar of a value.
type Form string

// The forms. Canonical text: decimal numbers, one blank between several, no blanks around.
const (
	FormInt    Form = "int"    // one number
	FormInts   Form = "ints"   // Count numbers
	FormBool   Form = "bool"   // 0 or 1
	FormSwitch Form = "switch" // on or off
	FormWord   Form = "word"   // one word, of Choices if there are any
	FormList   Form = "list"   // numbers separated by commas, in their order: one per adapter
	FormRanges Form = "ranges" // numbers and ranges separated by commas: 80,8000-8080; may be empty
	FormMask   Form = "mask"   // CPU mask, hexadecimal in groups of 32 bits separated by commas
	FormText   Form = "text"   // anything on one line
	FormOption Form = "option" // one number, or absent: an entry of a file or registry that need not exist
)

// Absent is the value of an entry that does not exist, where the definition has FormOption, and of
// a parameter that a module was loaded without. Writing it removes the entry.
const Absent Value = "absent"

// Definition is the knowledge about one knob, or about all that match its pattern.
//
// Min and Max are pointers, because 0 and −1 are valid limits: absent means no limit. Default is a
// text and not a value, since some defaults depend on the memory of the host.
type Definition struct {
	Pattern   ID       `json:"knob"` // an ID in which * stands for one part: link:*/mtu
	Title     string   `json:"title"`
	What      string   `json:"what"` // what it does, in a few sentences
	Form      Form     `json:"form"`
	Count     int      `json:"count,omitempty"`     // numbers of FormInts
	Ascending bool     `json:"ascending,omitempty"` // numbers of FormInts must not fall
	Min       *int64   `json:"min,omitempty"`       // of each number; absent: not limited below
	Max       *int64   `json:"max,omitempty"`
	Choices   []string `json:"choices,omitempty"`
	// Shown are values that the kernel reports and takes from no program, each with what to set
	// instead. A change to such a value is refused; one that was there before a change is recorded,
	// and an undo brings it back with the knobs that are coupled to this one.
	Shown     map[Value]string `json:"shown,omitempty"`
	Unit      string           `json:"unit,omitempty"` // bytes, pages, packets, segments, microseconds, seconds, …
	Default   string           `json:"default,omitempty"`
	DefaultOn string           `json:"default_on,omitempty"` // where the default was read: "Linux 6.18"
	Scope     Scope            `json:"scope"`
	// ScopeSince is the first kernel on which the scope applies, "6.8"; before it the knob belonged
	// to the whole host.
	ScopeSince  string      `json:"scope_since,omitempty"`
	Disturbance Disturbance `json:"disturbance"`
	Effect      Effect      `json:"effect"`
	Symptom     string      `json:"symptom"` // when to change it
	// Expect is the effect where the symptom appears; measured effects differ, which is why tune
	// exists.
	Expect  string `json:"expect"`
	Risk    string `json:"risk"`              // what it can cost
	Advise  bool   `json:"advise,omitempty"`  // report it, do not change it in an experiment
	Secret  bool   `json:"secret,omitempty"`  // only root may read it: no other host does, nor does a history
	Persist string `json:"persist,omitempty"` // who owns the value across reboots
	Since   string `json:"since,omitempty"`   // first kernel that has it
	Source  string `json:"source"`
	// Undo is what an undo takes. The files of a catalogue do not have it: it follows from the
	// rest.
	Undo Undo `json:"undo"`
}

// Allowed returns a description of the accepted values, and of those that can only be read.
func (d Definition) Allowed() string {
	text := d.accepted()
	for _, v := range slices.Sorted(maps.Keys(d.Shown)) {
		text += fmt.Sprintf("; it may read %s, which cannot be set: %s", v, d.Shown[v])
	}
	return text
}

// accepted describes the accepted values alone.
func (d Definition) accepted() string {
	unit := ""
	if d.Unit != "" {
		unit = " (" + d.Unit + ")"
	}
	switch d.Form {
	case FormInt:
		return "an integer" + d.span() + unit
	case FormInts:
		order := ""
		if d.Ascending {
			order = " in ascending order"
		}
		return fmt.Sprintf("%d integers%s%s%s", d.Count, d.span(), order, unit)
	case FormOption:
		return "absent, or an integer" + d.span() + unit
	case FormBool:
		return "0 or 1"
	case FormSwitch:
		return "on or off"
	case FormList:
		absent := ""
		if d.mayBeAbsent() {
			absent = "absent, or "
		}
		return absent + "integers" + d.span() + " parted by commas" + unit
	case FormRanges:
		return "numbers and ranges" + d.span() + " parted by commas, like 80,8000-8080"
	case FormMask:
		return "a hexadecimal CPU mask like ff or 1,00000000"
	case FormWord:
		if len(d.Choices) > 0 {
			return "one of " + strings.Join(d.Choices, ", ")
		}
		return "one word"
	}
	return "one line of text"
}

// mayBeAbsent reports whether Absent is a value: an entry of a file or registry, or a parameter
// that a module need not be loaded with.
func (d Definition) mayBeAbsent() bool {
	return d.Form == FormOption || d.Form == FormList && d.Effect == EffectAtLoad
}

func (d Definition) span() string {
	switch {
	case d.Min != nil && d.Max != nil:
		return fmt.Sprintf(" from %d to %d", *d.Min, *d.Max)
	case d.Min != nil:
		return fmt.Sprintf(" of at least %d", *d.Min)
	case d.Max != nil:
		return fmt.Sprintf(" of at most %d", *d.Max)
	}
	return ""
}

// Normalize returns the canonical form of a value and checks form and range. The error is a
// *RangeError that names the allowed values. Normalize of a canonical value returns the same value.
func (d Definition) Normalize(v Value) (Value, error) { return d.normalize(v, true) }

// Canonical is Normalize without the range: the form of a value that the kernel itself reported, so
// that an original outside our range can still be restored.
//
// Undo needs both. A kernel may report a value that it would refuse (a maximum of a later version,
// a value set by a module), and an existing value must be recorded as it is.
func (d Definition) Canonical(v Value) (Value, error) { return d.normalize(v, false) }

func (d Definition) normalize(v Value, ranged bool) (Value, error) {
	refuse := &RangeError{Value: v, Allowed: d.accepted()}
	if ranged && len(d.Shown) > 0 {
		if shown, err := d.normalize(v, false); err == nil && d.Shown[shown] != "" {
			refuse.Err = fmt.Errorf("the kernel reports %s and does not take it: %s", shown, d.Shown[shown])
			return "", refuse
		}
	}
	s := v.Squeeze()
	if s == Absent && d.mayBeAbsent() {
		return s, nil
	}
	switch d.Form {
	case FormInt, FormInts, FormOption:
		count := max(d.Count, 1)
		fields := strings.Fields(string(s))
		if len(fields) != count {
			return "", refuse
		}
		// Equal neighbours are allowed: "65536 65536 65536" is legal and pins a buffer at one size.
		last := int64(math.MinInt64)
		for i, f := range fields {
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return "", refuse
			}
			if ranged && (d.Min != nil && n < *d.Min || d.Max != nil && n > *d.Max || d.Ascending && n < last) {
				return "", refuse
			}
			last = n
			fields[i] = strconv.FormatInt(n, 10)
		}
		return Value(strings.Join(fields, " ")), nil
	case FormBool, FormSwitch:
		on, ok := parseBool(string(s))
		if !ok {
			// Some sysctls that we treat as switches accept further numbers in newer kernels; the
			// kernel's value is kept.
			if _, err := strconv.Atoi(string(s)); err == nil && !ranged && d.Form == FormBool {
				return s, nil
			}
			return "", refuse
		}
		names := [...]Value{"0", "1"}
		if d.Form == FormSwitch {
			names = [...]Value{"off", "on"}
		}
		if on {
			return names[1], nil
		}
		return names[0], nil
	case FormWord:
		if s == "" || strings.Contains(string(s), " ") {
			return "", refuse
		}
		if ranged && len(d.Choices) > 0 && !slices.Contains(d.Choices, string(s)) {
			return "", refuse
		}
		return s, nil
	case FormMask:
		return normalizeMask(s, refuse)
	case FormList:
		return d.normalizeList(s, ranged, refuse)
	case FormRanges:
		return d.normalizeRanges(s, ranged, refuse)
	}
	return s, nil
}

// Equal reports whether two values mean the same setting. Values of the wrong form are compared as
// text.
//
// It decides whether a value read back is the one that was written, and whether another program has
// changed it since; a text comparison would treat a tab as a foreign change.
func (d Definition) Equal(a, b Value) bool {
	ca, errA := d.Canonical(a)
	cb, errB := d.Canonical(b)
	if errA != nil || errB != nil {
		return a.Squeeze() == b.Squeeze()
	}
	return ca == cb
}
