package hazard

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/host/moderation"
)

// Hazard is what is known to go wrong with a setting.
type Hazard struct {
	Knob   knob.ID
	Value  knob.Value
	Device string // the port that it concerns
	Stops  bool   // the card may stop, or the module does not take the value: the write is refused
	Why    string // a sentence without its full stop
	Source string
}

// String returns one sentence.
func (h Hazard) String() string {
	return fmt.Sprintf("%s=%s on %s: %s (%s)", h.Knob, h.Value, h.Device, h.Why, h.Source)
}

// Of returns the hazards of a setting on a host with these ports, which are in the order of their
// PCI addresses.
func Of(ports []Port, s knob.Setting) []Hazard {
	switch {
	case s.Knob.Kind() == knob.KindEthtool && s.Knob.Attribute() == "coalesce.rx-usecs":
		return ofInterval(ports, s)
	case s.Knob.Kind() == knob.KindModule:
		return ofModule(ports, s)
	case s.Knob.Kind() == knob.KindRegistry && s.Value != knob.Absent &&
		slices.Contains(ignoredValues, s.Knob.Attribute()):
		return []Hazard{{Knob: s.Knob, Value: s.Value, Device: "this host", Why: "Windows Vista and later ignore this value",
			Source: "learn.microsoft.com, network subsystem performance tuning"}}
	}
	return nil
}

// ignoredValues are entries below Tcpip\Parameters that no Windows since Vista reads.
var ignoredValues = []string{"TcpWindowSize", "GlobalMaxTcpWindowSize", "NumTcbTablePartitions", "MaxHashTableSize",
	"MaxUserPort"}

// ofInterval judges rx-usecs, which on these drivers sets what InterruptThrottleRate sets.
func ofInterval(ports []Port, s knob.Setting) []Hazard {
	usecs, err := strconv.ParseUint(string(s.Value), 10, 32)
	if err != nil {
		return nil // not in the form of this knob, which others report
	}
	for _, p := range ports {
		if p.Device != s.Knob.Subject() {
			continue
		}
		t, err := moderation.FromUsecs(moderation.Driver(p.Driver), uint32(usecs))
		if err != nil {
			return nil // another driver, or a value that the driver itself refuses
		}
		return judge(s, p, count(ports, p.Driver), throttle, t.Parameter())
	}
	return nil
}

// throttle is the parameter that rx-usecs sets too.
const throttle = "InterruptThrottleRate"

// ofModule judges a list of values of a module's parameter, one for each of its ports. A port
// without a value gets the module's default, which is judged with it.
func ofModule(ports []Port, s knob.Setting) []Hazard {
	module, parameter := s.Knob.Subject(), s.Knob.Attribute()
	values := strings.Split(string(s.Value), ",")
	n := count(ports, module)
	var all []Hazard
	i := -1
	for _, p := range ports {
		if p.Driver != module {
			continue
		}
		i++
		value, given := defaultOf(p, parameter)
		if i < len(values) {
			v, err := strconv.ParseUint(values[i], 10, 32)
			if err != nil {
				return nil
			}
			value, given = uint32(v), true
		}
		if given {
			all = append(all, judge(s, p, n, parameter, value)...)
		}
	}
	return all
}

// defaultOf returns the value that the module gives a port which has none in the list.
func defaultOf(p Port, parameter string) (uint32, bool) {
	for _, known := range moderation.Parameters(p.card(0)) {
		if known.Name == parameter {
			return known.Default, true
		}
	}
	return 0, false
}

// judge asks package moderation about one parameter of one port.
func judge(s knob.Setting, p Port, ports int, parameter string, value uint32) []Hazard {
	var all []Hazard
	for _, h := range moderation.Hazards(p.card(ports), map[string]uint32{parameter: value}) {
		if h.Parameter != parameter {
			continue // what is not being set
		}
		all = append(all, Hazard{
			Knob: s.Knob, Value: s.Value, Device: p.Device, Why: h.Why, Source: h.Source,
			Stops: h.Severity == moderation.Hang || h.Severity == moderation.Refused,
		})
	}
	return all
}

func count(ports []Port, driver string) int {
	n := 0
	for _, p := range ports {
		if p.Driver == driver {
			n++
		}
	}
	return n
}

// ErrHazard: the card is known to stop with this value. It is an fs.ErrPermission.
var ErrHazard error = hazardous{}

type hazardous struct{}

func (hazardous) Error() string        { return "known to stop this card" }
func (hazardous) Is(target error) bool { return target == fs.ErrPermission }

// Backend asks for hazards before each write to the backend below.
type Backend struct {
	knob.Backend
	Ports  func() []Port // of this host; nil: Here
	Accept bool          // write what may stop a card as well
	// gets the hazards of a setting that is about to be written; nil: nothing reports them
	Warn func(Hazard)
}

// Unwrap returns the backend below; see knob.As.
func (b Backend) Unwrap() knob.Backend { return b.Backend }

// CheckWrite implements knob.Checker.
func (b Backend) CheckWrite(ctx context.Context, id knob.ID, v knob.Value) error {
	ports := b.Ports
	if ports == nil {
		ports = Here
	}
	for _, h := range Of(ports(), knob.Setting{Knob: id, Value: v}) {
		if h.Stops && !b.Accept {
			return (&knob.Error{Op: "check", Knob: id,
				Err: fmt.Errorf("%w: %s: %s (%s)", ErrHazard, h.Device, h.Why, h.Source)}).
				WithHint("choose another value; set --accept-hazard writes it on the host itself")
		}
		if b.Warn != nil {
			b.Warn(h)
		}
	}
	if below, ok := b.Backend.(knob.Checker); ok {
		return below.CheckWrite(ctx, id, v)
	}
	return nil
}
