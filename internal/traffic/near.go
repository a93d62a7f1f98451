package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

// Link is what the near side of a test has: a channel to the far side and a way to open data
// connections to it.
type Link struct {
	Control Control
	// Dial opens a TCP data connection; it is called from several goroutines, and only for tests
	// that need some.
	Dial func(ctx context.Context, index int, o wire.DataOptions) (*net.TCPConn, error)
	// UDP host:port of the far EchoServer; empty: the port that the far side names, at PeerIP
	Echo     string
	PeerIP   string                         // of the far host; ping sends ICMP echo to it
	Sample   func() (*host.Counters, error) // counters of this host; nil: none
	HostName string                         // of this host
	// Curtail, when it is closed, ends the test early: within the measured window with the result
	// of what was measured until then and a warning that says so, before it with context.Canceled.
	// Nil: nothing does.
	Curtail <-chan struct{}

	timing *timing // tests only; nil: that of every real test
}

// Run drives one test and returns its result. progress, when not nil, is called with every finished
// interval, in order, from the goroutine of Run. Cancelling ctx stops both sides at once; the
// channel stays usable. Errors wrap one of this package's or the context's cause.
func Run(ctx context.Context, link Link, spec Spec, progress func(Interval)) (*Result, error) {
	spec, err := spec.Normalize()
	if err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(Interval) {}
	}
	t := patience
	if link.timing != nil {
		t = *link.timing
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if reason := engine.Unusable(spec.NearCPUs); reason != "" {
		return nil, fmt.Errorf("%w: %s", ErrBadSpec, reason)
	}
	ctx, begin, cancel := Heed(ctx, link.Curtail)
	defer cancel()
	s := newSession(ctx, link.Control, t, longest(spec, t), msgResult, msgError)
	defer s.close()
	result, err := drive(ctx, s, link, spec, begin, progress)
	if err != nil {
		return nil, fmt.Errorf("%s test: %w", spec.Test, err)
	}
	return result, nil
}

// drive is Run between the opening of the session and its end; it calls begin when the workers
// start. Whatever happens, test.stop is the last message it posts.
func drive(ctx context.Context, s *session, link Link, spec Spec, begin func(),
	progress func(Interval)) (*Result, error) {
	stopOnce := sync.OnceFunc(func() { s.post(msgStop, nil) })
	over := false // the far side has sent its last message
	defer func() {
		stopOnce()
		if !over {
			s.farewell(msgResult, msgError)
		}
	}()
	remembered := forget(spec, link.PeerIP)
	s.post(MsgStart, StartBody{Spec: spec})
	var accepted acceptBody
	if err := s.await(ctx, s.timing.Setup, msgAccept, &accepted); err != nil {
		over = errors.Is(err, ErrRefused) || errors.Is(err, ErrFar)
		return nil, err
	}
	p := &engine.Phase{}
	var ends endpoints
	side, err := link.connect(ctx, s, spec, p, accepted, &ends)
	if err != nil {
		over = errors.Is(err, ErrRefused) || errors.Is(err, ErrFar)
		return nil, err
	}
	if err := s.await(ctx, s.timing.Setup, msgReady, nil); err != nil {
		closeWorkers(side.workers)
		over = errors.Is(err, ErrRefused) || errors.Is(err, ErrFar)
		return nil, err
	}
	c := newConductor(spec, true, s, link.Sample, side, p)
	c.goodbye, c.curtail = stopOnce, link.Curtail
	line := timeline{spec: spec, emit: progress}
	c.onPart, c.farParts = line.addOwn, line.addFar
	started := time.Now()
	// The far side starts half a round trip later. That is inside the warm-up, or, without one, a
	// start that the result shows as it was.
	s.post(msgGo, nil)
	begin()
	if err := c.run(ctx); err != nil {
		over = errors.Is(err, ErrFar)
		return nil, err
	}
	if side.search != nil && side.search.Err != nil {
		return nil, side.search.Err
	}
	stopOnce()
	var far resultBody
	if err := s.await(ctx, s.timing.Setup+Silence(spec), msgResult, &far); err != nil {
		over = errors.Is(err, ErrFar)
		return nil, err
	}
	over = true
	if err := far.check(); err != nil {
		return nil, err
	}
	line.finish(far.Parts)
	r := assemble(c, link, methodOf(spec, side.workers), started, far, line.intervals)
	r.LocalAddress, r.RemoteAddress = ends.local, ends.remote
	r.Warnings = joined(r.Warnings, remembered)
	if side.search != nil {
		r.searched(side.search.Found)
	}
	return r, nil
}

// endpoints are the IP addresses of the data connections, which on hosts with several say which
// interface carried them.
type endpoints struct {
	once          sync.Once
	local, remote string
}

