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
	values, limits := make(map[measured]float64), make(map[string]*[4]float64)
	for line := range lines(text) {
		key, value, ok := pair(line)
		if !ok {
			continue
		}
		if key == "Identifier" {
			if code := hexBytes(value); m == nil && len(code) == 1 && optic.Form(code[0]) != "" {
				m = &optic.Module{Form: optic.Form(code[0])}
			}
			continue
		}
		if m == nil { // The kind comes first, and without one nothing has a meaning.
			continue
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
			reading(key, value, values, limits)
		}
	}
	if m == nil {
		return nil
	}
	m.Standard = standard(m.Form, codes, ethernet)
	m.Readings = readings(values, limits)
	m.Judge()
	return m
}

// measured is what a value is of.
type measured struct {
	name string
	lane int
}

// kinds are the readings in their order, with their units and ethtool's words for value and limits.
var kinds = []struct {
	name, unit, printed string
	scale               float64
	values              []string
	limit               string
}{
	{"temperature", "celsius", "degrees C", 1, []string{"Module temperature"}, "Module temperature"},
	{"voltage", "volts", "V", 1, []string{"Module voltage"}, "Module voltage"},
	{"bias", "amperes", "mA", 1e-3, []string{"Laser bias current", "Laser tx bias current"}, "Laser bias current"},
	{"transmit", "watts", "mW", 1e-3, []string{"Laser output power", "Transmit avg optical power"}, "Laser output power"},
	{"receive", "watts", "mW", 1e-3, []string{"Receiver signal average optical power", "Rcvr signal avg optical power",
		"Receiver signal OMA"}, "Laser rx power"},
}

// mostLanes is that of four banks of CMIS.
const mostLanes = 32

// reading takes a line with a measured value or a limit.
func reading(key, value string, values map[measured]float64, limits map[string]*[4]float64) {
	// "Transmit avg optical power (Channel 3)", and without the blank.
	name, channel, lanes := strings.Cut(key, "(Channel ")
	lane := 0
	if lanes {
		n, err := strconv.Atoi(strings.TrimSuffix(channel, ")"))
		if err != nil || n < 1 || n > mostLanes {
			return
		}
		lane = n
	}
	name = strings.TrimSpace(name)
	for _, k := range kinds {
		for _, v := range k.values {
			if v == name {
				if n, ok := quantity(value, k.printed); ok {
					values[measured{k.name, lane}] = n * k.scale
				}
				return
			}
		}
		which, ok := strings.CutPrefix(key, k.limit+" ")
		if !ok {
			continue
		}
		for i, end := range [4]string{"high alarm threshold", "low alarm threshold", "high warning threshold",
			"low warning threshold"} {
			if n, ok := quantity(value, k.printed); ok && which == end {
				if limits[k.name] == nil {
					limits[k.name] = &[4]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
				}
				limits[k.name][i] = n * k.scale
			}
		}
	}
}

// readings returns the values with their limits, in the order of package optic.
func readings(values map[measured]float64, limits map[string]*[4]float64) []optic.Reading {
	if values[measured{"voltage", 0}] == 0 {
		return nil // a passive cable measures nothing
	}
	var all []optic.Reading
	for _, k := range kinds {
		l := limits[k.name]
		// Limits that are all zero were never stored, and half of them are of a cut output.
		if l != nil && (*l == [4]float64{} || math.IsNaN(l[0]+l[1]+l[2]+l[3])) {
			l = nil
		}
		first, sum, current := len(all), 0.0, 0.0
		for lane := range mostLanes + 1 {
			v, ok := values[measured{k.name, lane}]
			if !ok {
				continue
			}
			r := optic.Reading{Name: k.name, Lane: lane, Value: v, Unit: k.unit}
			if l != nil {
				r.HighAlarm, r.LowAlarm, r.HighWarning, r.LowWarning = &l[0], &l[1], &l[2], &l[3]
			}
			all = append(all, r)
			sum, current = sum+v, current+values[measured{"bias", lane}]
		}
		if k.name == "transmit" && sum == 0 && current > 0 {
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

// hexBytes parses "0x10 0x00 0x00" up to the first word that is no byte.
func hexBytes(text string) []byte {
	var all []byte
	for word := range strings.FieldsSeq(text) {
		digits, ok := strings.CutPrefix(word, "0x")
		n, err := strconv.ParseUint(digits, 16, 8)
		if !ok || err != nil || len(all) == 16 {
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
