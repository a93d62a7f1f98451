package admission

import (
	"fmt"
	"math"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
)

// Unlimited is the value of a field of [Limits] that bounds nothing.
const Unlimited = -1

// Limits are what a host grants to strangers. The zero value of a field is its default, a negative
// one is [Unlimited].
//
// The defaults let an honest tester do anything that fits ten minutes and bound what a careless or
// hostile one can cost: a test of 10 s at 400 Gb/s is 500 GB, half of what one may move.
type Limits struct {
	// tests at a time, of all sources; default 16; as many again for those who hold the key
	Clients          int
	ClientsPerSource int           // tests at a time, of one source; default 8; as many again where it holds the key
	Duration         time.Duration // of one test; default 10 min
	Bytes            int64         // moved by one test, both directions together; default 1 TB
	// of one test, both directions together; default Unlimited: measuring the full rate is what a
	// server is for
	BitsPerSecond float64
	SourceBytes   int64 // moved by one source within SourceWindow; default 4 TB
	// counted from the source's first byte on, then anew; default 1 h; cannot be unlimited
	SourceWindow time.Duration
	// PacketsPerSecond is how many packets of one source are answered by reflectors that keep no
	// state; default 200 000, above what a ping-pong reaches within one host (150 000 seen): a
	// bucket that runs dry in the middle of one would be taken for a slow path. As no answer is
	// longer than its request, a forged source gains nothing by it. All sources together get
	// Clients times as many.
	PacketsPerSecond float64
}

// withDefaults fills in the zero fields and turns negative ones into values that nothing reaches.
func (l Limits) withDefaults() Limits {
	l.Clients = bound(l.Clients, 16)
	l.ClientsPerSource = bound(l.ClientsPerSource, 8)
	l.Duration = bound(l.Duration, 10*time.Minute)
	l.Bytes = bound(l.Bytes, 1e12)
	l.SourceBytes = bound(l.SourceBytes, 4e12)
	if l.SourceWindow <= 0 {
		l.SourceWindow = time.Hour
	}
	l.BitsPerSecond = rate(l.BitsPerSecond, Unlimited)
	l.PacketsPerSecond = rate(l.PacketsPerSecond, 200_000)
	return l
}

// bound is v, its default, or the largest value of its type.
func bound[T int | int64 | time.Duration](v, fallback T) T {
	switch {
	case v < 0:
		// Of int64 on every system that Go calls 64-bit; on the others the largest int is still far
		// above any number of clients.
		if largest := int64(math.MaxInt64); int64(T(largest)) == largest {
			return T(largest)
		}
		return T(math.MaxInt32)
	case v == 0:
		return fallback
	}
	return v
}

// rate is v, its default, or infinity; what is not a number bounds by default.
func rate(v, fallback float64) float64 {
	if v == 0 || math.IsNaN(v) {
		v = fallback
	}
	if v < 0 {
		return math.Inf(1)
	}
	return v
}

// bytesText writes a number of bytes for people: 4 TB, 1.5 GB, 12 bytes. Decimal prefixes, as rates
// have them, but for what is round in the binary ones only: who allowed 100M reads 100 MiB.
func bytesText(n int64) string {
	if n%(1<<10) == 0 && n%1000 != 0 {
		return unit.Bytes(n).String()
	}
	v, units := float64(n), []string{"kB", "MB", "GB", "TB", "PB", "EB"}
	if v < 1000 {
		return fmt.Sprintf("%d bytes", n)
	}
	for _, unit := range units {
		if v /= 1000; v < 999.95 {
			return fmt.Sprintf("%.4g %s", v, unit)
		}
	}
	return fmt.Sprintf("%.4g EB", v)
}