// note remembers the addresses of the first connection.
func (e *endpoints) note(local, remote net.Addr) {
	e.once.Do(func() { e.local, e.remote = ipOf(local), ipOf(remote) })
}

func ipOf(a net.Addr) string {
	if ap, ok := a.(interface{ AddrPort() netip.AddrPort }); ok {
		return ap.AddrPort().Addr().Unmap().WithZone("").String()
	}
	return ""
}

// cast are the workers of one side of a test and what the conductor needs to know of them.
type cast struct {
	workers []*engine.Worker
	pinger  *echo.Pinger       // body of the last worker, of a test with pings; nil: there are none
	udp     *datagram.Exchange // of a udp test; nil: it is none
	pathMTU int                // bytes, that the kernel believes in, of a udp test; 0: not known
	search  *echo.Search       // of a mtu test; nil: it is none
}

// connect opens what the near side of a test needs.
func (l Link) connect(ctx context.Context, s *session, spec Spec, p *engine.Phase, accepted acceptBody,
	ends *endpoints) (side cast, err error) {
	asked := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, s.timing.Setup,
		fmt.Errorf("open data connections: %w: nothing within %v", ErrPeerGone, s.timing.Setup))
	defer cancel()
	defer func() {
		if err != nil && asked.Err() == nil {
			// what was cancelled because the far side had gone or given up tells only that it was
			// cancelled
			err = s.insteadOf(err)
		}
	}()
	// The far side may give up meanwhile, and then there is nothing to open any more.
	defer context.AfterFunc(s.spoken, cancel)()
	switch spec.Test {
	case Ping:
	case UDP:
		side, err = l.openDatagrams(ctx, s, spec, p, accepted, ends)
	case CRR:
		side.workers, err = l.newConnectors(spec, p, accepted, ends)
	case MTU:
		side, err = l.openSearch(ctx, spec, p, accepted, ends)
	default:
		side.workers, err = l.openConnections(ctx, spec, p, ends)
	}
	if err != nil || spec.Test != Ping && spec.ProbeGap == 0 {
		return side, err
	}
	w, pinger, err := l.newPinger(ctx, spec, p, accepted)
	if err != nil {
		closeWorkers(side.workers)
		return cast{}, err
	}
	side.workers, side.pinger = append(side.workers, w), pinger
	return side, nil
}

// openConnections opens the TCP data connections.
func (l Link) openConnections(ctx context.Context, spec Spec, p *engine.Phase,
	ends *endpoints) ([]*engine.Worker, error) {
	n := spec.Connections()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// All at once: one after the other would cost a round trip each, thirteen seconds for 128 of
	// them at 100 ms.
	workers, errs := make([]*engine.Worker, n), make([]error, n)
	quota := quotaOf(spec)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			conn, err := l.Dial(ctx, i, dataOptions(spec, i))
			if err == nil {
				ends.note(conn.LocalAddr(), conn.RemoteAddr())
				workers[i], err = newWorker(spec, p, conn, true, i, quota)
			}
			if err != nil {
				errs[i] = fmt.Errorf("open data connection %d: %w", i, err)
				cancel() // one that is missing makes the others useless
			}
		})
	}
	wg.Wait()
	if made := present(workers); len(made) < n {
		closeWorkers(made)
		return nil, firstError(errs)
	}
	return workers, nil
}

// openDatagrams opens the sockets of a udp test.
func (l Link) openDatagrams(ctx context.Context, s *session, spec Spec, p *engine.Phase, accepted acceptBody,
	ends *endpoints) (cast, error) {
	to, ok := l.echoAddress(ctx, accepted)
	if !ok || len(accepted.EchoToken) != echo.TokenBytes {
		return cast{}, fmt.Errorf("open streams over udp: %w: the far end named no address", ErrProtocol)
	}
	sockets, err := l.sayHello(ctx, spec, to, echo.Token(accepted.EchoToken))
	if err != nil {
		return cast{}, err
	}
	ends.note(net.UDPAddrFromAddrPort(sockets[0].LocalAddr()), net.UDPAddrFromAddrPort(sockets[0].RemoteAddr()))
	workers, ports, err := newDatagramWorkers(spec, p, sockets, true)
	if err != nil {
		closeSockets(sockets)
		return cast{}, err
	}
	return cast{workers: workers, udp: datagram.NewExchange(workers, ports), pathMTU: sockets[0].PathMTU()}, nil
}

