package calc_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host/calc"
)

// question is what each type of the package answers.
type question interface {
	Result() (*calc.Result, error)
}

func value(t *testing.T, q question, name string) float64 {
	t.Helper()
	r, err := q.Result()
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	for _, v := range r.Values {
		if v.Name == name {
			if v.Formula == "" {
				t.Errorf("%s has no formula", name)
			}
			return v.Value
		}
	}
	t.Fatalf("%+v has no %q: %+v", q, name, r.Values)
	return 0
}

// TestFieldNotes computes the figures that the field notes of 2005 to 2010 print, Intel's AP-450
// among them.
func TestFieldNotes(t *testing.T) {
	const gigabit = unit.GigabitPerSecond
	for _, c := range []struct {
		what string
		q    question
		name string
		want float64
		near float64 // share
	}{
		{"3000 interrupts a second", calc.Moderation{Interrupts: 3000}, "interval", 333e-6, 0.002},
		{"81 000 packets at 50 each", calc.Moderation{Packets: 81000, PerInterrupt: 50}, "interrupts", 1620, 0},
		{"and its timer", calc.Moderation{Packets: 81000, PerInterrupt: 50}, "interval", 617e-6, 0.001},
		{"two packet times", calc.Moderation{Link: gigabit}, "two packet times", 25e-6, 0.02},
		{"the smallest frames", calc.Moderation{Link: gigabit, MTUBytes: 46}, "frames of the link", 1.48e6, 0.01},
		{"the plateau of 8000/s", calc.Moderation{Interrupts: 8000},
			"transactions of one connection, at most", 8003.6, 0.001},
		{"ping with 8000 at both ends", calc.Moderation{Interrupts: 8000, RoundTrip: 32 * time.Microsecond},
			"ping, mean", 156e-6, 0.01},
		{"5 kB for receiving", calc.Burst{Buffer: 5000}, "frames that the buffer holds", 3, 0},
		{"2 kB over NFS", calc.Burst{Transfer: 2048}, "frames of a transfer over UDP", 2, 0},
		{"8 kB over NFS", calc.Burst{Transfer: 8192}, "frames of a transfer over UDP", 6, 0},
		{"6.7 MHz", calc.Bus{Kind: "isa", Width: 8, Transfers: 6.7e6, Link: 10e6}, "rate through memory on the card",
			740e3 * 8, 0.05},
		{"26.7 MHz", calc.Bus{Kind: "isa", Width: 8, Transfers: 26.7e6, Link: 10e6}, "rate through memory on the card",
			1075e3 * 8, 0.05},
		{"HZ 1000 and a burst of 150", calc.Polling{HZ: 1000, Burst: 150}, "packets, at most", 150_000, 0},
	} {
		if got := value(t, c.q, c.name); math.Abs(got-c.want) > c.near*c.want+1e-12 {
			t.Errorf("%s: %s is %v, want %v", c.what, c.name, got, c.want)
		}
	}
}

// TestWindow closes the circle: each two of rate, round trip and window give the third.
func TestWindow(t *testing.T) {
	rate, trip := unit.BitRate(1e9), 100*time.Millisecond
	window := value(t, calc.Window{Rate: rate, RoundTrip: trip}, "window")
	if window != 12.5e6 {
		t.Errorf("the window is %v", window)
	}
	if got := value(t, calc.Window{Window: unit.Bytes(window), RoundTrip: trip}, "rate"); got != float64(rate) {
		t.Errorf("the rate is %v", got)
	}
	if got := value(t, calc.Window{Window: unit.Bytes(window), Rate: rate},
		"round trip up to which the window lasts"); math.Abs(got-trip.Seconds()) > 1e-9 {
		t.Errorf("the round trip is %v s", got)
	}
	// RFC 7323: 65535 × 2^8 is the first window of at least 12.5 MB.
	if got := value(t, calc.Window{Rate: rate, RoundTrip: trip}, "window scale"); got != 8 {
		t.Errorf("the scale is %v", got)
	}
	if got := value(t, calc.Window{Rate: rate, RoundTrip: trip, Connections: 40}, "memory of one end"); got != 40*25e6 {
		t.Errorf("the memory is %v", got)
	}
	if got := value(t, calc.Window{Window: 65535, RoundTrip: trip}, "window scale"); got != 0 {
		t.Errorf("the scale of 65535 bytes is %v", got)
	}
	r, err := calc.Window{Rate: 1e12, RoundTrip: 10 * time.Second}.Result()
	if err != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "1 GiB") {
		t.Errorf("1 Tb/s over 10 s: %+v, %v", r, err)
	}
}

