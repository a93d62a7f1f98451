package optic

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Reader reads length bytes of a module at an offset. Offsets from 128 on are in the upper half,
// which shows the page of that number. Address is that of the two-wire bus, seven bits.
type Reader func(address, page byte, offset, length int) ([]byte, error)

// The addresses of a module.
const (
	identity    = 0x50 // every module
	diagnostics = 0x51 // SFP only: measured values and their limits
)

// Module is what a pluggable module says of itself.
type Module struct {
	Form     string `json:"form"`               // SFP, QSFP28, …
	Standard string `json:"standard,omitempty"` // 10GBASE-SR, …; empty: it names none that is known
	Vendor   string `json:"vendor,omitempty"`
	Part     string `json:"part_number,omitempty"`
	Revision string `json:"revision,omitempty"`
	Serial   string `json:"serial_number,omitempty"`
	// of one lane, as the maker states it
	SignalBitsPerSec float64 `json:"signal_bits_per_second,omitempty"`
	// absent: a cable of copper
	WavelengthNanometres float64   `json:"wavelength_nanometres,omitempty"`
	Readings             []Reading `json:"readings,omitempty"` // absent: it measures nothing
}

// State is how a reading stands to its limits.
type State string

// The states; empty: the module has no limits for the reading, or does not use the lane.
const (
	Fine        State = "fine"
	LowWarning  State = "low-warning"
	HighWarning State = "high-warning"
	LowAlarm    State = "low-alarm"
	HighAlarm   State = "high-alarm"
)

// Reading is one measured value of a module. The limits are those of its maker; an alarm is beyond
// what the module is made for.
type Reading struct {
	Name        string   `json:"name"`           // temperature, voltage, bias, transmit, receive
	Lane        int      `json:"lane,omitempty"` // from 1 on, of modules with several
	Value       float64  `json:"value"`
	Unit        string   `json:"unit"` // celsius, volts, amperes, watts
	LowAlarm    *float64 `json:"low_alarm,omitempty"`
	LowWarning  *float64 `json:"low_warning,omitempty"`
	HighWarning *float64 `json:"high_warning,omitempty"`
	HighAlarm   *float64 `json:"high_alarm,omitempty"`
	State       State    `json:"state,omitempty"`
}

// Parse reads a module. The error is that of the Reader, or says that the module's kind is unknown.
// Values that cannot be read are left out.
func Parse(read Reader) (*Module, error) {
	lower, err := read(identity, 0, 0, 128)
	if err != nil {
		return nil, err
	}
	if len(lower) < 128 {
		return nil, fmt.Errorf("read module: %d bytes instead of 128", len(lower))
	}
	m := &Module{Form: Form(lower[0])}
	defer m.Judge()
	switch lower[0] {
	case 0x02, 0x03: // soldered in, SFP
		m.sfp(lower, read)
		return m, nil
	case 0x0c, 0x0d, 0x11: // QSFP, QSFP+, QSFP28
		upper, err := read(identity, 0, 128, 128)
		if err == nil && len(upper) == 128 {
			m.qsfp(lower, upper, read)
		}
		return m, err
	case 0x18, 0x19, 0x1e: // QSFP-DD, OSFP, QSFP+ with CMIS
		upper, err := read(identity, 0, 128, 128)
		if err == nil && len(upper) == 128 {
			m.maker(upper[1:17], upper[20:36], upper[36:38], upper[38:54])
			m.common(temperature(lower[14:]), voltage(lower[16:]), nil)
		}
		return m, err
	}
	return nil, fmt.Errorf("read module: no known kind has the code %#02x", lower[0])
}

// Form returns the name of a kind of module by its code of SFF-8024; empty: none that this package
// reads.
func Form(code byte) string { return forms[code] }

var forms = map[byte]string{0x02: "soldered in", 0x03: "SFP", 0x0c: "QSFP", 0x0d: "QSFP+", 0x11: "QSFP28",
	0x18: "QSFP-DD", 0x19: "OSFP", 0x1e: "QSFP+"}

// maker takes the texts that all modules have, padded with blanks.
func (m *Module) maker(vendor, part, revision, serial []byte) {
	m.Vendor, m.Part = Text(string(vendor)), Text(string(part))
	m.Revision, m.Serial = Text(string(revision)), Text(string(serial))
}

// Text returns what may be shown of a module's text, which its maker or a stranger wrote: ASCII
// without control characters, as the standards have it, and no blanks around it.
func Text(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, s))
}

