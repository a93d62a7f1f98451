package sockperf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

const (
	// firstTries and firstWaitUDP bound the search for a UDP server before the test.
	firstTries   = 3
	firstWaitUDP = 500 * time.Millisecond
	// firstWaitTCP is how long a connection and its first round trip may take.
	firstWaitTCP = 5 * time.Second
	// ownWarmUp is the warm-up of a test for which the caller requests an automatic one: as long as
	// sockperf's. Ping-pong has no ramp, only cold caches.
	ownWarmUp = 400 * time.Millisecond
)

// ClientOptions say what a result contains about this host.
type ClientOptions struct {
	Sample   func() (*host.Counters, error) // counters of this host, taken around the measured window; nil: none
	HostName string                         // of this host

	greetWait time.Duration // tests only; 0: firstWaitUDP
}

// Run runs a test against a sockperf server at HOST[:PORT]. Test rr keeps one message in flight on
// each of Spec.Streams TCP connections. Test ping sends one over UDP per Spec.Gap; messages without
// an answer are lost. A message is RequestBytes long, at least [HeaderBytes], and so is its answer.
// Other requests of a Spec return [traffic.ErrBadSpec]. progress, when not nil, receives every
// interval from the goroutine of Run. [traffic.ErrNoAnswer] means that no server answers.
func Run(ctx context.Context, target string, spec traffic.Spec, o ClientOptions,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	spec, warnings, err := fit(spec)
	if err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(traffic.Interval) {}
	}
	result, err := run(ctx, target, spec, o, progress)
	if err != nil {
		return nil, fmt.Errorf("sockperf %s test with %s: %w", spec.Test, target, err)
	}
	result.Warnings = append(warnings, result.Warnings...)
	return result, nil
}

// fit normalizes a Spec and returns an error for what sockperf cannot carry.
func fit(spec traffic.Spec) (traffic.Spec, []string, error) {
	spec, err := spec.Normalize()
	if err != nil {
		return spec, nil, err
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", traffic.ErrBadSpec, fmt.Sprintf(format, args...))
	}
	switch {
	case spec.Test != traffic.RR && spec.Test != traffic.Ping:
		return spec, nil, bad("sockperf carries the tests rr and ping, not %s", spec.Test)
	case spec.ProbeGap != 0:
		return spec, nil, bad("sockperf has no pings beside the test")
	case spec.BusyPoll:
		return spec, nil, bad("the sockperf client does not spin")
	case len(spec.FarCPUs) > 0:
		return spec, nil, bad("the CPUs of a sockperf server cannot be chosen")
	case spec.NoDelay != nil && !*spec.NoDelay:
		return spec, nil, bad("ping-pong with Nagle's algorithm would measure the delay of acknowledgements")
	case spec.RequestBytes > MaxMessageBytes:
		return spec, nil, bad("a message of %d bytes is larger than the %d of sockperf", spec.RequestBytes,
			MaxMessageBytes)
	}
	var warnings []string
	if asked := max(spec.RequestBytes, spec.ResponseBytes); asked < HeaderBytes {
		warnings = append(warnings, fmt.Sprintf("messages have %d bytes instead of %d, the smallest size of sockperf",
			HeaderBytes, asked))
		spec.RequestBytes, spec.ResponseBytes = HeaderBytes, HeaderBytes
	}
	if spec.Test == traffic.RR && spec.RequestBytes != spec.ResponseBytes {
		return spec, nil, bad("sockperf answers %d bytes with as many, not with %d", spec.RequestBytes,
			spec.ResponseBytes)
	}
	if spec.WarmUp < 0 {
		spec.WarmUp = ownWarmUp
	}
	return spec, warnings, nil
}

// run runs a test whose Spec fits.
func run(ctx context.Context, target string, spec traffic.Spec, o ClientOptions,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	m := &meter{spec: spec, sample: o.Sample, phase: &engine.Phase{}, progress: progress,
		greetWait: cmp.Or(o.greetWait, firstWaitUDP)}
	r := &traffic.Result{
		Test: spec.Test, Direction: spec.Direction, Streams: spec.Streams, WarmUpSeconds: spec.WarmUp.Seconds(),
		Intervals: []traffic.Interval{},
		Ends: traffic.Ends{Local: traffic.End{Host: o.HostName, Drops: []drops.Drop{}},
			Remote: traffic.End{Drops: []drops.Drop{}}},
	}
	defer func() {
		for _, w := range m.workers {
			w.Close()
		}
	}()
	if spec.Test == traffic.Ping {
		return r, m.pings(ctx, target, r)
	}
	return r, m.pingPong(ctx, target, r)
}

// pingPong runs test rr.
func (m *meter) pingPong(ctx context.Context, target string, r *traffic.Result) error {
	r.Method = "sockperf, " + engine.Name
	var ends []*endpoint
	for i := range m.spec.Streams {
		end, local, remote, err := m.dial(ctx, target, i)
		if err != nil {
			return err
		}
		ends = append(ends, end)
		body := &asker{end: end, message: newMessage(m.spec.RequestBytes), answer: make([]byte, m.spec.RequestBytes)}
		m.workers = append(m.workers, engine.New(engine.Requester, m.phase, body))
		m.adopt(i)
		if err := body.greet(ctx, m.workers[i]); err != nil {
			return err
		}
		r.LocalAddress, r.RemoteAddress = local.String(), remote.String()
	}
	before := make([]sys.TCPInfo, len(ends))
	m.opened = func() {
		for i, end := range ends {
			before[i], _ = end.info() // missing values are left out of the result
		}
	}
	m.shut = func() { describe(r, ends, before) }
	if err := m.run(ctx, r); err != nil {
		return err
	}
	r.TransactionsPerSec = perSecond(m.transactions, r.DurationSeconds)
	return nil
}

