package traffic

import (
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/traffic/echo"
)

// Bounds that hold on every host, whatever its [Limits].
const (
	MaxStreams      = 128
	maxMessageBytes = 1 << 20 // of one request or response
	minInterval     = 100 * time.Millisecond
	maxInterval     = 24 * time.Hour // as long as the longest test; sums with the clock must not overflow
	minPingBytes    = echo.HeaderBytes
	maxPingBytes    = 65000 // under the 65507 of UDP over IPv4
	minGap          = 100 * time.Microsecond
	maxSteadyWait   = 5 * time.Second // longest search for a steady state
	maxIntervals    = 20_000          // they all travel in one message at the end
)

// Normalize fills in what was left empty and checks the rest; errors are [ErrBadSpec]. Defaults: direction up, 1 stream, 10 s, no warm-up,
// 1 s intervals, 1-byte requests and responses, 56-byte pings every 10 ms. It is idempotent.
func (s Spec) Normalize() (Spec, error) {
	if s.Direction == "" {
		s.Direction = Up
	}
	if s.Streams == 0 {
		s.Streams = 1
	}
	if s.Duration == 0 {
		s.Duration = 10 * time.Second
	}
	if s.Interval == 0 {
		s.Interval = time.Second
	}
	switch s.Test {
	case Stream:
	case RR:
		if s.RequestBytes == 0 {
			s.RequestBytes = 1
		}
		if s.ResponseBytes == 0 {
			s.ResponseBytes = 1
		}
	case Ping:
		if s.RequestBytes == 0 {
			s.RequestBytes = 56
		}
		if s.Gap == 0 {
			s.Gap = 10 * time.Millisecond
		}
		// The round trips that find out who answers warm the path up; there is no ramp to wait for.
		s.WarmUp = max(s.WarmUp, 0)
	default:
		return s, fmt.Errorf("%w: no test %q", ErrBadSpec, s.Test)
	}
	return s, s.check()
}

func (s Spec) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrBadSpec, fmt.Sprintf(format, args...))
	}
	switch s.Direction {
	case Up, Down, Bidir:
	default:
		return bad("no direction %q", s.Direction)
	}
	if s.Test != Stream && s.Direction != Up {
		return bad("%s has no direction: the near side always asks", s.Test)
	}
	if s.Streams < 1 || s.Streams > MaxStreams {
		return bad("%d streams are not within 1 to %d", s.Streams, MaxStreams)
	}
	if s.Test == Ping && s.Streams != 1 {
		return bad("ping runs one stream, not %d", s.Streams)
	}
	if s.Duration < minInterval || s.Duration > 24*time.Hour {
		return bad("duration %v is not within %v to 24h", s.Duration, minInterval)
	}
	if s.WarmUp > time.Hour {
		return bad("warm-up %v is over 1h", s.WarmUp)
	}
	if s.Interval < minInterval || s.Interval > maxInterval {
		return bad("interval %v is not within %v to %v", s.Interval, minInterval, maxInterval)
	}
	if n := (max(s.WarmUp, 0) + s.Duration) / s.Interval; n > maxIntervals {
		return bad("%d intervals of %v are more than %d", n, s.Interval, maxIntervals)
	}
	if len(s.Congestion) > 15 {
		return bad("congestion control %q is longer than the kernel's 15 letters", s.Congestion)
	}
	switch s.Test {
	case RR:
		if s.RequestBytes < 1 || s.RequestBytes > maxMessageBytes || s.ResponseBytes < 1 || s.ResponseBytes > maxMessageBytes {
			return bad("request and response must be within 1 to %d bytes", maxMessageBytes)
		}
	case Ping:
		if s.RequestBytes < minPingBytes || s.RequestBytes > maxPingBytes {
			return bad("a ping of %d bytes is not within %d to %d", s.RequestBytes, minPingBytes, maxPingBytes)
		}
		if s.Gap < minGap || s.Gap > s.Duration {
			return bad("gap %v is not within %v and the duration", s.Gap, minGap)
		}
	}
	return nil
}

// Connections is the number of data connections that a normalized Spec needs; ping needs none. Up connections have the lower indexes.
func (s Spec) Connections() int {
	switch {
	case s.Test == Ping:
		return 0
	case s.Test == Stream && s.Direction == Bidir:
		return 2 * s.Streams
	}
	return s.Streams
}

// nearSends tells whether connection index carries its bulk data from near to far. For rr it is the near side that asks.
func (s Spec) nearSends(index int) bool {
	return s.Direction == Up || s.Direction == Bidir && index < s.Streams
}

// steadyBound is how long a search for the steady state may last; a short test does not wait longer than it measures.
func (s Spec) steadyBound() time.Duration {
	return min(maxSteadyWait, max(s.Duration, time.Second))
}

// longest is how long a test may take from start to result when nothing is wrong.
func (s Spec) longest(t timing) time.Duration {
	warm := s.WarmUp
	if warm < 0 {
		warm = s.steadyBound()
	}
	return 2*t.setup + warm + s.Duration + t.slack
}

// Limits are what a far side grants to anybody who may run tests at all. The zero value of a field is its default.
//
// The defaults bound what one test can cost a host: ten minutes of a full link, two threads per stream when both directions run, and for rr
// with 128 streams of 1 MiB messages each way 256 MiB of buffers.
type Limits struct {
	MaxDuration     time.Duration // warm-up and measured part together; default 10 min
	MaxStreams      int           // each way; default 128
	MaxMessageBytes int           // of a request, response or ping; default 1 MiB
	MinGap          time.Duration // between pings; default 1 ms
}

// Refuse gives the reason, one plain sentence, why a normalized Spec is over the limits; empty: it is not.
func (l Limits) Refuse(s Spec) string {
	if l.MaxDuration == 0 {
		l.MaxDuration = 10 * time.Minute
	}
	if l.MaxStreams == 0 {
		l.MaxStreams = MaxStreams
	}
	if l.MaxMessageBytes == 0 {
		l.MaxMessageBytes = maxMessageBytes
	}
	if l.MinGap == 0 {
		l.MinGap = time.Millisecond
	}
	if d := max(s.WarmUp, 0) + s.Duration; d > l.MaxDuration {
		return fmt.Sprintf("a test of %v is longer than the %v this host allows", d, l.MaxDuration)
	}
	if s.Streams > l.MaxStreams {
		return fmt.Sprintf("%d streams are more than the %d this host allows", s.Streams, l.MaxStreams)
	}
	if n := max(s.RequestBytes, s.ResponseBytes); n > l.MaxMessageBytes {
		return fmt.Sprintf("messages of %d bytes are larger than the %d this host allows", n, l.MaxMessageBytes)
	}
	if s.Test == Ping && s.Gap < l.MinGap {
		return fmt.Sprintf("a ping every %v is more often than every %v, which this host allows", s.Gap, l.MinGap)
	}
	return ""
}