// rate returns the signalling rate: a byte of 100 MBd, or where it is full another one of 250 MBd.
func rate(nominal, extended byte) float64 {
	if nominal == 0xff {
		return float64(extended) * 250e6
	}
	return float64(nominal) * 100e6
}

// sfp reads a module of SFF-8472.
func (m *Module) sfp(a0 []byte, read Reader) {
	m.maker(a0[20:36], a0[40:56], a0[56:60], a0[68:84])
	m.SignalBitsPerSec = rate(a0[12], a0[66])
	var copper bool
	if m.Standard, copper = SFPStandard([8]byte(a0[3:11]), a0[36]); !copper {
		m.WavelengthNanometres = float64(binary.BigEndian.Uint16(a0[60:]))
	}
	// Bit 6: it measures. Bit 2: an address change comes first, which would disturb the module.
	if a0[92]&0x40 == 0 || a0[92]&0x04 != 0 {
		return
	}
	a2, err := read(diagnostics, 0, 0, 128)
	if err != nil || len(a2) < 128 {
		return
	}
	// As the module measures them, in the order of the limits: temperature, voltage, bias, transmit.
	raw := [4]float64{signed(a2[96:]), word(a2[98:]), word(a2[100:]), word(a2[102:])}
	received := word(a2[104:])
	if a0[92]&0x10 != 0 { // calibrated by the reader
		for i, at := range []int{84, 88, 76, 80} {
			raw[i] = raw[i]*word(a2[at:])/256 + signed(a2[at+2:])
		}
		polynomial := 0.0
		for at := 56; at <= 72; at += 4 {
			polynomial = polynomial*received + float64(math.Float32frombits(binary.BigEndian.Uint32(a2[at:])))
		}
		received = max(polynomial, 0)
	}
	m.add("temperature", 0, raw[0]/256, "celsius", a2[0:8], temperature)
	m.add("voltage", 0, raw[1]*1e-4, "volts", a2[8:16], voltage)
	m.add("bias", 0, raw[2]*2e-6, "amperes", a2[16:24], bias)
	m.add("transmit", 0, raw[3]*1e-7, "watts", a2[24:32], power)
	m.add("receive", 0, received*1e-7, "watts", a2[32:40], power)
}

// SFPStandard returns what an SFP is by its compliance codes (bytes 3 to 10 of A0h) and its
// extended one (byte 36), and whether it is a cable of copper. Empty: the codes name nothing that
// is known.
func SFPStandard(codes [8]byte, more byte) (name string, copper bool) {
	copper = codes[5]&0x0c != 0
	switch {
	case extended[more] != "":
		return extended[more], copper
	case copper:
		return "copper cable", true
	}
	if name = firstBit(codes[0]>>4, "10GBASE-SR", "10GBASE-LR", "10GBASE-LRM", "10GBASE-ER"); name != "" {
		return name, false
	}
	return firstBit(codes[3], "1000BASE-SX", "1000BASE-LX", "1000BASE-CX", "1000BASE-T"), false
}

// QSFPStandard returns what a QSFP is by its first compliance code (byte 131). Empty: it names
// nothing that is known, or points to the extended code.
func QSFPStandard(code byte) string {
	if code&0x80 != 0 {
		return ""
	}
	return firstBit(code, "40G active cable", "40GBASE-LR4", "40GBASE-SR4", "40GBASE-CR4", "10GBASE-SR",
		"10GBASE-LR", "10GBASE-LRM")
}

// qsfp reads a module of SFF-8636. Upper is page 0.
func (m *Module) qsfp(lower, upper []byte, read Reader) {
	m.maker(upper[20:36], upper[40:56], upper[56:58], upper[68:84])
	m.SignalBitsPerSec = rate(upper[12], upper[94])
	copper := upper[19]>>4 >= 0xa
	if !copper {
		m.WavelengthNanometres = word(upper[58:]) / 20
	}
	if m.Standard = QSFPStandard(upper[3]); upper[3]&0x80 != 0 {
		m.Standard = extended[upper[64]]
	}
	hot, supply := temperature(lower[22:]), voltage(lower[26:])
	if supply == 0 {
		return // a passive cable measures nothing
	}
	// Bit 2: the module has one page, so no limits.
	var limits []byte
	if lower[2]&0x04 == 0 {
		if page, err := read(identity, 3, 128, 128); err == nil && len(page) == 128 && word(page) != 0 {
			limits = page
		}
	}
	m.common(hot, supply, limits)
	for _, q := range []struct {
		name, unit     string
		at, limits     int
		of             func([]byte) float64
		absentIfAllOff bool
	}{
		{"bias", "amperes", 42, 56, bias, false}, {"transmit", "watts", 50, 64, power, true},
		{"receive", "watts", 34, 48, power, false},
	} {
		if q.absentIfAllOff && binary.BigEndian.Uint64(lower[q.at:]) == 0 && upper[92]&0x04 == 0 {
			continue // byte 220 bit 2: the power of the lasers is measured
		}
		for lane := range 4 {
			var l []byte
			if limits != nil {
				l = limits[q.limits : q.limits+8]
			}
			m.add(q.name, lane+1, q.of(lower[q.at+2*lane:]), q.unit, l, q.of)
		}
	}
}

