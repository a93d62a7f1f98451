package optic

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
)

var errNoPage = errors.New("no such page")

// recorded returns a Reader of a recorded module. A file of an SFP holds A0h, then A2h; one of a
// QSFP the lower half, then page 0.
func recorded(t testing.TB, name string) Reader {
	t.Helper()
	file, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(file)) {
		if !strings.HasPrefix(line, "#") {
			digits.WriteString(strings.ReplaceAll(strings.TrimSpace(line), " ", ""))
		}
	}
	memory, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	return memoryReader(memory)
}

func memoryReader(memory []byte) Reader {
	return func(address, page byte, offset, length int) ([]byte, error) {
		at := offset
		if address == diagnostics {
			at += 256
		}
		if page != 0 || at+length > len(memory) {
			return nil, errNoPage
		}
		return memory[at : at+length], nil
	}
}

// value returns one reading of a module.
func (m *Module) value(t *testing.T, name string, lane int) Reading {
	t.Helper()
	for _, r := range m.Readings {
		if r.Name == name && r.Lane == lane {
			return r
		}
	}
	t.Fatalf("no %s of lane %d in %+v", name, lane, m.Readings)
	return Reading{}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-4*math.Max(math.Abs(a), math.Abs(b))+1e-9 }

// TestRealModules compares with what the projects that recorded the modules read from them.
func TestRealModules(t *testing.T) {
	for _, c := range []struct {
		file     string
		want     Module
		readings int
	}{
		{"sfp-10g-sr.hex", Module{Form: "SFP", Standard: "10GBASE-SR", Vendor: "OEMOEMOEMOEMOEMO", Part: "SFP-10G-SR-IT",
			Revision: "A", Serial: "WQ160412A115", SignalBitsPerSec: 10.3e9, WavelengthNanometres: 850}, 5},
		{"sfp-1g-sx.hex", Module{Form: "SFP", Standard: "1000BASE-SX", Vendor: "FINISAR CORP.", Part: "FTRJ8519P1BNL",
			Revision: "A", Serial: "P8J2ZNC", SignalBitsPerSec: 2.1e9, WavelengthNanometres: 850}, 0},
		{"sfp-10g-cr.hex", Module{Form: "SFP", Standard: "copper cable", Vendor: "CISCO-MOLEX", Part: "74752-9519",
			Revision: "08", Serial: "MOC1547000H", SignalBitsPerSec: 10.3e9}, 0},
		{"qsfp-40g-lr4.hex", Module{Form: "QSFP+", Standard: "40GBASE-LR4", Vendor: "FINISAR CORP.", Part: "FTL4C1QE1C",
			Revision: "A1", Serial: "UQK0NL1", SignalBitsPerSec: 10.3e9, WavelengthNanometres: 1301}, 14},
		{"qsfp28-100g-cwdm4.hex", Module{Form: "QSFP28", Standard: "100G CWDM4", Vendor: "LUMENTUM", Part: "LQ210CR-CAA1",
			Revision: "01", Serial: "FF4250500019-Q", SignalBitsPerSec: 25.75e9, WavelengthNanometres: 1311}, 14},
		{"qsfp-40g-cr4.hex", Module{Form: "QSFP+", Standard: "40GBASE-CR4", Vendor: "3M Company", Part: "9QA0-111-12-1.00",
			Revision: "01", Serial: "V10B9202", SignalBitsPerSec: 10e9}, 0},
	} {
		m, err := Parse(recorded(t, c.file))
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		if got := *m; got.Form != c.want.Form || got.Standard != c.want.Standard || got.Vendor != c.want.Vendor ||
			got.Part != c.want.Part || got.Revision != c.want.Revision || got.Serial != c.want.Serial ||
			got.SignalBitsPerSec != c.want.SignalBitsPerSec || !near(got.WavelengthNanometres, c.want.WavelengthNanometres) ||
			len(got.Readings) != c.readings {
			t.Errorf("%s: %+v, want %+v and %d readings", c.file, got, c.want, c.readings)
		}
	}
}

