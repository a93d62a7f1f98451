package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

// Link is what the near end of a test has: a channel to the far end and a way to open data
// connections to it.
type Link struct {
	Control Control
	// Dial opens a TCP data connection. Run calls it from several goroutines, and only for tests
	// that need data connections.
	Dial func(ctx context.Context, index int, o wire.DataOptions) (*net.TCPConn, error)
	// Echo is the UDP host:port of the far echo server; empty: the port that the far end names, at
	// PeerIP.
	Echo     string
	PeerIP   string                         // of the far host; ping sends ICMP echo to it
	Sample   func() (*host.Counters, error) // counters of this host; nil: none
	HostName string                         // of this host
	// Curtail, when it is closed, ends the test early. Within the measured window the result covers
	// what was measured until then, with a warning; before it the test ends with context.Canceled.
	// Nil: nothing ends it early.
	Curtail <-chan struct{}

	timing *timing // tests only; nil: that of every real test
}

// Run drives one test and returns its result. It calls progress, if that is not nil, with every
// finished interval, in order and from its own goroutine. Cancelling ctx stops both ends at once;
// the channel stays usable. Errors wrap one of this package's or the context's cause.
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
	n := &nearEnd{Link: link, session: s, spec: spec, phase: &engine.Phase{}}
	result, err := n.drive(ctx, begin, progress)
	if err != nil {
		return nil, fmt.Errorf("%s test: %w", spec.Test, err)
	}
	return result, nil
}

// nearEnd is the near end of one test.
type nearEnd struct {
	Link
	session   *session
	spec      Spec
	phase     *engine.Phase
	accepted  acceptBody // what the far end has named
	addresses endpoints
}

