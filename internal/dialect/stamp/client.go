package stamp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/engine"
)

const (
	// greetTries and greetWait bound the search for a reflector before the test, and the exchange
	// of the marks around the measured part.
	greetTries = 3
	greetWait  = 500 * time.Millisecond
	// stragglers is how long the sender waits for answers after the last packet.
	stragglers = time.Second
	// lookEvery bounds the sleep between checks of the context.
	lookEvery = 100 * time.Millisecond
)

// ClientOptions are what a sender needs besides its Spec.
type ClientOptions struct {
	Sample   func() (*host.Counters, error) // counters of this host, taken around the measured window; nil: none
	HostName string                         // of this host
	Key      []byte                         // of the HMAC, shared with the reflector; empty: unauthenticated
	PTP      bool                           // write timestamps in PTP's format instead of NTP's
	SSID     uint16                         // session identifier; 0: none

	// tests only
	query     func() clockState // nil: the kernel
	greetWait time.Duration     // 0: greetWait
}

// Report is a result with the values that only STAMP provides.
type Report struct {
	*traffic.Result
	Stateful bool // the reflector counts: Up.Lost and Down.Lost may be known
	// routers that the packets passed on their way up; nil: unknown
	Hops     *int
	Up, Down OneWay // of the measured part
}

// OneWay is one direction.
type OneWay struct {
	Lost  *uint64          // packets; nil: unknown
	Delay *stats.Latencies // nil: one of the clocks is not known to be right
	// seconds by which every value of Delay may be wrong, as both ends report
	DelayError     float64
	DelayVariation *stats.Latencies // delay minus the smallest one of the test (RFC 5481 §4.2)
	// packets that arrived after one that was sent later (RFC 4737 §3); nil: the reflector does not
	// count
	Reordered     *uint64
	JitterSeconds float64 // RFC 3550 §6.4.1, at the end
}

// Run measures with the reflector at HOST[:PORT] and returns what fits a [traffic.Result]; see
// [Measure].
func Run(ctx context.Context, target string, spec traffic.Spec, o ClientOptions,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	r, err := Measure(ctx, target, spec, o, progress)
	if err != nil {
		return nil, err
	}
	return r.result(), nil
}

// Measure sends one packet per Spec.Gap to the reflector at HOST[:PORT], for test ping.
// Spec.RequestBytes is the length of a packet, at least 44 bytes (authenticated 112); the rest is
// extra padding. Other requests of a Spec return [traffic.ErrBadSpec]. progress, when not nil,
// receives every interval from the goroutine of Measure. [traffic.ErrNoAnswer] means that no
// reflector answers.
//
// RTT of the result is the round trip without the time in the reflector. UDP has the loss; its Up
// and Down exist if the reflector counts, and are then exact.
func Measure(ctx context.Context, target string, spec traffic.Spec, o ClientOptions,
	progress func(traffic.Interval)) (*Report, error) {
	spec, err := fit(spec, len(o.Key) > 0)
	if err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(traffic.Interval) {}
	}
	r, err := measure(ctx, target, spec, o, progress)
	if err != nil {
		return nil, fmt.Errorf("stamp test with %s: %w", target, err)
	}
	return r, nil
}

// fit normalizes a Spec and returns an error for what STAMP cannot carry.
func fit(spec traffic.Spec, authenticated bool) (traffic.Spec, error) {
	spec, err := spec.Normalize()
	if err != nil {
		return spec, err
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", traffic.ErrBadSpec, fmt.Sprintf(format, args...))
	}
	switch {
	case spec.Test != traffic.Ping:
		return spec, bad("stamp carries the test ping, not %s", spec.Test)
	case spec.RequestBytes > maxPacketBytes:
		return spec, bad("a packet of %d bytes is larger than the %d of UDP", spec.RequestBytes, maxPacketBytes)
	case spec.SourcePort != 0 || len(spec.FarCPUs) > 0 || len(spec.NearCPUs) > 0 || spec.BusyPoll:
		return spec, bad("the stamp sender leaves port and processors to the host")
	}
	least := baseBytes
	if authenticated {
		least = authBytes
	}
	// A TLV needs a header; a remainder too short for one would be malformed.
	if spec.RequestBytes < least+tlvHeaderBytes {
		spec.RequestBytes = least
	}
	return spec, nil
}

