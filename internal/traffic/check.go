package traffic

import (
	"cmp"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// Bounds that hold on every host, whatever its [Limits].
const (
	MaxStreams       = 1024
	MaxPacketBytes   = 65507   // largest payload of UDP over IPv4: 65535 less 20 and 8 bytes of headers
	MinPacketBytes   = 16      // what a datagram says about itself must fit; 18 fill the shortest Ethernet frame
	maxMessageBytes  = 1 << 20 // of one request or response
	minInterval      = 100 * time.Millisecond
	maxInterval      = 24 * time.Hour // as long as the longest test; sums with the clock must not overflow
	MinPingBytes     = 24             // a token of 16 bytes and a sequence number of 8
	maxPingBytes     = 65000          // under the 65507 of UDP over IPv4
	minGap           = 100 * time.Microsecond
	maxSteadyWait    = 5 * time.Second // longest search for a steady state
	MaxIntervals     = 20_000          // they all travel in one message at the end
	MaxAmount        = 1 << 50         // bytes of one direction: a day at 100 Gb/s
	maxRate          = 1e13            // bits or packets per second; above it the gap of a schedule has no digits left
	minRate          = 1               // one bit or packet per second
	maxWindowBytes   = 1 << 30         // the largest window that TCP can announce (RFC 7323 §2.2)
	minMSSBytes      = 88              // TCP_MIN_MSS of Linux
	maxMSSBytes      = 32767           // MAX_TCP_WINDOW of Linux, its bound of TCP_MAXSEG
	lowestSourcePort = 1024            // those below need privileges
	maxCPU           = 1 << 13         // NR_CPUS of the largest kernels
)

// Normalize fills in what was left empty and checks the rest; errors are [ErrBadSpec]. Defaults:
// direction up, 1 stream, 10 s, no warm-up, 1 s intervals, 1-byte requests and responses, 56-byte
// pings every 10 ms, datagrams of 1400 bytes. A test of an amount may take 10 min. It is
// idempotent.
func (s Spec) Normalize() (Spec, error) {
	if s.Direction == "" {
		s.Direction = Up
	}
	if s.Streams == 0 {
		s.Streams = 1
	}
	if s.Bytes > 0 {
		// What was asked for is the whole of it: nothing is cut from the front, and the time is
		// only a bound.
		s.WarmUp = 0
		if s.Duration == 0 {
			s.Duration = 10 * time.Minute
		}
	}
	if s.Duration == 0 {
		s.Duration = 10 * time.Second
	}
	if s.Interval == 0 {
		// Nobody reads hours of seconds, and they all travel in one message: a test of n hours is
		// told every n seconds.
		s.Interval = time.Second * max(1, (max(s.WarmUp, 0)+s.Duration+time.Hour-1)/time.Hour)
	}
	switch s.Test {
	case Stream:
	case RR, CRR:
		if s.RequestBytes == 0 {
			s.RequestBytes = 1
		}
		if s.ResponseBytes == 0 {
			s.ResponseBytes = 1
		}
	case UDP:
		if s.PacketBytes == 0 {
			s.PacketBytes = 1400 // fits every path that carries IPv6 in a tunnel or two
		}
		// Datagrams have no ramp to wait for. Without a warm-up the first packet of the test is the
		// first of the window, and the counters of both hosts hold no others.
		s.WarmUp = max(s.WarmUp, 0)
	case Ping, Load:
		if s.RequestBytes == 0 {
			s.RequestBytes = 56
		}
		if s.Gap == 0 {
			s.Gap = 10 * time.Millisecond
		}
		// The round trips that find out who answers warm the path up; there is no ramp to wait for.
		s.WarmUp = max(s.WarmUp, 0)
	case MTU:
		// It ends when it knows; the window only shows what both hosts counted at its beginning.
		s.WarmUp, s.Duration = 0, minInterval
	default:
		return s, fmt.Errorf("%w: no test %q: there are stream, rr, crr, udp, ping, mtu and load", ErrBadSpec, s.Test)
	}
	return s, s.check()
}

// check is Normalize without the filling in: what every test has first, then what each of them has
// of its own.
func (s Spec) check() error {
	for _, check := range []func(Spec) string{checkCommon, checkAmounts, checkMessages, checkSocket} {
		if problem := check(s); problem != "" {
			return fmt.Errorf("%w: %s", ErrBadSpec, problem)
		}
	}
	return nil
}

// checkCommon is about what every test has; it gives the problem in words, or nothing.
func checkCommon(s Spec) string {
	switch s.Direction {
	case Up, Down, Bidir:
	default:
		return fmt.Sprintf("no direction %q", s.Direction)
	}
	switch {
	case !s.Bulk() && s.Direction != Up:
		return fmt.Sprintf("%s has no direction: the near side always asks", s.Test)
	case s.Streams < 1 || s.Streams > MaxStreams:
		return fmt.Sprintf("%d streams are not within 1 to %d", s.Streams, MaxStreams)
	case (s.Test == Ping || s.Test == MTU) && s.Streams != 1:
		return fmt.Sprintf("%s runs one stream, not %d", s.Test, s.Streams)
	case s.Duration < minInterval || s.Duration > 24*time.Hour:
		return fmt.Sprintf("duration %v is not within %v to 24h", s.Duration, minInterval)
	case s.WarmUp > time.Hour:
		return fmt.Sprintf("warm-up %v is over 1h", s.WarmUp)
	case s.Interval < minInterval || s.Interval > maxInterval:
		return fmt.Sprintf("interval %v is not within %v to %v", s.Interval, minInterval, maxInterval)
	}
	if n := (max(s.WarmUp, 0) + s.Duration) / s.Interval; n > MaxIntervals {
		return fmt.Sprintf("%d intervals of %v (--interval) are more than %d", n, s.Interval, MaxIntervals)
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
	case s.Bytes < 0 || s.Bytes > MaxAmount:
		return fmt.Sprintf("an amount of %d bytes is not within 1 to %d", s.Bytes, int64(MaxAmount))
	case s.Bytes > 0 && !s.Bulk():
		return fmt.Sprintf("%s runs for a time, not for an amount", s.Test)
	case s.Bytes > 0 && s.Bytes < int64(s.Streams):
		return fmt.Sprintf("%d bytes are not enough for %d streams", s.Bytes, s.Streams)
	case s.RateBitsPerSec != 0 && !s.Bulk():
		return fmt.Sprintf("%s runs at no rate", s.Test)
	case s.RatePacketsPerSec != 0 && s.Test != UDP:
		return fmt.Sprintf("%s runs at no packet rate", s.Test)
	case s.RateBitsPerSec != 0 && s.RatePacketsPerSec != 0:
		return "a rate is in bits or in packets, not in both"
	}
	return cmp.Or(rate(s.RateBitsPerSec, "bits"), rate(s.RatePacketsPerSec, "packets"))
}

// checkMessages is about the sizes and gaps of what is sent.
func checkMessages(s Spec) string {
	switch s.Test {
	case RR, CRR:
		if s.RequestBytes < 1 || s.RequestBytes > maxMessageBytes || s.ResponseBytes < 1 ||
			s.ResponseBytes > maxMessageBytes {
			return fmt.Sprintf("request and response must be within 1 to %d bytes", maxMessageBytes)
		}
		if s.Gap > s.Duration {
			return fmt.Sprintf("a pause of %v before each request is longer than the duration", s.Gap)
		}
	case Stream:
		if s.RequestBytes != 0 && (s.ProbeGap == 0 || s.RequestBytes < MinPingBytes || s.RequestBytes > maxPingBytes) {
			return fmt.Sprintf("pings of %d bytes beside a stream are not within %d to %d, or there are none",
				s.RequestBytes, MinPingBytes, maxPingBytes)
		}
	case Ping, Load:
		if s.RequestBytes < MinPingBytes || s.RequestBytes > maxPingBytes {
			return fmt.Sprintf("a ping of %d bytes is not within %d to %d", s.RequestBytes, MinPingBytes, maxPingBytes)
		}
		if s.Gap < minGap || s.Gap > s.Duration {
			return fmt.Sprintf("gap %v is not within %v and the duration", s.Gap, minGap)
		}
	case UDP:
		if s.PacketBytes < MinPacketBytes || s.PacketBytes > MaxPacketBytes {
			return fmt.Sprintf("datagrams of %d bytes are not within %d to %d", s.PacketBytes, MinPacketBytes,
				MaxPacketBytes)
		}
	}
	switch {
	case s.RequestBytes < 0 || s.ResponseBytes < 0 || s.Gap < 0:
		return "sizes and gaps are not negative"
	case s.PacketBytes != 0 && s.Test != UDP:
		return fmt.Sprintf("%s sends no datagrams of a chosen size", s.Test)
	case s.ProbeGap != 0 && (s.Test == Ping || s.Test == MTU || s.Test == Load):
		return fmt.Sprintf("no pings run beside %s", s.Test)
	case s.ProbeGap != 0 && (s.ProbeGap < minGap || s.ProbeGap > s.Duration):
		return fmt.Sprintf("gap %v of the pings is not within %v and the duration", s.ProbeGap, minGap)
	}
	return ""
}

// checkSocket is about how the sockets are made and used, and where.
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
	case (s.SendMethod != "" || s.ReceiveMethod != "") && s.Test != Stream && s.Test != Load:
		return fmt.Sprintf("%s has no choice of how to send and receive", s.Test)
	case s.Batch != "" && s.Test != UDP:
		return fmt.Sprintf("%s sends no batches of datagrams", s.Test)
	case s.DontFragment && s.Test != UDP:
		return fmt.Sprintf("%s has no choice about fragments", s.Test)
	case s.BusyPoll && s.Test != RR && s.Test != UDP:
		return fmt.Sprintf("%s does not busy-poll", s.Test)
	case len(s.Congestion) > 15:
		return fmt.Sprintf("congestion control %q is longer than the kernel's 15 letters", s.Congestion)
	case (s.Congestion != "" || s.MSSBytes != 0 || s.NoDelay != nil) && !s.overTCP():
		return fmt.Sprintf("%s does not run over TCP", s.Test)
	case s.WindowBytes < 0 || s.WindowBytes > maxWindowBytes:
		return fmt.Sprintf("a window of %d bytes is not within 0 to %d", s.WindowBytes, maxWindowBytes)
	case s.MSSBytes != 0 && (s.MSSBytes < minMSSBytes || s.MSSBytes > maxMSSBytes):
		return fmt.Sprintf("a segment size of %d bytes is not within %d to %d", s.MSSBytes, minMSSBytes, maxMSSBytes)
	case s.TOS < 0 || s.TOS > 255:
		return fmt.Sprintf("a type of service of %d is not within 0 to 255", s.TOS)
	case s.SourcePort != 0 && (s.Test == Ping || s.Test == CRR):
		return fmt.Sprintf("%s has no choice of ports", s.Test) // crr needs a new one for every connection
	case s.SourcePort != 0 &&
		(s.SourcePort < lowestSourcePort || s.SourcePort+max(s.Connections(), s.Sockets()) > 1<<16):
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

// Bulk tells the tests that push data one way or both.
func (s Spec) Bulk() bool { return s.Test == Stream || s.Test == UDP }

// overTCP tells the tests whose data go over TCP connections.
func (s Spec) overTCP() bool {
	return s.Test == Stream || s.Test == RR || s.Test == CRR || s.Test == Load
}

// Connections is the number of TCP data connections that a normalized Spec needs beside the control
// channel. Tests over other sockets need none, and crr opens its own. Up connections have the lower
// indexes.
func (s Spec) Connections() int {
	switch {
	case s.Test == Stream && s.Direction == Bidir:
		return 2 * s.Streams
	case s.Test == Stream || s.Test == RR:
		return s.Streams
	case s.Test == MTU:
		return 1 // its handshake tells the segment sizes
	}
	return 0
}

// Sockets is the number of UDP sockets that each side needs. Each carries one direction, as
// connections do, and up ones come first.
func (s Spec) Sockets() int {
	switch {
	case s.Test != UDP:
		return 0
	case s.Direction == Bidir:
		return 2 * s.Streams
	}
	return s.Streams
}

// NearSends tells whether connection index carries its bulk data from near to far. For rr it is the
// near side that asks.
func (s Spec) NearSends(index int) bool {
	return s.Direction == Up || s.Direction == Bidir && index < s.Streams
}

// SteadyBound is how long a search for the steady state may last; a short test does not wait longer
// than it measures.
func (s Spec) SteadyBound() time.Duration {
	return min(maxSteadyWait, max(s.Duration, time.Second))
}
