package knob

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// ErrNotAllowed: this host lets others change settings, but not this one. It is an
// fs.ErrPermission.
var ErrNotAllowed error = &sentinel{"not among the settings that others may change here", fs.ErrPermission}

// ErrDisturbs: changing the knob disturbs running traffic more than is allowed. It is an
// fs.ErrPermission.
var ErrDisturbs error = &sentinel{"not allowed", fs.ErrPermission}

// AllowFlag returns the flag with which linerate set changes a knob, with a blank before it, or
// nothing where it needs none.
func AllowFlag(id ID) string {
	if d, known := Catalogue().Lookup(id); known && d.Disturbance > DefaultClass {
		return " --allow " + d.Disturbance.String()
	}
	return ""
}

// Permission is what others may change on a host: the knobs of the catalogue up to a class of
// disturbance, and of these only those that match a pattern, if there is any. Secrets are never
// among them. The zero Permission is d0 alone.
type Permission struct {
	Class    Disturbance
	Patterns []string
}

// DefaultClass is the highest class that a change may have without a permission of its own.
const DefaultClass = DisturbsNewSockets

// ParseDisturbance reads d0 to d4.
func ParseDisturbance(text string) (Disturbance, error) {
	if len(text) == 2 && text[0] == 'd' && text[1] >= '0' && text[1] <= '4' {
		return Disturbance(text[1] - '0'), nil
	}
	return 0, fmt.Errorf("%q: not one of d0, d1, d2, d3, d4", text)
}

// String returns d0 to d4.
func (d Disturbance) String() string { return fmt.Sprintf("d%d", int(d)) }

// ParsePermission reads a list parted by commas: a class, and patterns of knobs in which * stands
// for any text. Without a class it is DefaultClass; without a pattern every knob matches. A pattern
// that matches nothing in the catalogue is an error.
func ParsePermission(text string) (Permission, error) {
	p := Permission{Class: DefaultClass}
	classes := 0
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if class, err := ParseDisturbance(part); err == nil {
			p.Class = class
			if classes++; classes > 1 {
				return Permission{}, fmt.Errorf("%q: it names two classes", text)
			}
			continue
		}
		known := slices.ContainsFunc(Catalogue().listed(), func(d Definition) bool {
			return Overlap(flat(part), flat(string(d.Pattern)))
		})
		if !known {
			return Permission{}, fmt.Errorf("%q: neither a class d0 to d4 nor a name of the catalogue", part)
		}
		p.Patterns = append(p.Patterns, part)
	}
	return p, nil
}

// String returns the form that ParsePermission reads.
func (p Permission) String() string {
	return strings.Join(append([]string{p.Class.String()}, p.Patterns...), ",")
}

// Check returns nil for a knob that others may change, and otherwise an *Error: ErrUnknown, or
// ErrNotAllowed with the reason.
func (p Permission) Check(id ID) error {
	d, known := Catalogue().Lookup(id)
	refuse := func(format string, args ...any) error {
		return (&Error{Op: "set", Knob: id, Err: fmt.Errorf("%w: %s", ErrNotAllowed, fmt.Sprintf(format, args...))}).
			WithHint("where serve runs, --allow-tuning=CLASS,PATTERN,… says what others may change")
	}
	switch {
	case !known:
		return &Error{Op: "set", Knob: id, Err: ErrUnknown}
	case d.Secret:
		return refuse("it is a secret")
	case Reloads(id):
		return refuse("it loads a driver anew, which set does on the host itself")
	case d.Disturbance > p.Class:
		return refuse("it disturbs running traffic (class %s, allowed is %s)", d.Disturbance, p.Class)
	case len(p.Patterns) > 0 && !slices.ContainsFunc(p.Patterns, func(pattern string) bool {
		return fits(pattern, string(id))
	}):
		return refuse("it matches none of %s", strings.Join(p.Patterns, ", "))
	}
	return nil
}

// flat hides the slashes of a name, so that a star crosses them.
func flat(name string) string { return strings.ReplaceAll(name, "/", "\x01") }
