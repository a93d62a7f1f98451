package dialect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/dialect/iperf2"
	"github.com/linerate/linerate/internal/dialect/iperf3"
	"github.com/linerate/linerate/internal/dialect/nuttcp"
	"github.com/linerate/linerate/internal/dialect/sockperf"
	"github.com/linerate/linerate/internal/dialect/stamp"
	"github.com/linerate/linerate/internal/dialect/ttcp"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// ClientOptions say what a result contains about this host.
type ClientOptions struct {
	Sample   func() (*host.Counters, error) // of this host; nil: no cost and no drops in the result
	HostName string                         // of this host; empty: left out
	// nuttcp only: first port of the data, which the client chooses; 0: the program's default
	DataPort int
}

// Run runs one test against the server of another program. scheme is the name of its dialect,
// target is HOST or HOST:PORT, and progress, which may be nil, receives the interim results. A test
// that the dialect cannot carry returns traffic.ErrBadSpec with the reason. The result lacks what
// the far end cannot report.
func Run(
	ctx context.Context, scheme, target string, spec traffic.Spec, o ClientOptions, progress func(traffic.Interval),
) (*traffic.Result, error) {
	d, ok := lookup(scheme)
	if !ok {
		return nil, fmt.Errorf("%w: no dialect %q; there are %s", traffic.ErrBadSpec, scheme,
			strings.Join(Names(), ", "))
	}
	if progress == nil {
		progress = func(traffic.Interval) {}
	}
	return d.run(ctx, target, spec, o, progress)
}

// runner runs a test in one dialect.
type runner func(ctx context.Context, target string, spec traffic.Spec, o ClientOptions,
	progress func(traffic.Interval)) (*traffic.Result, error)

// test is one open test of a dialect whose workers exchange data directly, without a protocol of
// phases.
type test interface {
	// Senders send until their phase is Stopped. Receivers receive until the far end has sent
	// everything.
	Senders() []*engine.Worker
	Receivers() []*engine.Worker
	// Datagrams returns the bodies of the senders of a UDP test, in their order, and Arrivals those
	// of its receivers.
	Datagrams() []*datagram.Sender
	Arrivals() []*datagram.Receiver
	// Done is closed once the amount of the test was sent; nil if a time ends the test.
	Done() <-chan struct{}
	// EndSending announces the end of the data, once the senders have returned.
	EndSending() error
	// Finish adds what the far end reports at the end, once all workers have returned.
	Finish(ctx context.Context, r *traffic.Result) error
	Close()
}

// means are the functions with which a test opens its connections. Each dialect declares an
// identical type.
type means struct {
	Out, In *engine.Phase
	Dial    func(ctx context.Context, index, port int) (*net.TCPConn, error)
	Adopt   func(conn *net.TCPConn, sends bool) (*engine.Conn, error)
	Socket  func(ctx context.Context, index, port int) (*datagram.Socket, error)
}

// runIperf3 runs a test against iperf3.
func runIperf3(ctx context.Context, target string, spec traffic.Spec, o ClientOptions,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	return iperf3.Run(ctx, target, spec, iperf3.ClientOptions{Sample: o.Sample, HostName: o.HostName}, progress)
}

// runIperf2 runs a test against iperf 2.
func runIperf2(ctx context.Context, target string, spec traffic.Spec, o ClientOptions,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	c, err := newConductor("iperf2", target, iperf2.DefaultPort, spec, o, progress)
	if err != nil {
		return nil, err
	}
	c.over = iperf2.Over
	return c.run(ctx, func(m means) (test, error) { return iperf2.Open(ctx, c.spec, c.port, iperf2.Means(m)) })
}

// runTTCP sends to a receiver without a protocol.
func runTTCP(ctx context.Context, target string, spec traffic.Spec, o ClientOptions,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	c, err := newConductor("ttcp", target, ttcp.DefaultPort, spec, o, progress)
	if err != nil {
		return nil, err
	}
	return c.run(ctx, func(m means) (test, error) { return ttcp.Open(ctx, c.spec, c.port, ttcp.Means(m)) })
}

