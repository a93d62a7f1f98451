package calc

import (
	"math"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
)

// Window asks how rate, round trip and window of a TCP connection go together; two of the three are
// given. Connections is how many there are at a time; 0 is one.
type Window struct {
	Rate        unit.BitRate
	RoundTrip   time.Duration
	Window      unit.Bytes
	Connections int
}

// The bounds of a window in a TCP header (RFC 7323 §2.3).
const (
	unscaledBytes = 65535
	longestShift  = 14
)

// Result returns the third of the three, the window scale and the memory.
func (w Window) Result() (*Result, error) {
	r := &Result{What: "window", Formula: "window = rate × round trip / 8"}
	r.given("rate", float64(w.Rate), BitsPerSecond)
	r.given("round trip", w.RoundTrip.Seconds(), Seconds)
	r.given("window", float64(w.Window), Bytes)
	r.given("connections", float64(w.Connections), Number)
	rate, trip, window := float64(w.Rate), w.RoundTrip.Seconds(), float64(w.Window)
	switch {
	case rate > 0 && trip > 0 && window > 0:
		r.add("rate that the window allows", window*8/trip, BitsPerSecond, "window × 8 / round trip")
		r.add("window that the rate needs", rate*trip/8, Bytes, "rate × round trip / 8")
		window = rate * trip / 8
	case rate > 0 && trip > 0:
		window = rate * trip / 8
		r.add("window", window, Bytes, "rate × round trip / 8")
	case window > 0 && trip > 0:
		r.Formula = "rate = window × 8 / round trip"
		r.add("rate", window*8/trip, BitsPerSecond, "%s", r.Formula)
	case window > 0 && rate > 0:
		r.Formula = "round trip = window × 8 / rate"
		r.add("round trip up to which the window lasts", window*8/rate, Seconds, "%s", r.Formula)
	default:
		return nil, missing("window", "two of --rate, --rtt and --window")
	}
	if trip > 0 {
		r.add("rate without window scaling", unscaledBytes*8/trip, BitsPerSecond,
			"65535 bytes × 8 / round trip: 16 bits of the header (RFC 9293)")
	}
	shift := math.Ceil(math.Log2(window / unscaledBytes))
	if shift = max(shift, 0); shift > longestShift {
		r.Notes = append(r.Notes, "no window scale reaches that: RFC 7323 ends at 2^14 × 65535 bytes, 1 GiB")
		shift = longestShift
	}
	r.add("window scale", shift, Number, "the least shift with 65535 × 2^shift ≥ window (RFC 7323)")
	r.add("receive buffer on Linux", 2*window, Bytes,
		"2 × window: the kernel keeps half for its own structures (tcp_adv_win_scale=1; since 6.6 as measured)")
	n := max(w.Connections, 1)
	r.add("memory of one end", float64(n)*2*window, Bytes, "%d × receive buffer, when all are full", n)
	return r.finish()
}