// newConnectors makes the workers of a crr test.
func (l Link) newConnectors(spec Spec, p *engine.Phase, accepted acceptBody,
	ends *endpoints) ([]*engine.Worker, error) {
	ip, err := netip.ParseAddr(l.PeerIP)
	if err != nil {
		return nil, fmt.Errorf("connect to the far end: its address is not known: %w", err)
	}
	if len(accepted.AcceptPorts) != spec.Streams {
		return nil, fmt.Errorf("%w: %d ports for %d streams", ErrProtocol, len(accepted.AcceptPorts), spec.Streams)
	}
	ends.remote = ip.String()
	workers := make([]*engine.Worker, 0, spec.Streams)
	for _, port := range accepted.AcceptPorts {
		w, err := engine.NewConnector(p, engine.ConnectOptions{
			To: netip.AddrPortFrom(ip, port), Prefix: accepted.AcceptToken,
			RequestBytes: spec.RequestBytes, ResponseBytes: spec.ResponseBytes, Conn: connOptions(spec, true),
		})
		if err != nil {
			closeWorkers(workers)
			return nil, err
		}
		workers = append(workers, w)
	}
	return workers, nil
}

// newPinger finds out who answers: the far kernel over ICMP if the network lets it, else the far
// linerate over UDP.
func (l Link) newPinger(ctx context.Context, spec Spec, p *engine.Phase, accepted acceptBody) (*engine.Worker,
	*echo.Pinger, error) {
	o := echo.PingOptions{Bytes: spec.RequestBytes, Gap: spec.Gap}
	if spec.Test != Ping {
		o.Bytes, o.Gap = probeBytes, spec.ProbeGap
	}
	if spec.Test == Stream && spec.RequestBytes != 0 {
		o.Bytes = spec.RequestBytes // a phase of a load test, whose pings are all of one size
	}
	if ip, err := netip.ParseAddr(l.PeerIP); err == nil {
		o.IP = ip
	}
	if to, ok := l.echoAddress(ctx, accepted); ok && len(accepted.EchoToken) == echo.TokenBytes {
		o.UDP, o.Token = to, echo.Token(accepted.EchoToken)
	}
	return echo.NewPinger(ctx, p, o)
}

// probeBytes is the size of the pings beside a test, ping(8)'s own.
const probeBytes = 56

// echoAddress is where the far echo.Server listens: where the caller says, else at the port that
// the far side named.
func (l Link) echoAddress(ctx context.Context, accepted acceptBody) (netip.AddrPort, bool) {
	target := l.Echo
	if target == "" {
		target = net.JoinHostPort(l.PeerIP, strconv.Itoa(accepted.EchoPort))
	}
	if a, err := netip.ParseAddrPort(target); err == nil {
		return a, a.Port() != 0
	}
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return netip.AddrPort{}, false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return netip.AddrPort{}, false
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(ips) == 0 {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(ips[0].Unmap(), uint16(n)), true
}

// firstError prefers the error that made the others give up to their "context canceled".
func firstError(errs []error) error {
	var first error
	for _, err := range errs {
		if err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	return first
}

// newWorker makes the worker of one side for connection index, which it takes over. The senders of
// one side share the quota; nil: no amount was asked for.
func newWorker(spec Spec, p *engine.Phase, conn *net.TCPConn, near bool, index int,
	quota *engine.Quota) (*engine.Worker, error) {
	role := roleOf(spec, near, index)
	c, err := engine.Adopt(conn, connOptions(spec, role != engine.Receiver))
	if err != nil {
		return nil, err
	}
	if spec.Test == MTU {
		return engine.NewHolder(role, p, c), nil
	}
	var w *engine.Worker
	transaction := engine.TransactionOptions{
		RequestBytes: spec.RequestBytes, ResponseBytes: spec.ResponseBytes, BusyPoll: spec.BusyPoll, Pause: spec.Gap,
	}
	stream := engine.StreamOptions{Send: spec.SendMethod, Receive: spec.ReceiveMethod, Limit: quota}
	switch role {
	case engine.Requester:
		w, err = engine.NewRequester(p, c, transaction)
	case engine.Responder:
		w, err = engine.NewResponder(p, c, transaction)
	case engine.Sender:
		w, err = engine.NewStreamSender(p, c, stream)
	default:
		w, err = engine.NewStreamReceiver(p, c, stream)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return w, nil
}

// methodOf names how a test was run, for its result.
func methodOf(spec Spec, workers []*engine.Worker) string {
	switch {
	case spec.Test == UDP:
		return "udp, " + workers[0].Method
	case spec.Test == Ping:
		return workers[0].Method
	case spec.Test == RR && spec.BusyPoll:
		return strings.Replace(engine.Name, "blocking", workers[0].Method, 1)
	}
	return engine.Name
}

func closeWorkers(workers []*engine.Worker) {
	for _, w := range workers {
		w.Close()
	}
}
