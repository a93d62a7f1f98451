package traffic

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// Ping is the round trip of single packets, by ICMP echo or by a UDP echo of our own.
const Ping Test = "ping"

// Bounds of the payload of a ping, in bytes.
const (
	minPingBytes = 24    // a token of 16 bytes and a sequence number of 8
	maxPingBytes = 65000 // under the 65507 of UDP over IPv4
	pingBytes    = 56    // the default, ping(8)'s own; also that of pings beside a test
)

type pingTest struct{}

func (pingTest) traits() traits { return traits{takes: gaps} }

func (pingTest) fill(s *Spec)        { fillPings(s) }
func (pingTest) check(s Spec) string { return checkPingTest(s) }

// fillPings sets the defaults of a Spec whose requests are pings.
func fillPings(s *Spec) {
	if s.RequestBytes == 0 {
		s.RequestBytes = pingBytes
	}
	if s.Gap == 0 {
		s.Gap = 10 * time.Millisecond
	}
	// The round trips that find out which end answers warm the path up; there is no ramp to wait
	// for.
	s.WarmUp = max(s.WarmUp, 0)
}

// checkPingTest is about the size and the gap of pings.
func checkPingTest(s Spec) string {
	if s.RequestBytes < minPingBytes || s.RequestBytes > maxPingBytes {
		return fmt.Sprintf("a ping of %d bytes is not within %d to %d", s.RequestBytes, minPingBytes, maxPingBytes)
	}
	if s.Gap < minGap || s.Gap > s.Duration {
		return fmt.Sprintf("gap %v is not within %v and the duration", s.Gap, minGap)
	}
	return ""
}

func (pingTest) near(ctx context.Context, n *nearEnd) (cast, error) {
	w, pinger, err := n.ping(ctx, n.spec.RequestBytes, n.spec.Gap)
	if err != nil {
		return cast{}, err
	}
	return cast{workers: []*engine.Worker{w}, scheduled: true, report: func(r *Result) error {
		r.Method = w.Method
		r.countPings(pinger.Sent(), pinger.Answered(), n.spec)
		r.warnOf(pinger.Troubles())
		return nil
	}}, nil
}

// countPings fills in what became of the pings of the window. A ping in flight at its end is not
// lost: the pinger waits for its answer. A window without a ping is no measurement.
func (r *Result) countPings(sent, answered int64, s Spec) {
	if sent == 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("no ping was sent in the window of %v: it is too short for "+
			"a ping every %v, or this host was too busy", s.Duration, s.Gap))
		return
	}
	loss := 1 - float64(min(answered, sent))/float64(sent)
	r.LossRatio = &loss
	r.PacketsPerSec = perSecond(sent, r.DurationSeconds)
}

// far opens nothing: the kernel answers ICMP echo, and the echo server answers pings over UDP where
// there is one.
func (pingTest) far(_ context.Context, f *farEnd) (cast, error) {
	if _, err := f.admitEchoes(); err != nil {
		return cast{}, err
	}
	return cast{}, f.accept()
}

func (pingTest) interval(i *Interval, _ Direction, own, _ part) { i.RTTSeconds = own.meanRTT() }

func (pingTest) result(_ *Result, o outcome) (packets uint64) { return o.near.messages() }
