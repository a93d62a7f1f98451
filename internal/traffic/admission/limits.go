package admission

import (
	"fmt"
	"math"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
)

// Unlimited is the value of a field of [Limits] that bounds nothing.
const Unlimited = -1

// Limits are what a host grants to strangers. A zero field means its default, a negative one
// [Unlimited].
//
// The defaults let an honest tester do anything that fits into ten minutes, and bound what a
// careless or hostile one can cost: a test of 10 s at 400 Gb/s is 500 GB, half of the limit for one
// test.
type Limits struct {
	// tests at a time, of all sources; default 16; as many again for clients that hold the key
	Clients          int
	ClientsPerSource int           // tests at a time, of one source; default 8; as many again if it holds the key
	Duration         time.Duration // of one test; default 10 min
	Bytes            int64         // moved by one test, both directions together; default 1 TB
	// of one test, both directions together; default Unlimited, because a server exists to measure
	// the full rate
	BitsPerSecond float64
	SourceBytes   int64 // moved by one source within SourceWindow; default 4 TB
	// counted from the source's first byte on, then again; default 1 h; cannot be unlimited
	SourceWindow time.Duration
	// PacketsPerSecond is how many packets of one source stateless reflectors answer. The default,
	// 200 000, is above what a ping-pong reaches within one host (150 000 measured): a bucket that
	// runs dry in the middle of one would look like a slow path. No answer is longer than its
	// request, so a forged source gains nothing by it. All sources together get Clients times as
	// many.
	PacketsPerSecond float64
}

// withDefaults fills in the zero fields and turns negative ones into values that no test reaches.
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

// bound returns v, its default, or the largest value of its type.
func bound[T int | int64 | time.Duration](v, fallback T) T {
	switch {
	case v < 0:
		// Of int64 on every 64-bit system; on other systems the largest int is still far above any
		// number of clients.
		if largest := int64(math.MaxInt64); int64(T(largest)) == largest {
			return T(largest)
		}
		return T(math.MaxInt32)
	case v == 0:
		return fallback
	}
	return v
}

// rate returns v, its default, or infinity; NaN means the default.
func rate(v, fallback float64) float64 {
	if v == 0 || math.IsNaN(v) {
		v = fallback
	}
	if v < 0 {
		return math.Inf(1)
	}
	return v
}

// bytesText formats a number of bytes for people: 4 TB, 1.5 GB, 12 bytes. Prefixes are decimal, as
// for rates, except for numbers that are round only in binary ones: a user who allowed 100M reads
// 100 MiB.
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
