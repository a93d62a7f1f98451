package text

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/optic"
	"github.com/linerate/linerate/internal/report"
)

// Interfaces writes the interfaces of an inspect document one after the other, each on one screen
// with what ethtool(8) shows in a dozen calls.
func Interfaces(w io.Writer, d *report.InspectDocument, s Style) error {
	p := &printer{w: w, s: s}
	for n, i := range d.Interfaces {
		if n > 0 {
			p.line("")
		}
		p.oneInterface(i)
	}
	p.notes("NOT READ", d.Warnings)
	return p.err
}

func (p *printer) oneInterface(i host.Interface) {
	p.line("%s", p.s.bold(clean(strings.TrimSpace(i.Name+"  "+strings.Join(nonEmpty(state(i), linkText(i)), ", ")))))
	c := i.Card
	if c == nil {
		c = &host.Card{}
	}
	t := newTable()
	t.wrap = true
	row := func(name string, parts ...string) {
		if text := strings.Join(nonEmpty(parts...), " · "); text != "" {
			t.row(cell{name, p.s.dim}, text)
		}
	}
	row("driver", strings.TrimSpace(i.Driver+" "+c.DriverVersion), prefixed("firmware ", c.FirmwareVersion),
		prefixed("pci ", c.PCIID))
	if b := i.Bus; b != nil {
		row("bus", busText(b), b.Address)
	}
	row("link", speedText(i), prefixed("port ", c.Port), prefixed("mtu ", mtuText(i)), prefixed("address ", i.MAC))
	if m := c.Modes; m != nil {
		row("modes", strings.Join(m.Supported, " "))
		if len(m.Partner) > 0 {
			row("partner", strings.Join(m.Partner, " "))
		}
	}
	if r := i.Rings; r != nil {
		row("rings", fmt.Sprintf("rx %d of %d", r.Rx.Current, r.Rx.Max), fmt.Sprintf("tx %d of %d", r.Tx.Current, r.Tx.Max))
	}
	if ch := i.Channels; ch != nil {
		var parts []string
		for _, one := range []struct {
			name     string
			now, max uint32
		}{{"combined", ch.Combined, ch.MaxCombined}, {"rx", ch.Rx, ch.MaxRx}, {"tx", ch.Tx, ch.MaxTx}} {
			if one.max > 0 {
				parts = append(parts, fmt.Sprintf("%s %d of %d", one.name, one.now, one.max))
			}
		}
		row("channels", parts...)
	}
	var on, off []string
	for _, name := range slices.Sorted(maps.Keys(i.Features)) {
		switch f := i.Features[name]; {
		case f.On:
			on = append(on, name)
		case !f.Fixed:
			off = append(off, name)
		}
	}
	row("offloads", strings.Join(on, " "))
	row("could be on", strings.Join(off, " "))
	var coalesce []string
	for _, name := range slices.Sorted(maps.Keys(i.Coalesce)) {
		coalesce = append(coalesce, fmt.Sprintf("%s %d", name, i.Coalesce[name]))
	}
	row("coalescing", strings.Join(coalesce, ", "))
	if c.Pause != nil {
		negotiated := "set"
		if c.Pause.Autoneg {
			negotiated = "autonegotiated"
		}
		row("pause", pauseText(*c.Pause), negotiated)
	}
	if c.FEC != nil {
		row("fec", prefixed("active ", c.FEC.Active), strings.Join(c.FEC.Modes, " "))
	}
	if c.EEE != nil {
		row("eee", map[bool]string{true: "on", false: "off"}[c.EEE.Enabled], map[bool]string{true: "in use"}[c.EEE.Active])
	}
	if c.RSS != nil && len(c.RSS.Shares) > 0 {
		row("rss", rssText(*c.RSS), prefixed("hash ", c.RSS.HashFunction))
	}
	row("private", strings.Join(onFlags(c.PrivateFlags), " "))
	row("interrupts", interruptText(i.Interrupts))
	row("steering", steeringText(i))
	row("queue", i.Qdisc)
	row("addresses", strings.Join(i.Addresses, " "))
	if o := c.Optic; o != nil {
		row("module", o.Form, o.Standard, strings.TrimSpace(o.Vendor+" "+o.Part+" "+o.Revision),
			prefixed("serial ", o.Serial), wavelengthText(o), signalText(o))
	}
	t.print(p, "  ")
	if o := c.Optic; o != nil {
		p.optic(o)
	}
	lost := newTable("lost or held back", ">count", "meaning")
	lost.wrap = true
	for _, sy := range i.Symptoms {
		lost.row(sy.Counter, sy.Total, sy.Meaning)
	}
	if len(lost.rows) > 0 {
		p.line("")
		lost.print(p, "  ")
	}
}

// optic prints what a module measures beside its limits.
func (p *printer) optic(o *optic.Module) {
	t := newTable("module", ">lane", ">now", "state", ">low alarm", ">low warning", ">high warning", ">high alarm")
	for _, r := range o.Readings {
		lane := ""
		if r.Lane > 0 {
			lane = fmt.Sprint(r.Lane)
		}
		limit := func(v *float64) string {
			if v == nil {
				return ""
			}
			return opticText(*v, r.Unit)
		}
		colour := map[optic.State]func(string) string{optic.Fine: p.s.green, optic.LowWarning: p.s.yellow,
			optic.HighWarning: p.s.yellow, optic.LowAlarm: p.s.red, optic.HighAlarm: p.s.red}[r.State]
		t.row(r.Name, lane, opticText(r.Value, r.Unit), cell{strings.ReplaceAll(string(r.State), "-", " "), colour},
			limit(r.LowAlarm), limit(r.LowWarning), limit(r.HighWarning), limit(r.HighAlarm))
	}
	if len(t.rows) > 0 {
		p.line("")
		t.print(p, "  ")
	}
}

// opticText prints a value of a module in the unit of its data sheet.
func opticText(v float64, of string) string {
	switch of {
	case "celsius":
		return fmt.Sprintf("%.1f °C", v)
	case "volts":
		return fmt.Sprintf("%.2f V", v)
	case "amperes":
		return fmt.Sprintf("%.1f mA", v*1e3)
	}
	if v <= 0 {
		return "no light"
	}
	return fmt.Sprintf("%.1f dBm", 10*math.Log10(v*1e3))
}

func wavelengthText(o *optic.Module) string {
	if o.WavelengthNanometres <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f nm", o.WavelengthNanometres)
}

func signalText(o *optic.Module) string {
	if o.SignalBitsPerSec <= 0 {
		return ""
	}
	return unit.BitRate(o.SignalBitsPerSec).String() + " a lane"
}

// speedText says how the link came to its speed, where that is known.
func speedText(i host.Interface) string {
	text := linkText(i)
	if text == "" && i.Carrier {
		text = "speed not known"
	}
	if i.Card != nil && i.Card.Modes != nil && i.SpeedBitsPerSec > 0 {
		text += map[bool]string{true: ", autonegotiated", false: ", set"}[i.Card.Modes.Autoneg]
		if best, ok := fasterMode(i); ok {
			text += ", could link in mode " + best
		}
	}
	return text
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(t string) bool { return t == "" })
}
