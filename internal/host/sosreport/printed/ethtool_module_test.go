package printed

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/linerate/linerate/internal/host/optic"
)

// printedModule is the recorded output of ethtool -m about a real module, whose source is its first
// line.
func printedModule(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/module-" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestParseModule compares every reading with the figures that were published.
func TestParseModule(t *testing.T) {
	near := cmpopts.EquateApprox(1e-9, 1e-12)
	for _, c := range []struct {
		file   string
		module optic.Module
		states string // of the readings, in their order: name, lane, value, state
	}{
		{"sfp-10g-sr", optic.Module{Form: "SFP", Standard: "10GBASE-SR", Vendor: "Intel Corp", Part: "FTLX8571D3BCVIT1",
			Revision: "A", Serial: "MVD1HJU", SignalBitsPerSec: 10.3e9, WavelengthNanometres: 850},
			"temperature 29.54 fine, voltage 3.3194 fine, bias 0.000394 low-alarm, transmit 2.51e-05 low-alarm, " +
				"receive 0 low-alarm"},
		{"sfp28-sr", optic.Module{Form: "SFP", Standard: "100GBASE-SR4 or 25GBASE-SR", Vendor: "DELL EMC", Part: "M14MK",
			Revision: "A1", Serial: "VN0AP8005718904", SignalBitsPerSec: 25.75e9, WavelengthNanometres: 850},
			"temperature 29.9 fine, voltage 3.3528 fine, bias 0 low-alarm, transmit 0 low-alarm, receive 0 low-alarm"},
		{"sfp-copper", optic.Module{Form: "SFP", Standard: "copper cable", Vendor: "SwissGBIC", Part: "SFP-H10GB-CU5M-C",
			Revision: "09", Serial: "SG2309260081", SignalBitsPerSec: 10.3e9}, ""},
		// One lane carries a link of 10 Gb/s, and the other three are no alarm.
		{"qsfp-40g-sr4", optic.Module{Form: "QSFP+", Standard: "40GBASE-SR4", Vendor: "AVAGO", Revision: "01",
			SignalBitsPerSec: 10.3e9, WavelengthNanometres: 850},
			"temperature 42.17 fine, voltage 3.2917 fine, bias1 0.006662 fine, bias2 0 , bias3 0 , bias4 0 , " +
				"transmit1 0.0007119 , transmit2 0 , transmit3 0 , transmit4 0 , " +
				"receive1 0.0007682 fine, receive2 0 , receive3 0 , receive4 0 "},
		{"qsfp28-sr4", optic.Module{Form: "QSFP28", Standard: "100GBASE-SR4 or 25GBASE-SR", Vendor: "Mellanox",
			Part: "MMA1B00-C100D", Revision: "A4", Serial: "MT1708FT01255", WavelengthNanometres: 850},
			"temperature 30.56 fine, voltage 3.235 fine, bias1 0.00675 fine, bias2 0.00675 fine, bias3 0.00675 fine, " +
				"bias4 0.00675 fine, transmit1 0.0013924 fine, transmit2 0.0013181 fine, transmit3 0.0013378 fine, " +
				"transmit4 0.0013397 fine, receive1 0.000972 fine, receive2 0.0009798 fine, receive3 0.001134 fine, " +
				"receive4 0.001134 fine"},
		// The module's own flag says the same of its temperature.
		{"cmis-400g-xdr4", optic.Module{Form: "QSFP-DD", Vendor: "Arista Networks", Part: "QDD-400G-XDR4", Revision: "41",
			Serial: "XKT242211481", WavelengthNanometres: 1311},
			"temperature 70.49 high-warning, voltage 3.2186 fine, " +
				"bias1 0.083806 fine, bias2 0.081878 fine, bias3 0.0729 fine, bias4 0.1101 fine, " +
				"bias5 0 , bias6 0 , bias7 0 , bias8 0 , " +
				"transmit1 0.0015975 fine, transmit2 0.0016486 fine, transmit3 0.0016333 fine, transmit4 0.0014387 fine, " +
				"transmit5 0 , transmit6 0 , transmit7 0 , transmit8 0 , " +
				"receive1 0.0022489 fine, receive2 0.0018629 fine, receive3 0.0018427 fine, receive4 0.0018215 fine, " +
				"receive5 0 , receive6 0 , receive7 0 , receive8 0 "},
		{"cmis-copper", optic.Module{Form: "QSFP-DD", Vendor: "Mellanox", Part: "MCP1660-W00AE30", Revision: "A2",
			Serial: "MT2019VS04757"}, ""},
	} {
		m := ParseModule(printedModule(t, c.file))
		if m == nil {
			t.Errorf("%s: no module", c.file)
			continue
		}
		if diff := cmp.Diff(c.module, *m, near, cmpopts.IgnoreFields(optic.Module{}, "Readings")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.file, diff)
		}
		var states []string
		for _, r := range m.Readings {
			lane := ""
			if r.Lane > 0 {
				lane = fmt.Sprint(r.Lane)
			}
			states = append(states, fmt.Sprintf("%s%s %.6g %s", r.Name, lane, r.Value, r.State))
		}
		equal(t, c.file, c.states, strings.Join(states, ", "))
	}
	m := ParseModule(printedModule(t, "qsfp28-sr4"))
	if r := m.Readings[2]; r.Name != "bias" || r.Unit != "amperes" || math.Abs(*r.LowAlarm-5.492e-3) > 1e-9 ||
		math.Abs(*r.HighAlarm-8.5e-3) > 1e-9 || math.Abs(*r.LowWarning-6e-3) > 1e-9 || math.Abs(*r.HighWarning-8e-3) > 1e-9 {
		t.Errorf("limits of bias: %+v", r)
	}
}

