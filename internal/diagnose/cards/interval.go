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

// wait is how long a NIC, or the kernel above it, may delay the interrupt of a frame, and which
// setting says so.
type wait struct {
	// shortest and longest are equal if the setting is a number, and the range if the driver adapts
	// to traffic.
	shortest, longest time.Duration
	adaptive          bool
	why               string // "rx-usecs 125 of eth0"
	knob              string // what changes it, without the NIC's name: coalesce.rx-usecs; empty: no setting of the NIC
}

// String returns the delay for use in a sentence.
func (w wait) String() string {
	if w.adaptive {
		return evidence.Seconds(w.shortest.Seconds()) + " to " + evidence.Seconds(w.longest.Seconds()) +
			" depending on traffic"
	}
	return evidence.Seconds(w.longest.Seconds())
}

// moderated reports whether the moderation of a driver is known down to the register.
func moderated(driver string) bool {
	switch moderation.Driver(driver) {
	case moderation.E1000, moderation.E1000E, moderation.IGB:
		return true
	}
	return false
}

// longestBelieved is the longest credible interval: a number beyond a second means something else
// in its driver.
const longestBelieved = time.Second

// interval returns how long this NIC delays the interrupt of a received frame; false if it does
// not, or if its driver does not report it.
//
// A wait for a number of frames (rx-frames above 1) ends sooner only when other frames arrive,
// which does not happen to a single request. An adaptive driver follows the traffic; its choice
// under light traffic is unknown, so only its bound counts.
func (c card) interval() (wait, bool) {
	w, ok := waitOfCard(c.Interface)
	// The kernel's own delays add to the NIC's, but only after a poll that found something
	// (napi.rst): a single frame meets the longer of the two.
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

// waitOfCard returns the delay of the NIC itself, as its driver reports it.
func waitOfCard(x *host.Interface) (wait, bool) {
	usecs, ok := x.Coalesce["rx-usecs"]
	if !ok {
		return wait{}, false
	}
	why := fmt.Sprintf("rx-usecs %d of %s", usecs, x.Name)
	// For these drivers the number is a mode as well as a time, and the register rounds the time.
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

// asBitRate returns a speed as a unit.BitRate, and 0 for an invalid one.
func asBitRate(bitsPerSecond float64) unit.BitRate {
	if !(bitsPerSecond > 0) || math.IsInf(bitsPerSecond, 0) {
		return 0
	}
	return unit.BitRate(bitsPerSecond)
}

// shorterWaits returns values of rx-usecs with a shorter delay than now, the smallest step first.
// It leaves out values that are known to hang the NIC.
func (c card) shorterWaits() []knob.Value {
	now := c.Coalesce["rx-usecs"]
	if now == 0 {
		return nil
	}
	candidates := []uint32{now / 4, 0}
	if moderated(c.Driver) {
		// The adaptive modes, the cautious one first, and no moderation at all.
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

// stopsAt reports whether this NIC is known to hang at that value of rx-usecs: the 82547 without a
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