// TestNotes checks what the arithmetic concludes.
func TestNotes(t *testing.T) {
	for _, c := range []struct {
		q    question
		want string
	}{
		{calc.Burst{Buffer: 5000, Transfer: 8192}, "does not fit"},
		{calc.Burst{Buffer: 16384, Transfer: 8192}, "a transfer fits"},
		{calc.Burst{Descriptors: 256, Link: unit.GigabitPerSecond, Interval: 10 * time.Millisecond}, "overruns"},
		{calc.Burst{Descriptors: 256, Link: unit.GigabitPerSecond, Interval: time.Millisecond}, ""},
		{calc.Moderation{Interrupts: 1000, Link: unit.GigabitPerSecond, MTUBytes: 46, Descriptors: 256}, "overruns"},
	} {
		r, err := c.q.Result()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.Notes, "; "); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.q, got, c.want)
		}
	}
}

// TestBusOfItsKind takes the paper figures of each bus from its standard, in MB/s.
func TestBusOfItsKind(t *testing.T) {
	for _, c := range []struct {
		q    calc.Bus
		want float64
	}{
		{calc.Bus{Kind: "isa", Width: 8}, 2.78}, {calc.Bus{Kind: "isa"}, 8.33}, {calc.Bus{Kind: "eisa"}, 33.3},
		{calc.Bus{Kind: "pci"}, 133}, {calc.Bus{Kind: "pci", Width: 64, Transfers: 200e6 / 3}, 533},
		{calc.Bus{Kind: "pci-x"}, 1067}, {calc.Bus{Kind: "pcie", Width: 1, Transfers: 2.5e9}, 250},
		{calc.Bus{Kind: "pcie"}, 7877}, {calc.Bus{Kind: "pcie", Width: 16, Transfers: 32e9}, 63015},
		{calc.Bus{Kind: "usb", Width: 2}, 60},
	} {
		if got := value(t, c.q, "nominal rate") / 8e6; math.Abs(got-c.want) > 0.005*c.want {
			t.Errorf("%+v: %v MB/s, want %v", c.q, got, c.want)
		}
		if usable := value(t, c.q, "usable rate") / 8e6; usable <= 0 || usable >= c.want*1.005 {
			t.Errorf("%+v: %v MB/s usable", c.q, usable)
		}
	}
}

func TestWhatIsMissing(t *testing.T) {
	for _, q := range []question{calc.Moderation{}, calc.Moderation{PerInterrupt: 50}, calc.Moderation{Packets: 1},
		calc.Window{Rate: 1}, calc.Window{}, calc.Burst{}, calc.Polling{}, calc.Polling{HZ: 1},
		calc.Bus{}, calc.Bus{Kind: "nubus"}, calc.Bus{Kind: "pci", Width: 33}, calc.Bus{Kind: "pci", Transfers: 33}} {
		if r, err := q.Result(); err == nil {
			t.Errorf("%+v gives %+v", q, r)
		}
	}
}

// FuzzResults feeds any numbers: every answer is finite, whatever is given.
func FuzzResults(f *testing.F) {
	f.Add(3000.0, int64(333333), 81000.0, 50.0, 1e9, 1500, uint32(256), int64(5000))
	f.Add(math.Inf(1), int64(-1), math.NaN(), 1e-300, 1e300, -1, uint32(1<<31), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, rate float64, interval int64, packets, each, link float64, mtu int, ring uint32,
		size int64) {
		d := time.Duration(interval)
		for _, q := range []question{
			calc.Moderation{rate, d, each, packets, unit.BitRate(link), mtu, d, ring},
			calc.Window{unit.BitRate(link), d, unit.Bytes(size), mtu},
			calc.Burst{unit.Bytes(size), ring, unit.Bytes(size), unit.BitRate(link), mtu, d},
			calc.Bus{"pcie", 0, rate, mtu, unit.BitRate(link), mtu},
			calc.Polling{rate, ring, unit.BitRate(link), mtu},
		} {
			r, err := q.Result()
			if err != nil {
				if errors.Unwrap(err) == nil && !strings.Contains(err.Error(), "give ") &&
					!strings.Contains(err.Error(), "MTU") {
					t.Errorf("%+v: %v", q, err)
				}
				continue
			}
			for _, v := range append(r.Values, r.Given...) {
				if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) || v.Value < 0 {
					t.Errorf("%+v: %+v", q, v)
				}
			}
		}
	})
}