// runNuttcp runs a test against nuttcp.
func runNuttcp(ctx context.Context, target string, spec traffic.Spec, o ClientOptions,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	c, err := newConductor("nuttcp", target, nuttcp.DefaultPort, spec, o, progress)
	if err != nil {
		return nil, err
	}
	c.over = nuttcp.Over
	data := o.DataPort
	if data == 0 {
		data = nuttcp.DefaultDataPort
	}
	control := net.JoinHostPort(c.host, strconv.Itoa(c.port))
	return c.run(ctx, func(m means) (test, error) { return nuttcp.Open(ctx, c.spec, control, data, nuttcp.Means(m)) })
}

// runSockperf runs a test against sockperf.
func runSockperf(ctx context.Context, target string, spec traffic.Spec, o ClientOptions,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	return sockperf.Run(ctx, target, spec, sockperf.ClientOptions{Sample: o.Sample, HostName: o.HostName}, progress)
}

// runSTAMP runs a test against a reflector.
func runSTAMP(ctx context.Context, target string, spec traffic.Spec, o ClientOptions,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	return stamp.Run(ctx, target, spec, stamp.ClientOptions{Sample: o.Sample, HostName: o.HostName}, progress)
}

// splitTarget reads HOST or HOST:PORT; an IPv6 address with a port is in brackets.
func splitTarget(target string, port int) (string, int, error) {
	h, p, err := net.SplitHostPort(target)
	if err != nil {
		// No port: a name, an IPv4 address, or a bare IPv6 address.
		h = strings.Trim(target, "[]")
		if h == "" || strings.Contains(h, ":") && !isAddress(h) {
			return "", 0, fmt.Errorf("target %q: not HOST or HOST:PORT", target)
		}
		return h, port, nil
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil || n == 0 || h == "" {
		return "", 0, fmt.Errorf("target %q: not HOST or HOST:PORT", target)
	}
	return h, int(n), nil
}

func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// connOptions returns the socket options of data connection index. Each connection gets its share
// of a rate.
func connOptions(spec traffic.Spec, index int) engine.ConnOptions {
	o := engine.ConnOptions{WindowBytes: spec.WindowBytes, MSSBytes: spec.MSSBytes, TOS: spec.TOS}
	if spec.NoDelay != nil {
		o.NoDelay = *spec.NoDelay
	}
	if spec.SourcePort > 0 {
		o.LocalPort = spec.SourcePort + index
	}
	o.From = near(spec)
	return o
}

// near returns the source address that a Spec names; the zero value: none.
func near(spec traffic.Spec) netip.Addr {
	a, _ := netip.ParseAddr(spec.SourceAddress) // Normalize refuses what is none
	return a
}

// dial opens a data connection over TCP.
func (c *conductor) dial(ctx context.Context, index, port int) (*net.TCPConn, error) {
	d := net.Dialer{Control: engine.DialControl(connOptions(c.spec, index)), Timeout: dialPatience}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(c.host, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", c.name, err)
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		_ = conn.Close() // unreachable: the network is tcp
		return nil, errors.New("connect: not a tcp connection")
	}
	c.note(tcp.LocalAddr(), tcp.RemoteAddr())
	return tcp, nil
}

// adopt wraps a connection for workers.
func (c *conductor) adopt(conn *net.TCPConn, sends bool) (*engine.Conn, error) {
	o := connOptions(c.spec, 0)
	if sends {
		o.Congestion = c.spec.Congestion
		o.PacingBytesPerSec = c.spec.RateBitsPerSec / 8 / float64(c.spec.Streams)
	}
	return engine.Adopt(conn, o)
}

// socket opens a UDP socket to the far end.
func (c *conductor) socket(ctx context.Context, index, port int) (*datagram.Socket, error) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", c.host)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", c.host, err)
	}
	o := datagram.SocketOptions{
		WindowBytes: c.spec.WindowBytes, TOS: c.spec.TOS, DontFragment: c.spec.DontFragment, BusyPoll: c.spec.BusyPoll,
		From: near(c.spec),
	}
	if c.spec.SourcePort > 0 {
		o.LocalPort = c.spec.SourcePort + index
	}
	var failed error
	for _, a := range addrs {
		s, err := datagram.Dial(netip.AddrPortFrom(a.Unmap(), uint16(port)), o)
		if err == nil {
			c.local, c.remote = s.LocalAddr().Addr().Unmap(), s.RemoteAddr().Addr().Unmap()
			return s, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}
