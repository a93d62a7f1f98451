package unit_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
)

func TestFormat(t *testing.T) {
	tests := []struct{ got, want string }{
		{unit.BitRate(941.4e6).String(), "941 Mb/s"},
		{unit.BitRate(1e9).String(), "1.00 Gb/s"},
		{unit.BitRate(999.7e6).String(), "1.00 Gb/s"},
		{unit.BitRate(0).String(), "0 b/s"},
		{unit.BitRate(12).String(), "12.0 b/s"},
		{unit.BitRate(25.3e3).String(), "25.3 kb/s"},
		{unit.BitRate(-25.3e3).String(), "-25.3 kb/s"},
		{unit.BitRate(400e9).String(), "400 Gb/s"},
		{unit.BitRate(math.NaN()).String(), "unknown"},
		{(6 * unit.Mebibyte).String(), "6 MiB"},
		{unit.Bytes(1500).String(), "1500 B"},
		{unit.Bytes(9000).String(), "9000 B"},
		{unit.Bytes(65536).String(), "64 KiB"},
		{unit.Bytes(65535).String(), "64 KiB"},
		{unit.Bytes(0).String(), "0 B"},
		{unit.Bytes(-4096).String(), "-4 KiB"},
		{unit.Bytes(6600000).String(), "6.29 MiB"},
		{unit.Bytes(1<<20 - 1).String(), "1 MiB"},
		{unit.Bytes(math.MinInt64).String(), "-8 EiB"},
		{unit.FormatSeconds(1.24e-3), "1.24 ms"},
		{unit.FormatSeconds(0), "0 s"},
		{unit.FormatSeconds(840e-9), "840 ns"},
		{unit.FormatSeconds(999.9e-6), "1.00 ms"},
		{unit.FormatSeconds(20.13e-3), "20.1 ms"},
		{unit.FormatSeconds(12), "12.0 s"},
		{unit.FormatSeconds(59.99), "1 min 00 s"},
		{unit.FormatSeconds(125), "2 min 05 s"},
		{unit.FormatSeconds(3599.7), "1 h 00 min"},
		{unit.FormatSeconds(-0.5), "-500 ms"},
		{unit.FormatCount(4321), "4321"},
		{unit.FormatCount(4321.4), "4321"},
		{unit.FormatCount(3), "3"},
		{unit.FormatCount(3.25), "3.25"},
		{unit.FormatCount(12345), "12.3 k"},
		{unit.FormatCount(1.2389e6), "1.24 M"},
		{unit.FormatCount(math.Copysign(0, -1)), "0"},
		{unit.FormatPercent(0.018), "1.80 %"},
		{unit.FormatPercent(0.5), "50.0 %"},
		{unit.FormatPercent(1), "100 %"},
		{unit.FormatPercent(0), "0 %"},
		{unit.FormatPercent(1e-5), "0.001 %"},
		{unit.FormatPercent(0.9994), "99.9 %"},
		{unit.FormatPercent(0.9995), "99.95 %"},
		{unit.FormatPercent(0.9997), "99.97 %"},
		{unit.FormatPercent(0.99996), "99.996 %"},
		{unit.FormatPercent(1 - 1e-7), "99.99999 %"},
		{unit.FormatPercent(1 - 1e-11), "99.99999999 %"},
		{unit.FormatPercent(0.1 + 0.2 + 0.7), "100 %"},
		{unit.FormatPercent(1 - 1e-16), "100 %"},
		{unit.FormatPercent(1.0003), "100 %"},
		{unit.FormatPercent(-0.9997), "-100 %"},
		{unit.FormatDifference(0.032, 1), "+3.2 %"},
		{unit.FormatDifference(-0.1, 2), "-10.00 %"},
		{unit.FormatDifference(-0.0004, 1), "0.0 %"},
		{unit.FormatDifference(0.0004, 1), "0.0 %"},
		{unit.FormatDifference(0, 0), "0 %"},
		{unit.FormatDifference(math.NaN(), 1), "unknown"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestParse(t *testing.T) {
	bitRate := func(s string) (float64, error) { r, err := unit.ParseBitRate(s); return float64(r), err }
	bytes := func(s string) (float64, error) { b, err := unit.ParseBytes(s); return float64(b), err }
	tests := []struct {
		parse func(string) (float64, error)
		in    string
		want  float64
	}{
		{bitRate, "941 Mb/s", 941e6},
		{bitRate, "1.5Gbit/s", 1.5e9},
		{bitRate, "10Gbps", 10e9},
		{bitRate, "100mbit", 100e6},
		{bitRate, " 250k ", 250e3},
		{bitRate, "1e9", 1e9},
		{bitRate, "1000000000", 1e9},
		{bytes, "900M", 900 << 20},
		{bytes, "6 MiB", 6 << 20},
		{bytes, "6Mi", 6 << 20},
		{bytes, "64k", 64 << 10},
		{bytes, "10 MB", 10e6},
		{bytes, "1500 B", 1500},
		{bytes, "1.5G", 1.5 * (1 << 30)},
		{bytes, "1E", 1 << 60},
		{bytes, "-1", -1},
		{unit.ParseSeconds, "1.24 ms", 1.24e-3},
		{unit.ParseSeconds, "250us", 250e-6},
		{unit.ParseSeconds, "10", 10},
		{unit.ParseSeconds, "2 min 05 s", 125},
		{unit.ParseSeconds, "3 h 10 min", 11400},
		{unit.ParseSeconds, "1m30s", 90},
		{unit.ParseSeconds, "0.01 ns", 1e-11},
		{unit.ParseCount, "12.3 k", 12300},
		{unit.ParseCount, "4321", 4321},
		{unit.ParsePercent, "1.8 %", 0.018},
		{unit.ParsePercent, "-5%", -0.05},
	}
	for _, tt := range tests {
		got, err := tt.parse(tt.in)
		if err != nil || !near(got, tt.want, 1e-12) {
			t.Errorf("parse %q = %v, %v; want %v", tt.in, got, err, tt.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	bitRate := func(s string) error { _, err := unit.ParseBitRate(s); return err }
	bytes := func(s string) error { _, err := unit.ParseBytes(s); return err }
	seconds := func(s string) error { _, err := unit.ParseSeconds(s); return err }
	count := func(s string) error { _, err := unit.ParseCount(s); return err }
	percent := func(s string) error { _, err := unit.ParsePercent(s); return err }
	tests := []struct {
		parse func(string) error
		in    string
	}{
		{bitRate, ""}, {bitRate, "fast"}, {bitRate, "-1 Mb/s"}, {bitRate, "10 MB/s"}, {bitRate, "10MBps"},
		{bitRate, "NaN"},
		{bitRate, "Inf"}, {bitRate, "1e400"}, {bitRate, "1.2.3"}, {bitRate, "5 Xb/s"}, {bitRate, "1e308T"},
		{bitRate, "1e300"}, {bitRate, "1001 Tb/s"}, {bitRate, "1e-300"}, {bitRate, "0.5"},
		{bytes, ""}, {bytes, "9E"}, {bytes, "1 XiB"}, {bytes, "ten"}, {bytes, "1e30"}, {bytes, "6 MMiB"},
		{bytes, "6iB2"}, {bytes, "5iB"}, {bytes, "5 i"},
		{seconds, ""}, {seconds, "NaN"}, {seconds, "soon"}, {seconds, "5 weeks"}, {seconds, "inf"},
		{seconds, "1e300"}, {seconds, "1e300 s"}, {seconds, "9300000000"}, {seconds, "-1e11 h"}, {seconds, "110000 d 1 h"},
		{count, "1e300"}, {count, "-1e16"}, {count, "2e12k"},
		{count, ""}, {count, "1.2X"}, {percent, "0.5"}, {percent, ""},
	}
	for _, tt := range tests {
		if err := tt.parse(tt.in); !errors.Is(err, unit.ErrSyntax) {
			t.Errorf("parse %q: error %v, want ErrSyntax", tt.in, err)
		}
	}
}

// TestRoundTrip checks parse(print(x)) ≈ x over many magnitudes; three significant digits are
// accurate to 0.5 %.
func TestRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		x := math.Pow(10, random.Float64()*15)
		if got, err := unit.ParseBitRate(unit.BitRate(x).String()); err != nil || !near(float64(got), x, 0.00501) {
			t.Fatalf("bit rate %v printed as %q, parsed as %v, %v", x, unit.BitRate(x), float64(got), err)
		}
		if got, err := unit.ParseBytes(unit.Bytes(x).String()); err != nil ||
			!near(float64(got), math.Trunc(x), 0.00501) {
			t.Fatalf("bytes %v printed as %q, parsed as %d, %v", x, unit.Bytes(x), got, err)
		}
		if got, err := unit.ParseSeconds(unit.FormatSeconds(x / 1e9)); err != nil || !near(got, x/1e9, 0.0085) {
			t.Fatalf("seconds %v printed as %q, parsed as %v, %v", x/1e9, unit.FormatSeconds(x/1e9), got, err)
		}
		if got, err := unit.ParseCount(unit.FormatCount(x)); err != nil || !near(got, x, 0.00501) {
			t.Fatalf("count %v printed as %q, parsed as %v, %v", x, unit.FormatCount(x), got, err)
		}
		if got, err := unit.ParsePercent(unit.FormatPercent(x / 1e6)); err != nil || !near(got, x/1e6, 0.00501) {
			t.Fatalf("ratio %v printed as %q, parsed as %v, %v", x/1e6, unit.FormatPercent(x/1e6), got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "941 Mb/s", "6 MiB", "900M", "1e9", "2 min 05 s", "-5%", "1E", "1e", "..", "+",
		"9223372036854775807", "1.24 µs", "3 h 10 min", "41 d 7 h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := unit.ParseBitRate(s); err == nil && !(r >= 0 && r <= unit.MostBitRate) {
			t.Errorf("%q has %v", s, r)
		}
		if n, err := unit.ParseCount(s); err == nil && !(math.Abs(n) <= unit.MostCount) {
			t.Errorf("%q counts %v", s, n)
		}
		if d, err := unit.ParseSpan(s); err == nil {
			if x, err := unit.ParseSeconds(s); err == nil && (x >= 1e-9 && d <= 0 || x <= -1e-9 && d >= 0) {
				t.Errorf("%q is %v s and a span of %v", s, x, d)
			}
		}
		if r, err := unit.ParseBitRate(s); err == nil {
			if again, err := unit.ParseBitRate(r.String()); err != nil || !near(float64(again), float64(r), 0.01) &&
				r > 0.0001 {
				t.Errorf("%q parsed as %v, printed as %q, parsed again as %v, %v", s, float64(r), r,
					float64(again), err)
			}
		}
		if b, err := unit.ParseBytes(s); err == nil && b > math.MinInt64/2 && b < math.MaxInt64/2 {
			if again, err := unit.ParseBytes(b.String()); err != nil || !near(float64(again), float64(b), 0.01) {
				t.Errorf("%q parsed as %d, printed as %q, parsed again as %d, %v", s, int64(b), b, int64(again), err)
			}
		}
		if x, err := unit.ParseSeconds(s); err == nil && math.Abs(x) < 0.99*unit.MostSeconds {
			if again, err := unit.ParseSeconds(unit.FormatSeconds(x)); err != nil || !near(again, x, 0.01) &&
				math.Abs(x) > 1e-12 {
				t.Errorf("%q parsed as %v, printed as %q, parsed again as %v, %v", s, x,
					unit.FormatSeconds(x), again, err)
			}
		}
		if x, err := unit.ParseCount(s); err == nil {
			if again, err := unit.ParseCount(unit.FormatCount(x)); err != nil || !near(again, x, 0.01) &&
				math.Abs(x) < 1e300 {
				t.Errorf("%q parsed as %v, printed as %q, parsed again as %v, %v", s, x,
					unit.FormatCount(x), again, err)
			}
		}
		_, _ = unit.ParsePercent(s)
	})
}

func near(got, want, tolerance float64) bool {
	return got == want || math.Abs(got-want) <= tolerance*math.Abs(want)
}

func TestRoundBudget(t *testing.T) {
	for d, want := range map[time.Duration]string{
		41 * time.Second: "50.0 s", 50 * time.Second: "50.0 s", 121 * time.Second: "2 min 30 s",
		270 * time.Second: "4 min 30 s", 271 * time.Second: "5 min 00 s",
	} {
		if got := unit.FormatBudget(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