// measure runs a test whose Spec fits.
func measure(ctx context.Context, target string, spec traffic.Spec, o ClientOptions,
	progress func(traffic.Interval)) (*Report, error) {
	to, err := resolve(ctx, target)
	if err != nil {
		return nil, err
	}
	sock, err := dial(to, spec.TOS)
	if err != nil {
		return nil, err
	}
	defer sock.close()
	s := newSender(sock, spec, o)
	r := &Report{Result: &traffic.Result{
		Test: spec.Test, Direction: spec.Direction, Streams: 1, Method: s.method(),
		WarmUpSeconds: spec.WarmUp.Seconds(),
		RemoteAddress: to.Addr().WithZone("").String(), StartTime: time.Now(), Intervals: []traffic.Interval{},
		Ends: traffic.Ends{Local: traffic.End{Host: o.HostName, Drops: []drops.Drop{}},
			Remote: traffic.End{Drops: []drops.Drop{}}},
	}}
	s.emit = func(i traffic.Interval) {
		r.Intervals = append(r.Intervals, i)
		progress(i)
	}
	var greeting mark
	if greeting, err = s.mark(ctx); err != nil {
		return nil, err
	}
	if !greeting.answered {
		return nil, s.noAnswer()
	}
	if err := s.span(ctx, spec.WarmUp, false); err != nil {
		return nil, err
	}
	// This number is never sent: see the package comment.
	s.sequence++
	begin, err := s.mark(ctx)
	if err != nil {
		return nil, err
	}
	s.upDuplicates = 0
	before := r.Result.HostCounters(o.Sample)
	if err := s.span(ctx, spec.Duration, true); err != nil {
		return nil, err
	}
	after := r.Result.HostCounters(o.Sample)
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	end, err := s.mark(ctx)
	if err != nil {
		return nil, err
	}
	s.fill(r, greeting, begin, end)
	r.Ends.Local.Spend(before, after, r.DurationSeconds)
	return r, nil
}

// method describes the method for the result.
func (s *sender) method() string {
	text := "stamp, unauthenticated"
	if s.auth != nil {
		text = "stamp, authenticated"
	}
	if s.format == ptpFormat {
		text += ", ptp timestamps"
	}
	return text
}

// noAnswer returns the network's error, or explains the silence.
func (s *sender) noAnswer() error {
	switch {
	case s.network != nil:
		return fmt.Errorf("%w: %w", traffic.ErrNoAnswer, s.network)
	case s.foreign > 0 && s.auth != nil:
		return fmt.Errorf("%w: %d packets came back, none with the HMAC of this key", traffic.ErrNoAnswer, s.foreign)
	case s.foreign > 0:
		return fmt.Errorf("%w: %d packets came back that are not STAMP", traffic.ErrNoAnswer, s.foreign)
	}
	return fmt.Errorf("%w: %d packets were sent; reflectors do not answer unknown senders and wrong keys",
		traffic.ErrNoAnswer, greetTries)
}

// resolve resolves HOST[:PORT].
func resolve(ctx context.Context, target string) (netip.AddrPort, error) {
	name, port, err := net.SplitHostPort(target)
	if err != nil {
		name, port = target, strconv.Itoa(DefaultPort)
		// An IPv6 address may have brackets or not.
		if n := len(name); n > 2 && name[0] == '[' && name[n-1] == ']' {
			name = name[1 : n-1]
		}
	}
	n, err := net.DefaultResolver.LookupPort(ctx, "udp", port)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("resolve %s: %w", target, err)
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("resolve %s: %w", target, err)
	}
	if len(ips) == 0 {
		return netip.AddrPort{}, fmt.Errorf("resolve %s: no address", target)
	}
	return netip.AddrPortFrom(ips[0].Unmap(), uint16(n)), nil
}

// newSender allocates everything that the loop needs, so that the loop allocates nothing.
func newSender(sock *socket, spec traffic.Spec, o ClientOptions) *sender {
	// One sample per packet, or every n-th of very many packets.
	expected := int64(spec.Duration/spec.Gap) + 2
	s := &sender{
		socket: sock, spec: spec, auth: newAuthenticator(o.Key), format: format(o.PTP), ssid: o.SSID,
		clock:  clock{query: queryClock},
		packet: make([]byte, spec.RequestBytes), in: make([]byte, 1<<16), waiting: make([]sending, underWay),
		greetWait: cmp.Or(o.greetWait, greetWait),
		every:     (expected + maxSamples - 1) / maxSamples, rtt: newHistogram(), base: time.Now(),
	}
	if o.query != nil {
		s.clock.query = o.query
	}
	s.up.samples = make([]int64, 0, expected/s.every+1)
	s.down.samples = make([]int64, 0, expected/s.every+1)
	putPadding(s.packet[s.auth.layout().bytes:],
		engine.Pattern(max(0, spec.RequestBytes-s.auth.layout().bytes-tlvHeaderBytes)))
	return s
}

// quiet reports whether a wait ended without a packet.
func quiet(err error) bool { return errors.Is(err, sys.ErrTimeout) }
