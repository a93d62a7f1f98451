package moderation

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Mode is the meaning of a value of InterruptThrottleRate.
type Mode uint8

// The modes, with the values of InterruptThrottleRate that select them (e1000.rst, e1000e.rst).
const (
	Off     Mode = iota // 0: an interrupt for every frame that finds none pending
	Dynamic             // 1: as 3, and up to 70 000/s for almost nothing but small packets
	// 3: by traffic: 4000/s for bulk, stepwise up to 20 000/s for little or small traffic
	DynamicConservative
	Balanced // 4: by direction: 2000/s when both are equally busy, up to 8000/s when one is
	Fixed    // 100 to 100 000: that many per second
)

// The bounds of a fixed rate, and the same in microseconds for ethtool (E1000_MIN_ITR_USECS and
// similar constants in the drivers).
const (
	MinFixedRate InterruptsPerSecond = 100
	MaxFixedRate InterruptsPerSecond = 100_000

	MinUsecs = 10
	MaxUsecs = 10_000
)

// Throttle is one value of InterruptThrottleRate, for one port.
type Throttle struct {
	Mode Mode
	Rate InterruptsPerSecond // of Fixed: a whole number from 100 to 100 000; 0 in other modes
}

// FromParameter parses a value of InterruptThrottleRate. The error lists the valid values: 2, 5 to
// 99 and everything above 100 000 have no meaning.
func FromParameter(value uint32) (Throttle, error) {
	switch value {
	case 0:
		return Throttle{Mode: Off}, nil
	case 1:
		return Throttle{Mode: Dynamic}, nil
	case 3:
		return Throttle{Mode: DynamicConservative}, nil
	case 4:
		return Throttle{Mode: Balanced}, nil
	}
	if rate := InterruptsPerSecond(value); rate >= MinFixedRate && rate <= MaxFixedRate {
		return Throttle{Mode: Fixed, Rate: rate}, nil
	}
	return Throttle{}, fmt.Errorf(
		"InterruptThrottleRate %d: not one of 0 (off), 1 (dynamic), 3 (dynamic conservative), 4 (balanced), "+
			"100 to 100000 (interrupts per second)", value)
}

// ParseParameter parses the list that the module takes, one value per port in the order of the
// ports: "3000,3000,3000". A port without a value has the default.
func ParseParameter(text string) ([]Throttle, error) {
	var ports []Throttle
	for field := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		n, err := strconv.ParseUint(field, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("InterruptThrottleRate %q: port %d: not a decimal number", text, len(ports))
		}
		t, err := FromParameter(uint32(n))
		if err != nil {
			return nil, fmt.Errorf("port %d: %w", len(ports), err)
		}
		ports = append(ports, t)
	}
	return ports, nil
}

// Parameter returns the value of InterruptThrottleRate for t.
func (t Throttle) Parameter() uint32 {
	switch t.Mode {
	case Dynamic:
		return 1
	case DynamicConservative:
		return 3
	case Balanced:
		return 4
	case Fixed:
		return uint32(min(max(t.Rate, MinFixedRate), MaxFixedRate))
	}
	return 0
}

// Bounds returns the range of interrupt rates of the card: +Inf for both if the throttle is off,
// one figure for a fixed rate as its register has it, the range from which the driver chooses in
// the adaptive modes. A limit for any traffic has to use most.
//
// The figures are those of e1000 and e1000e. igb counts whole microseconds instead of 256 ns, so
// its fixed rates are up to 2.6 % lower; its dynamic mode depends on the mean size of the frames,
// which for the smallest ones gives up to 95 000/s (igb_update_ring_itr).
func (t Throttle) Bounds() (least, most InterruptsPerSecond) {
	switch t.Mode {
	case Dynamic:
		return 4000, 70_000
	case DynamicConservative:
		return 4000, 20_000
	case Balanced:
		return 2000, 8000
	case Fixed:
		rate := t.Rate.ITR().Rate()
		return rate, rate
	}
	return InterruptsPerSecond(math.Inf(1)), InterruptsPerSecond(math.Inf(1))
}

// String describes t in words, for a report.
func (t Throttle) String() string {
	switch t.Mode {
	case Dynamic:
		return "dynamic, 4000 to 70000 interrupts/s"
	case DynamicConservative:
		return "dynamic conservative, 4000 to 20000 interrupts/s"
	case Balanced:
		return "balanced, 2000 to 8000 interrupts/s"
	case Fixed:
		return fmt.Sprintf("%d interrupts/s", t.Parameter())
	}
	return "no moderation"
}

// Driver is a Linux driver whose moderation this package knows.
type Driver string

// The drivers of Intel's gigabit cards: PCI and PCI-X, PCIe up to the I219, PCIe from the 82575 to
// the I350 and I211.
const (
	E1000  Driver = "e1000"
	E1000E Driver = "e1000e"
	IGB    Driver = "igb"
)

// FromUsecs parses the argument of `ethtool -C IF rx-usecs N` for these drivers. It is not always
// microseconds: 0, 1, 3 and, except on igb, 4 are the modes of InterruptThrottleRate; 10 to 10 000
// are an interval. Other values give an error: the drivers refuse them with EINVAL. An unknown
// driver gives [errors.ErrUnsupported].
func FromUsecs(d Driver, usecs uint32) (Throttle, error) {
	switch d {
	case E1000, E1000E, IGB:
	default:
		return Throttle{}, fmt.Errorf("rx-usecs of %s: %w: only e1000, e1000e and igb are known", d,
			errors.ErrUnsupported)
	}
	if usecs >= MinUsecs && usecs <= MaxUsecs {
		return Throttle{Mode: Fixed, Rate: InterruptsPerSecond(1_000_000 / usecs)}, nil
	}
	if usecs < 4 && usecs != 2 || usecs == 4 && d != IGB {
		return FromParameter(usecs)
	}
	modes := "0, 1, 3, 4"
	if d == IGB {
		modes = "0, 1, 3"
	}
	return Throttle{}, fmt.Errorf("rx-usecs %d: %s takes %s and %d to %d", usecs, d, modes, MinUsecs, MaxUsecs)
}

// Usecs returns the argument of `ethtool -C IF rx-usecs` for t. Not every rate has a whole number
// of microseconds; the interval is truncated, so the rate is reached or exceeded: 3000/s gives 333.
// igb has no balanced mode: [errors.ErrUnsupported].
func (t Throttle) Usecs(d Driver) (uint32, error) {
	usecs := t.Parameter()
	if t.Mode == Fixed {
		usecs = 1_000_000 / usecs
	}
	if _, err := FromUsecs(d, usecs); err != nil {
		return 0, fmt.Errorf("%s: %w: %w", t, errors.ErrUnsupported, err)
	}
	return usecs, nil
}

// ReadBack returns what `ethtool -c` shows after usecs were set. e1000 and e1000e keep a rate, with
// its two lowest bits cleared because they mark the modes, and show the interval of that: 9999 µs
// come back as 10 000. igb keeps the value. The error is that of [FromUsecs].
func ReadBack(d Driver, usecs uint32) (uint32, error) {
	t, err := FromUsecs(d, usecs)
	if err != nil {
		return 0, err
	}
	if t.Mode != Fixed || d == IGB {
		return usecs, nil
	}
	return 1_000_000 / (uint32(t.Rate) &^ 3), nil
}
