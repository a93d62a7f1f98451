package moderation

import (
	"fmt"
	"math"
)

// Severity is how bad a hazard is.
type Severity string

// The effects of a hazard on the host.
const (
	Hang     Severity = "hang"     // the card may stop until its watchdog resets it
	Harmful  Severity = "harmful"  // it works, at a known price
	NoEffect Severity = "ignored"  // the value does nothing on this card
	Refused  Severity = "refused"  // the module does not accept the value
	Unsuited Severity = "unsuited" // right for some traffic, wrong for other traffic
)

// Hazard is a known problem of a value.
type Hazard struct {
	Parameter string
	Value     uint32
	Severity  Severity
	Why       string // a sentence without its full stop, with the alternative if one exists
	Source    string
}

// The sources of the warnings.
const (
	manualE1000  = "e1000.rst"
	manualE1000E = "e1000e.rst"
)

// The limits in the warnings.
const (
	// hang82547 is the rate above which the 82547 may stop (e1000.rst, caution).
	hang82547 = 75_000
	// sharedRate is what the driver's document recommends for several adapters; 2000 to 3000 work
	// on most machines.
	sharedRate = 3000
)

// Hazards returns what is known to go wrong, or to have no effect, when the module of c is loaded
// with these parameters, given by name for one port. Missing names have their defaults. The result
// is in the order of [Parameters]. Unknown names are ignored: [Check] reports them.
func Hazards(c Card, given map[string]uint32) []Hazard {
	source := manualE1000
	if c.Driver == E1000E {
		source = manualE1000E
	}
	var all []Hazard
	for _, p := range Parameters(c) {
		value, isGiven := given[p.Name]
		if !isGiven {
			value = p.Default
		}
		say := func(severity Severity, format string, args ...any) {
			all = append(all, Hazard{Parameter: p.Name, Value: value, Severity: severity,
				Why: fmt.Sprintf(format, args...), Source: source})
		}
		if err := Check(c, p.Name, value); err != nil {
			why := fmt.Sprintf("%v; the module takes its default instead, %d", err, p.Default)
			if p.Name == "InterruptThrottleRate" && c.Driver == E1000 {
				// e1000_check_options clears the two mode bits of the default, which is 3, so the
				// throttle ends up off.
				why = fmt.Sprintf("%v; the module reports that it takes its default, "+
					"and switches moderation off (e1000_param.c)", err)
			}
			say(Refused, "%s", why)
			continue
		}
		switch p.Name {
		case "InterruptThrottleRate":
			throttleHazards(c, value, isGiven, say)
		case "RxIntDelay":
			if value > 0 {
				say(Hang, "the adapter may stop under some network conditions until its watchdog resets it, "+
					"and TCP may get slower; 0 is safe")
			}
		case "RxAbsIntDelay", "TxAbsIntDelay":
			packet := map[string]string{"RxAbsIntDelay": "RxIntDelay", "TxAbsIntDelay": "TxIntDelay"}[p.Name]
			switch delay, ok := given[packet]; {
			case !isGiven:
			case c.before("82540"):
				say(NoEffect, "controllers before the 82540 have no absolute timers")
			case delay == 0 && (ok || packet == "RxIntDelay"):
				say(NoEffect, "useful only with %s other than 0", packet)
			}
		case "XsumRX":
			if value == 0 {
				say(Harmful, "the processor then computes the checksum of every received packet; "+
					"1 is the default and costs nothing")
			}
		}
	}
	return all
}

// throttleHazards judges one value of InterruptThrottleRate that the module accepts.
func throttleHazards(c Card, value uint32, isGiven bool, say func(Severity, string, ...any)) {
	if c.before("82540") {
		if isGiven {
			say(NoEffect, "82542, 82543 and 82544 have no throttle")
		}
		return
	}
	t, err := FromParameter(value)
	if err != nil {
		return // Check has reported it
	}
	_, most := t.Bounds()
	if c.Driver == E1000 && isController(c, "82547") && (t.Mode == Off || t.Mode == Fixed && value > hang82547) {
		say(Hang, "the 82547 may stop under some network conditions above %d interrupts/s and without a throttle; "+
			"it resets itself with a NETDEV WATCHDOG message", hang82547)
	}
	if t.Mode == Off {
		say(Unsuited, "shortest delay for small packets, not suited to bulk traffic: up to one interrupt per frame")
	}
	// Only e1000.rst has this: on PCI and PCI-X the ports share a bus and often an interrupt line.
	if c.Driver == E1000 && c.Ports > 1 && (t.Mode != Fixed || most > sharedRate*2) {
		limit := "without limit"
		if !math.IsInf(float64(most), 1) {
			limit = fmt.Sprintf("up to %.0f/s", float64(most))
		}
		say(Harmful, "with %d active ports, each interrupting %s, CPU use may rise more than in proportion; "+
			"the driver's document recommends %d for each", c.Ports, limit, sharedRate)
	}
}

// isController reports whether the card's controller is known to be of that family.
func isController(c Card, family string) bool {
	i, known := c.generation()
	return known && generations[i] == family
}
