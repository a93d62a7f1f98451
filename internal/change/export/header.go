package export

import (
	"cmp"
	"fmt"
	"strings"
)

// header returns comment lines with the origin of the proof, its effect, and the note that it was
// proven there and not here, or was never proven.
//
// ASCII only: the terminals of the target hosts are unknown.
func (d *draft) header(what string) string {
	var b strings.Builder
	put := func(format string, args ...any) {
		b.WriteString("# " + strings.TrimRight(comment(fmt.Sprintf(format, args...)), " ") + "\n")
	}
	o := d.set.Origin
	put("%s, written by linerate %s", what, cmp.Or(o.Linerate, "of an unknown version"))
	where := cmp.Or(o.Host, "an unnamed host")
	if system := strings.Join(strings.Fields(kernelName(o.OS)+" "+o.Kernel+" "+o.Arch), " "); system != "" {
		where += " (" + system + ")"
	}
	on := ""
	if !o.Time.IsZero() {
		on = ", " + o.Time.UTC().Format("2006-01-02")
	}
	if p := d.set.Proof; p != nil {
		line := "Proven on " + where + on
		if p.Goal != "" {
			line += ", for " + p.Goal
		}
		if p.Target != "" {
			line += " to " + p.Target
		}
		put("%s:", line)
		with := ""
		if p.OtherEnd > 0 {
			with = fmt.Sprintf(", with changes at the other end (%d),", p.OtherEnd)
		}
		put("  all of it together%s brought %s", with, p.words())
	} else {
		put("In force on %s%s.", where, on)
		put("No run is at hand that says how much it brought there.")
	}
	for _, i := range d.interfaces {
		put("  %s was the interface %s%s", i.Variable, i.Name, prefixed(", driver ", i.Driver))
	}
	put("")
	for _, s := range d.settings {
		put("%s%s", s.Knob, prefixed(": ", s.title))
		put("  %s -> %s%s%s", shown(string(s.From)), shown(string(s.To)), prefixed(", change ", s.ID),
			d.proofOf(s.Change))
		if s.Why != "" {
			put("  because: %s", s.Why)
		}
	}
	if len(d.left) > 0 {
		put("")
		put("Left out:")
		for _, l := range d.left {
			put("  %s = %s: %s%s", l.Knob, shown(string(l.To)), l.Why, prefixed("; by hand: ", l.ByHand))
		}
	}
	put("")
	proven := 0
	for _, s := range d.settings {
		if d.set.Proof != nil || s.Proof != nil {
			proven++
		}
	}
	switch proven {
	case len(d.settings):
		put("CAUTION: it was proven there, under that load and on that path, and not on the host that reads this.")
	case 0:
		put("CAUTION: it was only set there. No stored run proves that it helps, there or on the host that reads this.")
	default:
		put("CAUTION: %d of %d settings were proven there, under that load and on that path; the others were only set.",
			proven, len(d.settings))
		put("None was proven on the host that reads this.")
	}
	put("Measure before and after (linerate measure), or let linerate tune prove it here as well.")
	return strings.ReplaceAll(b.String(), "# \n", "#\n")
}

// words returns an effect as a part of a sentence.
func (e Effect) words() string {
	if e.Ratio == 0 {
		return "a gain that is not known"
	}
	s := fmt.Sprintf("x%.3g", e.Ratio)
	if e.Low == 0 || e.High == 0 {
		return s + " (interval not known)"
	}
	s += fmt.Sprintf(" (x%.3g to x%.3g", e.Low, e.High)
	if e.Confidence > 0 {
		s += fmt.Sprintf(" at %.3g %%", 100*e.Confidence)
	}
	if e.Pairs > 0 {
		s += fmt.Sprintf(", %d pairs", e.Pairs)
	}
	return s + ")"
}

// proofOf returns the effect of a single change, if it is known.
func (d *draft) proofOf(c Change) string {
	if c.Proof == nil {
		return ""
	}
	return ", alone " + c.Proof.words()
}

// kernelName returns the name that uname(1) prints for a Go operating system.
func kernelName(goos string) string {
	if goos == "linux" {
		return "Linux"
	}
	return goos
}

// prefixed adds a prefix to a text, unless it is empty.
func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// shown returns a value in a form that is visible on a line.
func shown(s string) string {
	if s == "" {
		return `""`
	}
	return s
}
