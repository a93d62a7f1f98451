package cards

import (
	"fmt"
	"math"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/moderation"
)

// wait is how long a card or the kernel above it may hold back the interrupt of a frame, and which
// setting says so.
type wait struct {
	// shortest and longest are the same where the setting is a number; where the driver chooses by
	// traffic they are its range.
	shortest, longest time.Duration
	adaptive          bool
	why               string // "rx-usecs 125 of eth0"
	knob              string // what changes it, without the card's name: coalesce.rx-usecs; empty: nothing of the card
}

// String says how long, for sentences.
func (w wait) String() string {
	if w.adaptive {
		return evidence.Seconds(w.shortest.Seconds()) + " to " + evidence.Seconds(w.longest.Seconds()) +
			" by the traffic"
	}
	return evidence.Seconds(w.longest.Seconds())
}

// moderated tells the drivers whose moderation is known to the register.
func moderated(driver string) bool {
	switch moderation.Driver(driver) {
	case moderation.E1000, moderation.E1000E, moderation.IGB:
		return true
	}
	return false
}

// longestBelieved is the longest interval that is taken for one: beyond a second it is a number
// that means something else in its driver.
const longestBelieved = time.Second

// interval is how long this card holds back the interrupt of a received frame. False: it does not,
// or its driver does not tell.
//
// A wait for a number of frames (rx-frames above 1) ends sooner only where other frames come, which
// a lone question has not. A driver that adapts goes by the traffic; what it does with little of it
// is its own affair, so that only its bound is known.
func (c card) interval() (wait, bool) {
	w, ok := waitOfCard(c.Interface)
	// The kernel's own waits come on top of the card's, but only after a poll that found something
	// (napi.rst): of the two the longer is what a lone frame meets.
	if n := c.NAPI; n != nil && n.DeferHardIRQs > 0 && n.GROFlushTimeoutSeconds > 0 {
		timeout := time.Duration(n.GROFlushTimeoutSeconds * float64(time.Second))
		if timeout <= longestBelieved && timeout > w.longest {
			return wait{shortest: timeout, longest: timeout, knob: "gro_flush_timeout",
				why: fmt.Sprintf("gro_flush_timeout %v of %s with napi_defer_hard_irqs %d", timeout, c.Name,
					n.DeferHardIRQs)}, true
		}
	}
	return w, ok
}

// waitOfCard is what the card itself waits, by what its driver says.
func waitOfCard(x *host.Interface) (wait, bool) {
	usecs, told := x.Coalesce["rx-usecs"]
	if !told {
		return wait{}, false
	}
	why := fmt.Sprintf("rx-usecs %d of %s", usecs, x.Name)
	// For these drivers the number is a mode as well as a time, and the time is rounded to what the
	// register holds.
	if moderated(x.Driver) {
		t, err := moderation.FromUsecs(moderation.Driver(x.Driver), usecs)
		if err != nil || t.Mode == moderation.Off {
			return wait{}, false
		}
		least, most := t.Bounds()
		return wait{shortest: most.Interval(), longest: least.Interval(), adaptive: t.Mode != moderation.Fixed,
			knob: "coalesce.rx-usecs", why: why + ", " + t.String()}, true
	}
	d := time.Duration(usecs) * time.Microsecond
	if usecs == 0 || d > longestBelieved || x.Coalesce["rx-frames"] == 1 {
		return wait{}, false
	}
	w := wait{shortest: d, longest: d, knob: "coalesce.rx-usecs", why: why}
	if x.Coalesce["adaptive-rx"] != 0 {
		w.shortest, w.adaptive, w.why = 0, true, why+", adaptive"
	}
	return w, true
}

// asBitRate is a speed as package unit has it, 0 for what is none.
func asBitRate(bitsPerSecond float64) unit.BitRate {
	if !(bitsPerSecond > 0) || math.IsInf(bitsPerSecond, 0) {
		return 0
	}
	return unit.BitRate(bitsPerSecond)
}

// shorterWaits are values of rx-usecs that hold interrupts back for less than now, the smallest
// step first. None is offered that is known to stop the card.
func (c card) shorterWaits() []knob.Value {
	now := c.Coalesce["rx-usecs"]
	if now == 0 {
		return nil
	}
	candidates := []uint32{now / 4, 0}
	if moderated(c.Driver) {
		// The modes in which the driver goes by the traffic, the cautious one first, and no
		// moderation at all.
		candidates = []uint32{3, 1, 0}
	}
	var levels []knob.Value
	for _, n := range candidates {
		if n != now && (n == 0 || n < now) && !c.stopsAt(n) {
			levels = append(levels, knob.Value(fmt.Sprint(n)))
		}
	}
	return levels
}

// stopsAt tells that this card is known to stop at that value of rx-usecs: the 82547 without a
// throttle, or with one above 75 000/s.
func (c card) stopsAt(usecs uint32) bool {
	t, err := moderation.FromUsecs(moderation.Driver(c.Driver), usecs)
	if err != nil || c.Card == nil {
		return false
	}
	is := moderation.Card{Driver: moderation.Driver(c.Driver), Controller: moderation.ControllerOf(c.Card.PCIID)}
	for _, h := range moderation.Hazards(is, map[string]uint32{"InterruptThrottleRate": t.Parameter()}) {
		if h.Severity == moderation.Hang && h.Parameter == "InterruptThrottleRate" {
			return true
		}
	}
	return false
}
