package moderation

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Mode is what a value of InterruptThrottleRate asks for.
type Mode uint8

// The modes, with the values of InterruptThrottleRate that ask for them (e1000.rst, e1000e.rst).
const (
	Off     Mode = iota // 0: an interrupt for every frame that finds none pending
	Dynamic             // 1: as 3, and up to 70 000/s for almost nothing but small packets
	// 3: by traffic: 4000/s for bulk, stepwise up to 20 000/s for little or small traffic
	DynamicConservative
	Balanced // 4: by direction: 2000/s when both are equally busy, up to 8000/s when one is
	Fixed    // 100 to 100 000: that many per second
)

// The bounds of a fixed rate, and of the same in microseconds for ethtool (E1000_MIN_ITR_USECS and
// its fellows in the drivers).
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

// FromParameter reads a value of InterruptThrottleRate. An error names what there is: 2, 5 to 99
// and everything above 100 000 mean nothing.
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
		"InterruptThrottleRate %d: not one of 0 (off), 1 (dynamic), 3 (dynamic conservative), 4 (balanced), 100 to 100000 (interrupts per second)", value)
}

// ParseParameter reads the list that the module takes, one value per port in the order of the
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

// Parameter is the value of InterruptThrottleRate that stands for t.
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

// Bounds are the interrupt rates that the card keeps to: +Inf for both when it is off, one figure
// for a fixed rate as its register has it, the range that the driver chooses from in the adaptive
// modes. What has to hold for any traffic goes by most.
//
// The figures are those of e1000 and e1000e. igb counts whole microseconds instead of 256 ns, so
// there a fixed rate is up to 2.6 % lower; its dynamic mode goes by the mean size of the frames,
// which for the smallest ones means up to 95 000/s (igb_update_ring_itr).
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

// String says t in words, as a report does.
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

// FromUsecs reads what `ethtool -C IF rx-usecs N` asks these drivers for. It is not always
// microseconds: 0, 1, 3 and, other than on igb, 4 are the modes of InterruptThrottleRate; 10 to 10
// 000 are an interval. The error of other values says so: the drivers refuse them with EINVAL. A
// driver that this package does not know is [errors.ErrUnsupported].
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

// Usecs is what to give to `ethtool -C IF rx-usecs` for t. Not every rate has a whole number of
// microseconds; the interval is cut off, so the rate is met or passed: 3000/s gives 333. igb has no
// balanced mode: [errors.ErrUnsupported].
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

// ReadBack is what `ethtool -c` shows after usecs were set. e1000 and e1000e keep a rate, with its
// two lowest bits cleared because they mark the modes, and answer with the interval of that: 9999
// µs come back as 10 000. igb keeps what it was given. The error is that of [FromUsecs].
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
