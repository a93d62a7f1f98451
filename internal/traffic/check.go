package traffic

import (
	"cmp"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// Bounds that hold on every host, independent of its [Limits].
const (
	MaxStreams       = 1024
	maxMessageBytes  = 1 << 20 // of one request or response
	minInterval      = 100 * time.Millisecond
	maxInterval      = 24 * time.Hour // as long as the longest test; sums with the clock must not overflow
	minGap           = 100 * time.Microsecond
	maxSteadyWait    = 5 * time.Second // longest search for a steady state
	maxIntervals     = 20_000          // they all travel in one message at the end
	maxAmount        = 1 << 50         // bytes of one direction: a day at 100 Gb/s
	maxRate          = 1e13            // bits or packets per second; above it the gap of a schedule has no digits left
	minRate          = 1               // one bit or packet per second
	maxWindowBytes   = 1 << 30         // the largest window that TCP can announce (RFC 7323 §2.2)
	minMSSBytes      = 88              // TCP_MIN_MSS of Linux
	maxMSSBytes      = 32767           // MAX_TCP_WINDOW of Linux, its bound of TCP_MAXSEG
	lowestSourcePort = 1024            // those below need privileges
	maxCPU           = 1 << 13         // NR_CPUS of the largest kernels
)

// Normalize fills in empty fields and checks the rest; errors are [ErrBadSpec]. Defaults: direction
// up, 1 stream, 10 s, no warm-up, 1 s intervals, 1-byte requests and responses, 56-byte pings every
// 10 ms, datagrams of 1400 bytes. A test of an amount may take 10 min. Normalize is idempotent.
func (s Spec) Normalize() (Spec, error) {
	k, ok := kindOf(s.Test)
	if !ok {
		return s, noSuchTest(s.Test)
	}
	if s.Direction == "" {
		s.Direction = Up
	}
	if s.Streams == 0 {
		s.Streams = 1
	}
	if s.Bytes > 0 {
		// The amount is all that is sent: no warm-up precedes it, and the time is only a bound.
		s.WarmUp = 0
		if s.Duration == 0 {
			s.Duration = 10 * time.Minute
		}
	}
	if s.Duration == 0 {
		s.Duration = 10 * time.Second
	}
	if s.Interval == 0 {
		// A user does not read hours of seconds, and all intervals travel in one message: a test of
		// n hours reports every n seconds.
		s.Interval = time.Second * max(1, (max(s.WarmUp, 0)+s.Duration+time.Hour-1)/time.Hour)
	}
	k.fill(&s)
	return s, s.check(k)
}

// check refuses a filled Spec that no host can run.
func (s Spec) check(k kind) error {
	for _, check := range []func(Spec) string{checkCommon, checkOptions, checkAmounts, k.check, checkPings,
		checkSocket} {
		if problem := check(s); problem != "" {
			return fmt.Errorf("%w: %s", ErrBadSpec, problem)
		}
	}
	return nil
}

// checkCommon is about what every test has; it returns the problem in words, or "".
func checkCommon(s Spec) string {
	switch s.Direction {
	case Up, Down, Bidir:
	default:
		return fmt.Sprintf("no direction %q", s.Direction)
	}
	switch {
	case s.Streams < 1 || s.Streams > MaxStreams:
		return fmt.Sprintf("%d streams are not within 1 to %d", s.Streams, MaxStreams)
	case s.Streams != 1 && s.traits().takes&manyStreams == 0:
		return fmt.Sprintf("%s runs one stream, not %d", s.Test, s.Streams)
	case s.Duration < minInterval || s.Duration > 24*time.Hour:
		return fmt.Sprintf("duration %v is not within %v to 24h", s.Duration, minInterval)
	case s.WarmUp > time.Hour:
		return fmt.Sprintf("warm-up %v is over 1h", s.WarmUp)
	case s.Interval < minInterval || s.Interval > maxInterval:
		return fmt.Sprintf("interval %v is not within %v to %v", s.Interval, minInterval, maxInterval)
	}
	if n := (max(s.WarmUp, 0) + s.Duration) / s.Interval; n > maxIntervals {
		return fmt.Sprintf("%d intervals of %v (--interval) are more than %d", n, s.Interval, maxIntervals)
	}
	return ""
}

// checkAmounts is about how much and how fast.
func checkAmounts(s Spec) string {
	rate := func(r float64, unit string) string {
		// Written so that NaN is refused as well.
		if r != 0 && !(r >= minRate && r <= maxRate) {
			return fmt.Sprintf("a rate of %g %s per second is not within %d to %g", r, unit, minRate, maxRate)
		}
		return ""
	}
	switch {
	case s.Bytes < 0 || s.Bytes > maxAmount:
		return fmt.Sprintf("an amount of %d bytes is not within 1 to %d", s.Bytes, int64(maxAmount))
	case s.Bytes > 0 && s.Bytes < int64(s.Streams):
		return fmt.Sprintf("%d bytes are not enough for %d streams", s.Bytes, s.Streams)
	case s.RateBitsPerSec != 0 && s.RatePacketsPerSec != 0:
		return "a rate is in bits or in packets, not in both"
	}
	return cmp.Or(rate(s.RateBitsPerSec, "bits"), rate(s.RatePacketsPerSec, "packets"))
}

// checkPings is about the pings beside a test, and the signs of what a test checks itself.
func checkPings(s Spec) string {
	switch {
	case s.RequestBytes < 0 || s.ResponseBytes < 0 || s.Gap < 0:
		return "sizes and gaps are not negative"
	case s.ProbeGap != 0 && (s.ProbeGap < minGap || s.ProbeGap > s.Duration):
		return fmt.Sprintf("gap %v of the pings is not within %v and the duration", s.ProbeGap, minGap)
	}
	return ""
}

// checkSocket is about how the sockets are made and used, and on which CPUs.
func checkSocket(s Spec) string {
	switch s.SendMethod {
	case engine.SendAuto, engine.SendCopy, engine.SendSendfile, engine.SendSplice:
	default:
		return fmt.Sprintf("no way to send %q", s.SendMethod)
	}
	switch s.ReceiveMethod {
	case engine.ReceiveAuto, engine.ReceiveCopy, engine.ReceiveTruncate:
	default:
		return fmt.Sprintf("no way to receive %q", s.ReceiveMethod)
	}
	switch s.Batch {
	case "", "gso", "mmsg", "single":
	default:
		return fmt.Sprintf("no batch %q", s.Batch)
	}
	switch {
	case len(s.Congestion) > 15:
		return fmt.Sprintf("congestion control %q is longer than the kernel's 15 letters", s.Congestion)
	case s.WindowBytes < 0 || s.WindowBytes > maxWindowBytes:
		return fmt.Sprintf("a window of %d bytes is not within 0 to %d", s.WindowBytes, maxWindowBytes)
	case s.MSSBytes != 0 && (s.MSSBytes < minMSSBytes || s.MSSBytes > maxMSSBytes):
		return fmt.Sprintf("a segment size of %d bytes is not within %d to %d", s.MSSBytes, minMSSBytes, maxMSSBytes)
	case s.TOS < 0 || s.TOS > 255:
		return fmt.Sprintf("a type of service of %d is not within 0 to 255", s.TOS)
	case s.SourceAddress != "" && !s.from().IsValid():
		return fmt.Sprintf("source address %q is not an IP address", s.SourceAddress)
	case s.SourcePort != 0 && (s.SourcePort < lowestSourcePort || s.SourcePort+s.channels() > 1<<16):
		return fmt.Sprintf("source ports from %d on are not within %d to 65535", s.SourcePort, lowestSourcePort)
	}
	for _, list := range [][]int{s.NearCPUs, s.FarCPUs} {
		if len(list) > maxCPU {
			return fmt.Sprintf("a list of %d processors is too long", len(list))
		}
		for _, cpu := range list {
			if cpu < 0 || cpu >= maxCPU {
				return fmt.Sprintf("no processor %d", cpu)
			}
		}
	}
	return ""
}

// Bulk reports whether the test pushes data in the Spec's direction. In all other tests the near
// end asks and the far end answers.
func (s Spec) Bulk() bool { return s.traits().bulk }

// Connections returns the number of TCP data connections that a normalized Spec needs beside the
// control channel. Tests over other sockets need none, and crr opens its own. Up connections have
// the lower indexes.
func (s Spec) Connections() int {
	if !s.traits().dials {
		return 0
	}
	return s.channels()
}

// channels returns the number of data connections or sockets of each end: one for each stream and
// direction.
func (s Spec) channels() int {
	if s.Direction == Bidir {
		return 2 * s.Streams
	}
	return s.Streams
}

// receives reports whether one end counts what the test is about: payload that arrives there, or
// the answers to its requests.
func (s Spec) receives(near bool) bool {
	if near {
		return !s.Bulk() || s.Direction != Up
	}
	return s.Bulk() && s.Direction != Down
}

// sends reports whether one end sends bulk data.
func (s Spec) sends(near bool) bool {
	return s.Bulk() && (near && s.Direction != Down || !near && s.Direction != Up)
}

// role returns what one end does on connection index.
func (s Spec) role(near bool, index int) engine.Role {
	switch {
	case !s.Bulk() && near:
		return engine.Requester
	case !s.Bulk():
		return engine.Responder
	case s.nearSends(index) == near:
		return engine.Sender
	}
	return engine.Receiver
}

// nearSends reports whether connection index carries bulk data from near to far.
func (s Spec) nearSends(index int) bool {
	return s.Direction == Up || s.Direction == Bidir && index < s.Streams
}

// SteadyBound returns how long a search for the steady state may last; a short test does not search
// longer than it measures.
func (s Spec) SteadyBound() time.Duration {
	return min(maxSteadyWait, max(s.Duration, time.Second))
}

// warmUpBound returns how long the warm-up may last.
func (s Spec) warmUpBound() time.Duration {
	if s.WarmUp < 0 {
		return s.SteadyBound()
	}
	return s.WarmUp
}

// Silence returns how much longer than usual the control channel may be silent because of what the
// test itself sends. Datagrams at full speed leave no share of the path to other traffic, and TCP
// doubles the wait before each retransmission, so a message lost in a flood may arrive as long
// after the flood as the flood lasted. The bound is two minutes, because a lost peer is noticed
// that much later. Zero for tests that make room for other traffic. Package traffic adds it to its
// own bounds; the owner of the channel must add it to those of the channel.
func Silence(s Spec) time.Duration {
	if !s.traits().floods {
		return 0
	}
	return 2 * min(s.Duration+s.warmUpBound(), time.Minute)
}

// longest returns how long a test may take from start to result when nothing is wrong.
func longest(s Spec, t timing) time.Duration {
	return 2*t.Setup + s.warmUpBound() + s.Duration + t.Slack + Silence(s) + time.Duration(2*s.Streams)*crowding
}