// TestParseNoModule has outputs without a module, and those that cannot be true.
func TestParseNoModule(t *testing.T) {
	for _, none := range []string{"", "netlink error: Invalid argument\n", printedModule(t, "unreadable"),
		"Cannot get module EEPROM information: Operation not supported\n", "Module voltage : 3.3 V\nVendor name : x\n"} {
		if m := ParseModule(none); m != nil {
			t.Errorf("%q: %+v", none, m)
		}
	}
	// An output that was cut has some of the limits, and a reading without all four has none.
	cut, _, _ := strings.Cut(printedModule(t, "sfp-10g-sr"), "Module temperature high warning threshold")
	for _, r := range ParseModule(cut).Readings {
		if (r.Name == "bias") != (r.HighAlarm != nil) && r.Name != "transmit" {
			t.Errorf("limits of a cut output: %+v", r)
		}
	}
	for _, broken := range []string{"Module voltage : NaN V", "Module voltage : inf V", "Module voltage : 1e300 V",
		"Laser tx bias current (Channel 99999999999) : 1 mA", "Laser tx bias current (Channel 33) : 1 mA",
		"Vendor name : \x1b[31m\u202e"} {
		m := ParseModule("Identifier : 0x11 (QSFP28)\nModule voltage : 3.3 V\n" + broken + "\n")
		if len(m.Readings) != 1 || m.Readings[0].Value != 3.3 || strings.ContainsRune(m.Vendor, '\x1b') {
			t.Errorf("%q: %+v", broken, m)
		}
	}
}

// FuzzParseModule reads outputs of any content.
func FuzzParseModule(f *testing.F) {
	for _, name := range []string{"sfp-10g-sr", "qsfp-40g-sr4", "cmis-400g-xdr4", "unreadable"} {
		f.Add(printedModule(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := ParseModule(text)
		if m == nil {
			return
		}
		if len(m.Readings) > 5*(mostLanes+1) || strings.ContainsFunc(m.Vendor+m.Part+m.Serial+m.Standard,
			func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("out of bounds: %+v", m)
		}
		for _, r := range m.Readings {
			if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
				t.Errorf("no number: %+v", r)
			}
		}
	})
}
