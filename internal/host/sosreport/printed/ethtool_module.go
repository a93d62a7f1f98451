package printed

import (
	"math"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/host/optic"
)

// ParseModule parses "ethtool -m NIC" about a pluggable module: an SFP (sff_common.c, sfpid.c,
// sfpdiag.c), a QSFP (qsfp.c), one with CMIS (cmis.c). Nil: the card has no module, or one of
// unknown kind. The states are judged by the limits that ethtool shows, as those of this host.
func ParseModule(text string) *optic.Module {
	var m *optic.Module
	var codes []byte
	ethernet := ""
	shown := newMeasured()
	pairs(text, func(key, value string) {
		if m == nil { // The kind comes first, and without one nothing has a meaning.
			if code := hexBytes(value); key == "Identifier" && len(code) == 1 && optic.Form(code[0]) != "" {
				m = &optic.Module{Form: optic.Form(code[0])}
			}
			return
		}
		switch key {
		case "Vendor name":
			m.Vendor = short(value)
		case "Vendor PN":
			m.Part = short(value)
		case "Vendor rev":
			m.Revision = short(value)
		case "Vendor SN":
			m.Serial = short(value)
		case "Transceiver codes":
			codes = hexBytes(value)
		case "Transceiver type":
			kind, standard, _ := strings.Cut(value, ": ")
			if kind == "Extended" || strings.HasSuffix(kind, "Ethernet") {
				ethernet = short(standard)
			}
		case "BR, Nominal", "BR Nominal":
			// 25500 is the largest number of the byte, which refers to another one that is not shown.
			if n, ok := quantity(strings.ReplaceAll(value, "Mbps", "MBd"), "MBd"); ok && n != 25500 {
				m.SignalBitsPerSec = n * 1e6
			}
		case "Laser wavelength":
			m.WavelengthNanometres, _ = quantity(value, "nm")
		default:
			shown.take(key, value)
		}
	})
	if m == nil {
		return nil
	}
	m.Standard = standard(m.Form, codes, ethernet)
	m.Readings = shown.readings()
	m.Judge()
	return m
}

// measured are the values and limits of a module, in the order of kinds; NaN: not shown.
type measured [5]struct {
	lanes  [mostLanes + 1]float64 // the first: of the module, or of its only lane
	limits [4]float64             // in the order of limitNames
}

func newMeasured() *measured {
	var m measured
	for i := range m {
		for lane := range m[i].lanes {
			m[i].lanes[lane] = math.NaN()
		}
		for end := range m[i].limits {
			m[i].limits[end] = math.NaN()
		}
	}
	return &m
}

var limitNames = [4]string{"high alarm threshold", "low alarm threshold", "high warning threshold",
	"low warning threshold"}

// kinds are the readings in their order, with their units and ethtool's words for value and limits.
var kinds = [5]struct {
	name, unit, printed string
	scale               float64
	values              [3]string
	limit               string
}{
	{"temperature", "celsius", "degrees C", 1, [3]string{"Module temperature"}, "Module temperature"},
	{"voltage", "volts", "V", 1, [3]string{"Module voltage"}, "Module voltage"},
	{"bias", "amperes", "mA", 1e-3, [3]string{"Laser bias current", "Laser tx bias current"}, "Laser bias current"},
	{"transmit", "watts", "mW", 1e-3, [3]string{"Laser output power", "Transmit avg optical power"},
		"Laser output power"},
	{"receive", "watts", "mW", 1e-3, [3]string{"Receiver signal average optical power", "Rcvr signal avg optical power",
		"Receiver signal OMA"}, "Laser rx power"},
}

const (
	voltage   = 1 // in kinds
	bias      = 2
	transmit  = 3
	mostLanes = 32 // of four banks of CMIS
)

// take takes a line with a measured value or a limit.
func (m *measured) take(key, value string) {
	// "Transmit avg optical power (Channel 3)", and without the blank.
	name, channel, _ := strings.Cut(key, "(Channel ")
	lane := 0
	if channel != "" {
		n, ok := small(strings.TrimSuffix(channel, ")"))
		if !ok || n < 1 || n > mostLanes {
			return
		}
		lane = int(n)
	}
	name = strings.TrimSpace(name)
	for i := range kinds {
		k := &kinds[i]
		n, ok := quantity(value, k.printed)
		if !ok || name == "" {
			continue
		}
		for _, v := range k.values {
			if v == name {
				m[i].lanes[lane] = n * k.scale
			}
		}
		for end, limit := range limitNames {
			if which, ok := strings.CutPrefix(name, k.limit); ok && which == " "+limit {
				m[i].limits[end] = n * k.scale
			}
		}
	}
}

// readings returns the values with their limits, in the order of package optic.
func (m *measured) readings() []optic.Reading {
	if m[voltage].lanes[0] == 0 {
		return nil // a passive cable measures nothing
	}
	var all []optic.Reading
	for i := range kinds {
		// Limits that are all zero were never stored, and half of them are of a cut output.
		l := &m[i].limits
		stored := (l[0] != 0 || l[1] != 0 || l[2] != 0 || l[3] != 0) && !math.IsNaN(l[0]+l[1]+l[2]+l[3])
		first, light, current := len(all), 0.0, false
		for lane, v := range m[i].lanes {
			if math.IsNaN(v) {
				continue
			}
			r := optic.Reading{Name: kinds[i].name, Lane: lane, Value: v, Unit: kinds[i].unit}
			if stored {
				r.HighAlarm, r.LowAlarm, r.HighWarning, r.LowWarning = &l[0], &l[1], &l[2], &l[3]
			}
			all = append(all, r)
			light = max(light, v)
			if m[bias].lanes[lane] > 0 {
				current = true
			}
		}
		if i == transmit && light == 0 && current {
			all = all[:first] // Lasers with a current and no power: the module does not measure it.
		}
	}
	return all
}

// standard names what a module is, as package optic does. The codes of ethtool lack the extended
// one of a QSFP, whose meaning it writes out.
func standard(form string, codes []byte, ethernet string) string {
	spelled := strings.NewReplacer("G Base-", "GBASE-", "GBase-", "GBASE-").Replace(ethernet)
	switch {
	case (form == "SFP" || form == "soldered in") && len(codes) >= 8:
		more := byte(0)
		if len(codes) > 8 {
			more = codes[8]
		}
		name, _ := optic.SFPStandard([8]byte(codes), more)
		return name
	case len(codes) > 0 && codes[0]&0x80 == 0:
		return optic.QSFPStandard(codes[0])
	}
	return spelled
}

// quantity parses the number before a unit: "0.3186 mW / -4.97 dBm".
func quantity(text, unit string) (float64, bool) {
	before, _, ok := strings.Cut(text, unit)
	n, err := strconv.ParseFloat(strings.TrimSpace(before), 64)
	// ParseFloat takes "inf" and "nan" too, and no module measures anything near the bound.
	return n, ok && err == nil && math.Abs(n) < 1e6
}

// hexBytes parses "0x10 0x00 0x00" up to the first word that is no byte, at most 16 of them.
func hexBytes(text string) []byte {
	var all []byte
	for _, word := range strings.Fields(text[:min(len(text), 16*5)]) {
		n, err := strconv.ParseUint(word, 0, 8)
		if err != nil || len(word) != 4 {
			break
		}
		all = append(all, byte(n))
	}
	return all
}

// short bounds a module's text. The longest of a standard has 16 characters; ethtool's words for a
// kind have up to 80.
func short(text string) string {
	return optic.Text(text[:min(len(text), 80)])
}
