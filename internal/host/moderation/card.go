package moderation

import (
	"errors"
	"fmt"
	"strings"
)

// Card holds the facts about a card that decide what a parameter does on it.
type Card struct {
	Driver Driver
	// Controller is the chip, "82547" or "82547GI"; empty: not known, so facts that hold only for
	// some controllers are left out.
	Controller string
	// Ports is the number of ports of this driver in the machine; 0: not known.
	Ports int
}

// generations are the controllers that e1000 drives, oldest first, in the driver's order
// (e1000_mac_type in e1000_hw.h).
var generations = [...]string{"82542", "82543", "82544", "82540", "82545", "82546", "82541", "82547"}

// generation returns the position of the card's controller in generations. ok is false if it is not
// known, or not one of e1000's.
func (c Card) generation() (int, bool) {
	for i, name := range generations {
		if strings.HasPrefix(c.Controller, name) {
			return i, true
		}
	}
	return 0, false
}

// before reports whether the card is known to be older than that controller.
func (c Card) before(controller string) bool {
	i, known := c.generation()
	j, _ := Card{Controller: controller}.generation()
	return known && c.Driver == E1000 && i < j
}

// Parameter is one parameter of the modules e1000 and e1000e.
type Parameter struct {
	Name     string
	Unit     string // empty: no unit
	Min, Max uint32
	Also     []uint32 // values outside the range with a meaning
	Default  uint32
	// Missing names the cards on which the parameter does nothing, in the driver's words,
	// shortened; empty: it works on all.
	Missing string
	// Yields names the parameter that overrides this one; empty: none does.
	Yields string
	// Instead is the knob that sets the same on a running host, without the interface; empty: no
	// such knob exists, and a change needs a reload.
	Instead string
}

// Parameters returns the parameters that affect interrupts and rings, with the ranges that hold on
// c. igb has none of them: its module never had them in the kernel's own tree. Defaults are those
// of the driver's source, which for RxAbsIntDelay is 8 where e1000.rst still has 128.
func Parameters(c Card) []Parameter {
	if c.Driver != E1000 && c.Driver != E1000E {
		return nil
	}
	const ticks = "1.024 µs"
	const noTimer = "82542, 82543 and 82544"
	all := []Parameter{
		{
			Name: "InterruptThrottleRate", Unit: "interrupts/s", Min: uint32(MinFixedRate), Max: uint32(MaxFixedRate),
			Also: []uint32{0, 1, 3, 4}, Default: 3,
			Missing: onlyE1000(c, noTimer), Instead: "coalesce.rx-usecs",
		},
		{Name: "RxIntDelay", Unit: ticks, Max: 65535, Yields: "RxAbsIntDelay, InterruptThrottleRate"},
		{Name: "RxAbsIntDelay", Unit: ticks, Max: 65535, Default: 8, Missing: onlyE1000(c, noTimer),
			Yields: "InterruptThrottleRate"},
		{Name: "TxIntDelay", Unit: ticks, Max: 65535, Default: 8, Yields: "TxAbsIntDelay, InterruptThrottleRate"},
		{Name: "TxAbsIntDelay", Unit: ticks, Max: 65535, Default: 32, Missing: onlyE1000(c, noTimer),
			Yields: "InterruptThrottleRate"},
	}
	if c.Driver == E1000E {
		return all
	}
	descriptors := uint32(4096)
	if c.before("82544") {
		descriptors = 256
	}
	return append(all,
		Parameter{Name: "RxDescriptors", Unit: "descriptors", Min: 48, Max: descriptors, Default: 256,
			Instead: "ring.rx"},
		Parameter{Name: "TxDescriptors", Unit: "descriptors", Min: 48, Max: descriptors, Default: 256,
			Instead: "ring.tx"},
		Parameter{Name: "XsumRX", Max: 1, Default: 1, Missing: "82542", Instead: "feature.rx-checksum"},
	)
}

// onlyE1000 hides a remark on old controllers for e1000e, which drives none of them.
func onlyE1000(c Card, controllers string) string {
	if c.Driver == E1000 {
		return controllers
	}
	return ""
}

// Check reports whether the module accepts that value of that parameter on c. The error names the
// range. For a parameter that the module does not have it is [errors.ErrUnsupported].
func Check(c Card, name string, value uint32) error {
	for _, p := range Parameters(c) {
		if p.Name != name {
			continue
		}
		if value >= p.Min && value <= p.Max {
			return nil
		}
		for _, also := range p.Also {
			if value == also {
				return nil
			}
		}
		also := ""
		if len(p.Also) > 0 {
			also = fmt.Sprintf(" and %s", strings.Trim(fmt.Sprint(p.Also), "[]"))
		}
		return fmt.Errorf("%s %d: outside %d to %d%s", name, value, p.Min, p.Max, also)
	}
	return fmt.Errorf("parameter %s of %s: %w", name, c.Driver, errors.ErrUnsupported)
}

// Form is one way to write a setting: as a knob of linerate, and as administrators type it.
type Form struct {
	Knob  string // ethtool:eth0/coalesce.rx-usecs, module:e1000/InterruptThrottleRate
	Value string
	Line  string // the same as a command, or as a line of a file
	File  string // where the line belongs; empty: Line is a command
}

// Live returns the form that works on a running host: ethtool -C, at once and until the module is
// loaded again. Cards older than the 82545 have a throttle that only the module's parameter can
// change (e1000_set_coalesce). For them and for other drivers Live returns [errors.ErrUnsupported].
func (t Throttle) Live(c Card, device string) (Form, error) {
	if c.before("82545") {
		return Form{}, fmt.Errorf(
			"rx-usecs of %s: %w by e1000 before the 82545; the module's parameter is the only way", device,
			errors.ErrUnsupported)
	}
	usecs, err := t.Usecs(c.Driver)
	if err != nil {
		return Form{}, err
	}
	return Form{
		Knob:  "ethtool:" + device + "/coalesce.rx-usecs",
		Value: fmt.Sprint(usecs),
		Line:  fmt.Sprintf("ethtool -C %s rx-usecs %d", device, usecs),
	}, nil
}

// AtLoad returns the form that the module reads when it is loaded, one value per port in the order
// of the ports. Reloading a module in use takes the link down. For igb, which has no such
// parameter, and for an empty list AtLoad returns [errors.ErrUnsupported].
func AtLoad(d Driver, ports ...Throttle) (Form, error) {
	if d != E1000 && d != E1000E || len(ports) == 0 {
		return Form{}, fmt.Errorf("InterruptThrottleRate of %s for %d ports: %w", d, len(ports), errors.ErrUnsupported)
	}
	values := make([]string, len(ports))
	for i, t := range ports {
		values[i] = fmt.Sprint(t.Parameter())
	}
	value := strings.Join(values, ",")
	return Form{
		Knob:  fmt.Sprintf("module:%s/InterruptThrottleRate", d),
		Value: value,
		Line:  fmt.Sprintf("options %s InterruptThrottleRate=%s", d, value),
		File:  fmt.Sprintf("/etc/modprobe.d/%s.conf", d),
	}, nil
}