// drive is Run between the opening of the session and its end; it calls begin when the workers
// start. However it returns, test.stop is the last message it posts.
func (n *nearEnd) drive(ctx context.Context, begin func(), progress func(Interval)) (result *Result, err error) {
	s := n.session
	stopOnce := sync.OnceFunc(func() { s.post(msgStop, nil) })
	finished := false // the far end has sent its last message
	defer func() {
		stopOnce()
		if !finished && !errors.Is(err, ErrRefused) && !errors.Is(err, ErrFar) {
			s.farewell()
		}
	}()
	remembered := forget(n.spec, n.PeerIP)
	s.post(MsgStart, StartBody{Spec: n.spec, FirstNumbers: true})
	if err := s.await(ctx, s.timing.Setup, msgAccept, &n.accepted); err != nil {
		return nil, err
	}
	side, err := n.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.await(ctx, s.timing.Setup, msgReady, nil); err != nil {
		closeWorkers(side.workers)
		return nil, err
	}
	c := newNearConductor(n.spec, s, n.phase, side)
	c.sample, c.goodbye, c.interrupt = n.Sample, stopOnce, n.Curtail
	c.warnings = remembered
	line := newTimeline(n.spec, progress)
	c.onPart, c.farParts = line.addOwn, line.addFar
	started := time.Now()
	// The far end starts half a round trip later. That is inside the warm-up; without one, the
	// result shows the start as it was.
	s.post(msgGo, nil)
	begin()
	if err := c.run(ctx); err != nil {
		return nil, err
	}
	stopOnce()
	var far resultBody
	if err := s.await(ctx, s.timing.Setup+Silence(n.spec), msgResult, &far); err != nil {
		return nil, err
	}
	finished = true
	if err := far.check(); err != nil {
		return nil, err
	}
	line.finish(far.Parts)
	r := assemble(c, n, started, far, line.intervals)
	if side.report != nil {
		if err := side.report(r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// endpoints are the IP addresses of the data connections; on hosts with several addresses they show
// which interface carried the connections.
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

// open opens what the near end of the test needs.
func (n *nearEnd) open(ctx context.Context) (side cast, err error) {
	asked := ctx
	ctx, cancel := n.session.within(ctx, n.session.timing.Setup,
		fmt.Errorf("open data connections: %w: nothing within %v", ErrPeerGone, n.session.timing.Setup))
	defer cancel()
	defer func() {
		if err != nil && asked.Err() == nil {
			// If the far end went away or gave up, the error here only says that this end was
			// cancelled.
			err = n.session.insteadOf(err)
		}
	}()
	// The far end may give up meanwhile, and then there is nothing to open any more.
	defer context.AfterFunc(n.session.spoken, cancel)()
	k, _ := kindOf(n.spec.Test) // known, because the Spec is normalized
	side, err = k.near(ctx, n)
	if err != nil || n.spec.ProbeGap == 0 {
		return side, err
	}
	return n.withPings(ctx, side)
}

// withPings adds a pinger that runs beside the test.
func (n *nearEnd) withPings(ctx context.Context, side cast) (cast, error) {
	bytes := pingBytes
	if n.spec.traits().takes&probeSizes != 0 && n.spec.RequestBytes != 0 {
		bytes = n.spec.RequestBytes // a phase of a load test, whose pings all have one size
	}
	w, pinger, err := n.ping(ctx, bytes, n.spec.ProbeGap)
	if err != nil {
		closeWorkers(side.workers)
		return cast{}, err
	}
	side.workers, side.beside = append(side.workers, w), w
	report := side.report
	side.report = func(r *Result) error {
		r.warnOf(pinger.Troubles())
		if report == nil {
			return nil
		}
		return report(r)
	}
	return side, nil
}

// ping makes a pinger. It finds out which end answers: the far kernel over ICMP if the network lets
// it, else the far linerate over UDP.
func (n *nearEnd) ping(ctx context.Context, bytes int, gap time.Duration) (*engine.Worker, *echo.Pinger, error) {
	o := echo.PingOptions{Bytes: bytes, Gap: gap, From: n.spec.from()}
	if ip, err := netip.ParseAddr(n.PeerIP); err == nil {
		o.IP = ip
	}
	if to, token, ok := n.echoes(ctx); ok {
		o.UDP, o.Token = to, token
	}
	return echo.NewPinger(ctx, n.phase, o)
}

// dial opens the TCP data connections and makes their workers.
func (n *nearEnd) dial(ctx context.Context, worker makeWorker) ([]*engine.Worker, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// All at once: one after the other would cost a round trip each, thirteen seconds for 128 of
	// them at 100 ms.
	workers, errs := make([]*engine.Worker, n.spec.Connections()), make([]error, n.spec.Connections())
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			conn, err := n.Dial(ctx, i, n.spec.dataOptions(i))
			if err == nil {
				n.addresses.note(conn.LocalAddr(), conn.RemoteAddr())
				workers[i], err = worker(conn, i)
			}
			if err != nil {
				errs[i] = fmt.Errorf("open data connection %d: %w", i, err)
				cancel() // one missing connection makes the others useless
			}
		})
	}
	wg.Wait()
	if slices.Contains(workers, nil) {
		closeWorkers(workers)
		return nil, firstError(errs)
	}
	return workers, nil
}

// echoes returns where the far echo server listens and the token that it wants to see; ok is false
// if the far end has named none.
func (n *nearEnd) echoes(ctx context.Context) (to netip.AddrPort, token echo.Token, ok bool) {
	to, ok = n.echoAddress(ctx, n.accepted.EchoPort)
	if !ok || len(n.accepted.EchoToken) != echo.TokenBytes {
		return netip.AddrPort{}, echo.Token{}, false
	}
	return to, echo.Token(n.accepted.EchoToken), true
}

// echoAddress returns where the far echo server listens: where the caller says, else at the port
// that the far end named.
func (l Link) echoAddress(ctx context.Context, named int) (netip.AddrPort, bool) {
	target := l.Echo
	if target == "" {
		target = net.JoinHostPort(l.PeerIP, strconv.Itoa(named))
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

// firstError returns the error that made the other connections give up, rather than their "context
// canceled".
func firstError(errs []error) error {
	var first error
	for _, err := range errs {
		if err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	return first
}