// describe records the TCP_INFO of the connections.
func describe(r *traffic.Result, ends []*endpoint, before []sys.TCPInfo) {
	var retransmits uint64
	for i, end := range ends {
		info, err := end.info()
		// Not supported on this system: the value is left out instead of 0.
		if err != nil || before[i].Length == 0 {
			return
		}
		// The counter wraps at 32 bits, so the subtraction must too.
		retransmits += uint64(info.TotalRetrans - before[i].TotalRetrans)
		r.MSSBytes = max(r.MSSBytes, int(info.SndMSSBytes))
		if r.MTUBytes == 0 || int(info.PMTUBytes) < r.MTUBytes {
			r.MTUBytes = int(info.PMTUBytes)
		}
		r.CongestionControl = end.congestion()
	}
	r.RetransmitsTotal = &retransmits
}

// dial opens connection index.
func (m *meter) dial(ctx context.Context, target string, index int) (end *endpoint, local, remote netip.Addr,
	err error) {
	o := engine.ConnOptions{
		NoDelay: true, Congestion: m.spec.Congestion, WindowBytes: m.spec.WindowBytes, MSSBytes: m.spec.MSSBytes,
		TOS: m.spec.TOS,
	}
	if m.spec.SourcePort != 0 {
		o.LocalPort = m.spec.SourcePort + index
	}
	// No Nagle algorithm, like the program: a message that waits for the acknowledgement of the
	// previous one would measure just that.
	d := net.Dialer{Timeout: firstWaitTCP, Control: engine.DialControl(o)}
	conn, err := d.DialContext(ctx, "tcp", address(target))
	if err != nil {
		return nil, local, remote, fmt.Errorf("connect: %w", err)
	}
	tcp := conn.(*net.TCPConn) // what the dialer makes for "tcp"
	local, remote = ipOf(tcp.LocalAddr().(*net.TCPAddr).AddrPort()), ipOf(tcp.RemoteAddr().(*net.TCPAddr).AddrPort())
	end, err = adoptTCP(tcp, o)
	return end, local, remote, err
}

// pings runs test ping.
func (m *meter) pings(ctx context.Context, target string, r *traffic.Result) error {
	r.Method = "sockperf, udp"
	to, err := resolve(ctx, address(target))
	if err != nil {
		return err
	}
	// Connected, so that the kernel reports a closed port, and drops datagrams of other senders.
	end, err := openUDP(to, m.spec.TOS)
	if err != nil {
		return err
	}
	body := newPinger(end, m.spec.RequestBytes, m.spec.Gap)
	m.workers = append(m.workers, engine.New(engine.Pinger, m.phase, body))
	m.adopt(0)
	if err := body.greet(ctx, m.workers[0], m.greetWait); err != nil {
		return err
	}
	r.RemoteAddress = ipOf(to).String()
	if err := m.run(ctx, r); err != nil {
		return err
	}
	if body.sent > 0 {
		loss := 1 - float64(min(body.answered, body.sent))/float64(body.sent)
		r.LossRatio = &loss
		r.PacketsPerSec = perSecond(body.sent, r.DurationSeconds)
	}
	return nil
}

// address adds the default port to a target without one.
func address(target string) string {
	if _, _, err := net.SplitHostPort(target); err == nil {
		return target
	}
	// An IPv6 address may have brackets or not.
	if n := len(target); n > 2 && target[0] == '[' && target[n-1] == ']' {
		target = target[1 : n-1]
	}
	return net.JoinHostPort(target, strconv.Itoa(DefaultPort))
}

// resolve resolves HOST:PORT, in the address family that the system prefers.
func resolve(ctx context.Context, hostPort string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("resolve %s: %w", hostPort, err)
	}
	n, err := net.DefaultResolver.LookupPort(ctx, "udp", port)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("resolve %s: %w", hostPort, err)
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("resolve %s: %w", hostPort, err)
	}
	if len(ips) == 0 {
		return netip.AddrPort{}, fmt.Errorf("resolve %s: no address", hostPort)
	}
	return netip.AddrPortFrom(ips[0].Unmap(), uint16(n)), nil
}

func ipOf(a netip.AddrPort) netip.Addr { return a.Addr().Unmap().WithZone("") }

// newMessage returns a message that requests an answer; only its sequence number changes.
func newMessage(bytes int) []byte {
	p := engine.Pattern(bytes)
	// Never the warm-up flag: a server does not answer such messages, and this client measures its
	// warm-up by its own clock.
	header{flags: fromClient | wantsPong, length: uint32(bytes)}.put(p)
	return p
}

// foreign names the protocol of a server that is not sockperf.
func foreign(p []byte) error {
	guess := wire.Dialect(p)
	return fmt.Errorf("%w: the far end speaks %s, not sockperf", traffic.ErrProtocol, guess)
}

// noAnswer returns the error of a failed search for a server; cause is the network's error, if any.
func noAnswer(cause error, hint string) error {
	cause = cmp.Or(cause, errors.New(hint))
	return fmt.Errorf("%w: %w", traffic.ErrNoAnswer, cause)
}