// common adds what every measuring module has. Limits are those of page 3, or nil.
func (m *Module) common(hot, supply float64, limits []byte) {
	if supply == 0 {
		return
	}
	var forHeat, forSupply []byte
	if limits != nil {
		forHeat, forSupply = limits[0:8], limits[16:24]
	}
	m.add("temperature", 0, hot, "celsius", forHeat, temperature)
	m.add("voltage", 0, supply, "volts", forSupply, voltage)
}

// add adds a reading with its limits, four words in the order high alarm, low alarm, high warning,
// low warning. Limits that are all zero were never stored.
func (m *Module) add(name string, lane int, value float64, unit string, limits []byte, of func([]byte) float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return // of calibration constants that are no numbers
	}
	r := Reading{Name: name, Lane: lane, Value: value, Unit: unit}
	if len(limits) == 8 && binary.BigEndian.Uint64(limits) != 0 {
		high, low, warm, cool := of(limits), of(limits[2:]), of(limits[4:]), of(limits[6:])
		r.HighAlarm, r.LowAlarm, r.HighWarning, r.LowWarning = &high, &low, &warm, &cool
	}
	m.Readings = append(m.Readings, r)
}

// Judge sets the state of each reading that has limits. A lane with neither current nor light in
// either direction is not in use if another lane is, and has no state: a module for eight lanes
// may have four lasers, and a link may use one lane of four.
func (m *Module) Judge() {
	// 1 µA or 1 µW (-30 dBm): what a dark lane measures is noise.
	const dark = 1e-6
	var lit uint64 // lanes; no module has more than 32
	for _, r := range m.Readings {
		if r.Lane > 0 && r.Value > dark {
			lit |= 1 << r.Lane
		}
	}
	for i := range m.Readings {
		r := &m.Readings[i]
		switch {
		case r.HighAlarm == nil || r.LowAlarm == nil || r.HighWarning == nil || r.LowWarning == nil,
			r.Lane > 0 && lit != 0 && lit&(1<<r.Lane) == 0:
			r.State = ""
		case r.Value > *r.HighAlarm:
			r.State = HighAlarm
		case r.Value < *r.LowAlarm:
			r.State = LowAlarm
		case r.Value > *r.HighWarning:
			r.State = HighWarning
		case r.Value < *r.LowWarning:
			r.State = LowWarning
		default:
			r.State = Fine
		}
	}
}

func word(b []byte) float64   { return float64(binary.BigEndian.Uint16(b)) }
func signed(b []byte) float64 { return float64(int16(binary.BigEndian.Uint16(b))) }

// The units of words: 1/256 °C, 100 µV, 2 µA, 0.1 µW.
func temperature(b []byte) float64 { return signed(b) / 256 }
func voltage(b []byte) float64     { return word(b) * 1e-4 }
func bias(b []byte) float64        { return word(b) * 2e-6 }
func power(b []byte) float64       { return word(b) * 1e-7 }

// firstBit returns the name of the lowest bit that is set.
func firstBit(b byte, names ...string) string {
	for i, name := range names {
		if b>>i&1 != 0 {
			return name
		}
	}
	return ""
}

// extended are the extended compliance codes of SFF-8024, table 4-4, that Ethernet uses most.
var extended = map[byte]string{
	0x01: "100G active optical cable", 0x02: "100GBASE-SR4 or 25GBASE-SR", 0x03: "100GBASE-LR4 or 25GBASE-LR",
	0x04: "100GBASE-ER4 or 25GBASE-ER", 0x06: "100G CWDM4", 0x07: "100G PSM4", 0x08: "100G active copper cable",
	0x0b: "100GBASE-CR4 or 25GBASE-CR CA-L", 0x0c: "25GBASE-CR CA-S", 0x0d: "25GBASE-CR CA-N",
	0x16: "10GBASE-T", 0x1c: "10GBASE-T short reach", 0x18: "100G active optical cable", 0x19: "100G active copper cable",
	0x25: "100GBASE-DR", 0x26: "100GBASE-FR1", 0x27: "100GBASE-LR1",
}
