package cli

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/host/session"
)

// classCheck refuses settings that disturb running traffic more than the user has allowed.
type classCheck struct {
	allow   knob.Disturbance
	confirm bool                        // at once, without a trial
	carries func() []string             // interfaces that carry the user's own session
	missing func(op, name string) error // an error for an interface that does not exist
	another func(op, name string) error // an error for a name that is not the interface's own
	// displaces returns the interfaces that a write creates anew.
	displaces func(knob.ID) []string
}

func newClassCheck(allow string, confirm bool) (classCheck, error) {
	class, err := knob.ParseDisturbance(allow)
	if err != nil {
		return classCheck{}, usagef("--allow %v", err)
	}
	return classCheck{class, confirm, session.Interfaces, noInterface, anotherName, displaces}, nil
}

// displaces asks the backend of this system.
func displaces(id knob.ID) []string {
	if d, ok := knob.As[knob.Displacer](live.New()); ok {
		return d.Displaces(id)
	}
	return nil
}

// check returns the first refusal.
func (c classCheck) check(settings []knob.Setting) error {
	for _, s := range settings {
		d, known := knob.Catalogue().Lookup(s.Knob)
		if !known {
			continue // refused elsewhere
		}
		// The user's session is known by the own name of its interface.
		if err := c.another("set "+string(s.Knob), s.Knob.Interface()); err != nil {
			return err
		}
		if d.Disturbance > c.allow {
			// What does not exist is not permitted by a higher class either.
			if err := c.missing("set "+string(s.Knob), s.Knob.Interface()); err != nil {
				return err
			}
		}
		own := d.Disturbance >= knob.DisturbsLink && slices.Contains(c.carries(), s.Knob.Interface())
		switch {
		case d.Disturbance > c.allow:
			why := fmt.Sprintf("it disturbs running traffic (class %s, allowed is %s)", d.Disturbance, c.allow)
			if own {
				why += fmt.Sprintf(", and %s carries your session", s.Knob.Interface())
			}
			if gone := c.displaces(s.Knob); len(gone) > 0 {
				why += fmt.Sprintf(", and takes %s away for some seconds", strings.Join(gone, ", "))
			}
			return refuseClass(s.Knob, why, fmt.Sprintf("--allow %s permits it: %s", d.Disturbance,
				strings.TrimSuffix(d.Risk, ".")))
		case own && c.confirm:
			return refuseClass(s.Knob, fmt.Sprintf("it takes the link down, and %s carries your session",
				s.Knob.Interface()), "leave out --yes, and confirm over a new connection")
		}
		for _, name := range c.displaces(s.Knob) {
			if slices.Contains(c.carries(), name) {
				return refuseClass(s.Knob, fmt.Sprintf("it loads the driver of %s anew, which carries your session", name),
					"work over an interface of another driver, or on the console")
			}
		}
	}
	return nil
}

// announce prints, before anything is touched, which interfaces the settings take away.
func (c classCheck) announce(settings []knob.Setting, warn func(format string, args ...any)) {
	for _, s := range settings {
		if gone := c.displaces(s.Knob); len(gone) > 0 {
			warn("%s: %s is unloaded and loaded again: %s away for some seconds, and back with all that they have",
				s.Knob, s.Knob.Subject(), strings.Join(gone, ", "))
		}
	}
}

// noInterface returns an error where an interface that a knob or a pattern names does not exist;
// nil for a name that is empty or a glob. Op is the command and its argument.
func noInterface(op, name string) error {
	if name == "" || strings.ContainsAny(name, "*?[") {
		return nil
	}
	if _, err := net.InterfaceByName(name); err == nil {
		return nil
	}
	if err := anotherName(op, name); err != nil {
		return err
	}
	return flagError{fmt.Errorf("%s: no such interface: %s", op, name), "linerate inspect lists the interfaces"}
}

// anotherName returns an error where an interface has the name only beside its own.
func anotherName(op, name string) error {
	if own := live.OwnName(name); own != "" {
		return fmt.Errorf("%s: %w", op, live.OtherName{Name: name, Own: own})
	}
	return nil
}

// ownName returns the own name of the interface that a user named, for what only shows it.
func ownName(name string) string { return cmp.Or(live.OwnName(name), name) }

func refuseClass(id knob.ID, why, hint string) error {
	return (&knob.Error{Op: "set", Knob: id, Err: fmt.Errorf("%w: %s", knob.ErrDisturbs, why)}).WithHint(hint)
}