// TestRealReadings compares with the values that vyatta-dataplane's own parser, made from
// FreeBSD's, prints for the same memory.
func TestRealReadings(t *testing.T) {
	m, err := Parse(recorded(t, "sfp-10g-sr.hex"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		value float64
		state State
	}{
		"temperature": {44.3477, Fine}, "voltage": {3.3034, Fine}, "transmit": {0.597e-3, Fine},
		"receive": {0.0001e-3, LowAlarm}, // nothing is plugged in
	} {
		if r := m.value(t, name, 0); !near(r.Value, want.value) || r.State != want.state {
			t.Errorf("%s: %+v, want %+v", name, r, want)
		}
	}
	if r := m.value(t, "receive", 0); !near(*r.HighAlarm, 1e-3) || !near(*r.LowAlarm, 10e-6) {
		t.Errorf("limits of receive: %+v", r)
	}
	// A QSFP measures each lane; without its page 3 there are no limits.
	m, err = Parse(recorded(t, "qsfp-40g-lr4.hex"))
	if err != nil {
		t.Fatal(err)
	}
	if r := m.value(t, "receive", 4); !near(r.Value, 0x07ab*1e-7) || r.HighAlarm != nil || r.State != "" {
		t.Errorf("receive of lane 4: %+v", r)
	}
	if r := m.value(t, "temperature", 0); !near(r.Value, 28.3086) {
		t.Errorf("temperature: %+v", r)
	}
}

// TestLimits reads page 3 of a QSFP, and a module whose reader has to calibrate.
func TestLimits(t *testing.T) {
	lr4 := recorded(t, "qsfp-40g-lr4.hex")
	page := make([]byte, 128)
	for i, limit := range []uint16{0x1c00, 0, 0x1b00, 0x0500} { // temperature: 28, 0, 27, 5 °C
		binary.BigEndian.PutUint16(page[2*i:], limit)
	}
	for i, limit := range []uint16{9000, 2000, 8000, 1700} { // receive: the low warning above two lanes
		binary.BigEndian.PutUint16(page[48+2*i:], limit)
	}
	m, err := Parse(func(address, p byte, offset, length int) ([]byte, error) {
		if p == 3 && offset == 128 {
			return page, nil
		}
		return lr4(address, p, offset, length)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		lane int
		want State
	}{{"temperature", 0, HighAlarm}, {"voltage", 0, ""}, {"receive", 1, Fine}, {"receive", 3, LowAlarm}} {
		if r := m.value(t, c.name, c.lane); r.State != c.want {
			t.Errorf("%s %d: %+v, want %q", c.name, c.lane, r, c.want)
		}
	}

	sr, _ := recorded(t, "sfp-10g-sr.hex")(identity, 0, 0, 256)
	a2, _ := recorded(t, "sfp-10g-sr.hex")(diagnostics, 0, 0, 128)
	memory := append(append([]byte{}, sr...), a2...)
	memory[92] = 0x50                                                // external calibration
	binary.BigEndian.PutUint16(memory[256+84:], 0x0200)              // slope of the temperature: 2
	binary.BigEndian.PutUint32(memory[256+68:], math.Float32bits(3)) // receive: 3 x + 5
	binary.BigEndian.PutUint32(memory[256+72:], math.Float32bits(5))
	if m, err = Parse(memoryReader(memory)); err != nil {
		t.Fatal(err)
	}
	if r := m.value(t, "temperature", 0); !near(r.Value, 2*44.3477) || r.State != HighAlarm {
		t.Errorf("calibrated temperature: %+v", r)
	}
	if r := m.value(t, "receive", 0); !near(r.Value, 8*1e-7) {
		t.Errorf("calibrated receive: %+v", r)
	}
}

// TestDarkLanes has a module that links with one lane of four. Lanes without current and light are
// no alarm then; a lane that sends and receives nothing is one.
func TestDarkLanes(t *testing.T) {
	low, high := 0.5e-3, 10e-3
	m := &Module{}
	for lane, v := range [][2]float64{{6e-3, 1e-3}, {0, 1e-7}, {6e-3, 1e-7}, {0, 0}} {
		for i, name := range []string{"bias", "receive"} {
			m.Readings = append(m.Readings, Reading{Name: name, Lane: lane + 1, Value: v[i], LowAlarm: &low, LowWarning: &low,
				HighWarning: &high, HighAlarm: &high, State: HighAlarm})
		}
	}
	m.Judge()
	for i, want := range []State{Fine, Fine, "", "", Fine, LowAlarm, "", ""} {
		if r := m.Readings[i]; r.State != want {
			t.Errorf("%s of lane %d: %q, want %q", r.Name, r.Lane, r.State, want)
		}
	}
	// With all lanes dark nothing shows which ones the link would use.
	m.Readings = m.Readings[2:4]
	if m.Judge(); m.Readings[0].State != LowAlarm || m.Readings[1].State != LowAlarm {
		t.Errorf("all dark: %+v", m.Readings)
	}
}

// TestBrokenModules checks that memory that makes no sense is an error or an empty module.
func TestBrokenModules(t *testing.T) {
	if _, err := Parse(memoryReader(make([]byte, 512))); err == nil {
		t.Error("a module of kind 0 is no error")
	}
	if _, err := Parse(memoryReader(nil)); !errors.Is(err, errNoPage) {
		t.Errorf("no memory: %v", err)
	}
	if _, err := Parse(func(_, _ byte, _, _ int) ([]byte, error) { return []byte{3}, nil }); err == nil {
		t.Error("one byte is no error")
	}
	full := make([]byte, 512)
	for i := range full {
		full[i] = 0xff
	}
	for _, kind := range []byte{0x03, 0x0d, 0x11, 0x18} {
		full[0], full[92] = kind, 0x48
		if m, err := Parse(memoryReader(full)); err != nil || m.Vendor != "" {
			t.Errorf("kind %#x of ones: %+v, %v", kind, m, err)
		}
	}
	if _, err := Parse(memoryReader(full[:128])); err == nil {
		t.Error("a QSFP without page 0 is no error")
	}
}

// FuzzParse reads modules of any content: a module is made by strangers.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"sfp-10g-sr.hex", "qsfp-40g-lr4.hex", "qsfp28-100g-cwdm4.hex"} {
		read := recorded(f, name)
		memory, err := read(identity, 0, 0, 256)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(memory)
	}
	f.Fuzz(func(t *testing.T, memory []byte) {
		m, err := Parse(memoryReader(memory))
		if err == nil && strings.ContainsFunc(m.Vendor+m.Part+m.Serial, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("control characters in %+v", m)
		}
	})
}
