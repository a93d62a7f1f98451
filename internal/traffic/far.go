package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

// Responder is what the far side of a test has. It serves one test at a time.
type Responder struct {
	Control Control
	// next data connection of this test; not called for ping
	Accept   func(ctx context.Context) (conn *net.TCPConn, index int, err error)
	Sample   func() (*host.Counters, error) // counters of this host; nil: none
	HostName string                         // of this host
	Limits   Limits
	Echo     *echo.Server // answers UDP pings; nil: ICMP only
	PeerIP   string       // of the near host; the only address that Echo answers. Empty: ICMP only
	// Spend is told the payload bytes that were moved since it was last told, sent and received
	// together; its error ends the test and is the reason that the near side reads. Answers to
	// pings are not in it. Nil: nobody counts.
	Spend func(bytes int64) error

	timing *timing // tests only; nil: that of every real test
}

// Respond plays the far side of one test, from the message that the near side sent with [MsgStart]
// on, whose Spec the caller hands over. When it returns, its last message is sent and the near
// side's last one is read, so the channel is ready for the next test, unless the error is
// [ErrPeerGone]. A test that the near side stopped early is an error as well, but not
// [ErrPeerGone].
func (r *Responder) Respond(ctx context.Context, spec Spec) error {
	t := patience
	if r.timing != nil {
		t = *r.timing
	}
	spec, err := spec.Normalize()
	// The watchdog is over everything, whatever the other side says or leaves unsaid: a near side
	// that only beats cannot keep the one place for tests, nor the threads and connections of this
	// one.
	limit := 2 * t.Setup
	if err == nil {
		limit = longest(spec, t)
	}
	s := newSession(ctx, r.Control, t, limit, msgStop)
	defer s.close()
	var body resultBody
	refused := err != nil
	if err == nil {
		if reason := r.Limits.Refuse(spec); reason != "" {
			refused, err = true, fmt.Errorf("%w: %s", errRefusing, reason)
		} else {
			body, err = r.play(ctx, s, spec)
			refused = errors.Is(err, errRefusing)
		}
	}
	if err == nil {
		s.post(msgResult, body)
		return nil
	}
	// The near side answers every error with a stop. Without waiting for it, it would be the first
	// message of the next test.
	s.post(msgError, errorBody{Message: plainReason(err), Refused: refused})
	if !errors.Is(err, errStopped) {
		s.farewell(msgStop)
	}
	if errors.Is(err, errRefusing) {
		return fmt.Errorf("%s test refused: %w", spec.Test, err)
	}
	return fmt.Errorf("%s test: %w", spec.Test, err)
}

// errRefusing is a Spec that is over this host's limits.
var errRefusing = errors.New("over the limits")

// plainReason is the sentence that the other side gets to read.
func plainReason(err error) string {
	var refusal = errRefusing.Error() + ": "
	text := err.Error()
	if errors.Is(err, errRefusing) && len(text) > len(refusal) {
		return text[len(refusal):]
	}
	return text
}

// play is Respond between a Spec that was found good and the result.
func (r *Responder) play(ctx context.Context, s *session, spec Spec) (resultBody, error) {
	if reason := engine.Unusable(spec.FarCPUs); reason != "" {
		return resultBody{}, fmt.Errorf("%w: %s", errRefusing, reason)
	}
	p := &engine.Phase{}
	accepted, revoke, err := r.admitEchoes(spec, s.timing)
	if err != nil {
		return resultBody{}, err
	}
	defer revoke()
	var side cast
	if spec.Test == CRR {
		if side.workers, err = r.newAcceptors(spec, p, &accepted); err != nil {
			return resultBody{}, err
		}
	}
	remembered := forget(spec, r.PeerIP)
	s.post(msgAccept, accepted)
	quiet := func() {} // ends the answering of hellos
	switch {
	case spec.Test == UDP:
		var sockets []*datagram.Socket
		if sockets, quiet, err = r.hearHellos(ctx, s, spec, echo.Token(accepted.EchoToken)); err != nil {
			break
		}
		var ports []datagram.Port
		if side.workers, ports, err = newDatagramWorkers(spec, p, sockets, false); err != nil {
			quiet() // before the sockets that it reads are closed
			closeSockets(sockets)
			break
		}
		side.udp = datagram.NewExchange(side.workers, ports)
	case spec.Connections() > 0:
		side.workers, err = r.collect(ctx, s, spec, p)
	}
	if err != nil {
		return resultBody{}, err
	}
	s.post(msgReady, nil)
	if err := s.await(ctx, s.timing.Setup, msgGo, nil); err != nil {
		quiet()
		closeWorkers(side.workers)
		return resultBody{}, err
	}
	quiet()
	c := newConductor(spec, false, s, r.Sample, side, p)
	c.limits, c.spend = r.Limits.Filled(), r.Spend
	c.warnings = append(c.warnings, remembered...)
	c.onPart = func(p part) { s.tryPost(msgInterval, p) }
	if err := c.run(ctx); err != nil {
		return resultBody{}, err
	}
	return c.body(r.HostName), nil
}

// admitEchoes lets the echo server answer the near host for the time of the test, where the test
// may need it.
func (r *Responder) admitEchoes(spec Spec, t timing) (accepted acceptBody, revoke func(), err error) {
	revoke = func() {}
	if spec.Test != Ping && spec.Test != UDP && spec.Test != MTU && spec.ProbeGap == 0 {
		return accepted, revoke, nil
	}
	ip, err := netip.ParseAddr(r.PeerIP)
	switch {
	case r.Echo != nil && err == nil:
	case spec.Test == UDP:
		return accepted, revoke, fmt.Errorf("%w: this host listens on no udp port for you", errRefusing)
	default:
		return accepted, revoke, nil // the kernel may answer pings
	}
	// For this address only, which the control channel's TCP handshake has proved to be its
	// client's.
	token, err := r.Echo.Register(ip, longest(spec, t))
	if err != nil {
		return accepted, revoke, err
	}
	return acceptBody{EchoToken: token[:], EchoPort: r.Echo.Port()}, func() { r.Echo.Revoke(token) }, nil
}

// newAcceptors makes the workers of a crr test and names their ports and the token that requests
// must show.
func (r *Responder) newAcceptors(spec Spec, p *engine.Phase, accepted *acceptBody) ([]*engine.Worker, error) {
	from, err := netip.ParseAddr(r.PeerIP)
	if err != nil {
		return nil, fmt.Errorf("%w: this host does not know your address, and answers connections of nobody else",
			errRefusing)
	}
	token := wire.NewToken()
	accepted.AcceptToken = token[:]
	workers := make([]*engine.Worker, 0, spec.Streams)
	for range spec.Streams {
		w, acceptor, err := engine.NewAcceptor(p, engine.AcceptOptions{
			From: from, Prefix: accepted.AcceptToken, RequestBytes: spec.RequestBytes,
			ResponseBytes: spec.ResponseBytes,
			Conn:          connOptions(spec, true),
		})
		if err != nil {
			closeWorkers(workers)
			return nil, err
		}
		accepted.AcceptPorts = append(accepted.AcceptPorts, acceptor.Port())
		workers = append(workers, w)
	}
	return workers, nil
}

// collect takes in the data connections. The near side may give up meanwhile, so the channel is
// watched.
func (r *Responder) collect(ctx context.Context, s *session, spec Spec,
	p *engine.Phase) ([]*engine.Worker, error) {
	n := spec.Connections()
	actx, cancel := context.WithTimeoutCause(ctx, s.timing.Setup,
		fmt.Errorf("accept data connections: %w: nothing within %v", ErrPeerGone, s.timing.Setup))
	defer cancel()
	type arrival struct {
		conn  *net.TCPConn
		index int
		err   error
	}
	// A goroutine of its own, because Accept and the channel have to be waited for at once. It ends
	// with actx and closes what it could not hand over, so no connection outlives a test that never
	// began.
	arrivals := make(chan arrival)
	go func() {
		defer close(arrivals)
		for range n {
			conn, index, err := r.Accept(actx)
			select {
			case arrivals <- arrival{conn, index, err}:
			case <-actx.Done():
				if err == nil {
					_ = conn.Close() // nobody waits for it any more
				}
				return
			}
			if err != nil {
				return
			}
		}
	}()
	workers, quota := make([]*engine.Worker, n), quotaOf(spec)
	fail := func(err error) ([]*engine.Worker, error) {
		cancel()
		for a := range arrivals {
			if a.err == nil {
				_ = a.conn.Close() // as above
			}
		}
		closeWorkers(present(workers))
		return nil, err
	}
	for got := 0; got < n; {
		select {
		case a := <-arrivals:
			switch {
			case a.err != nil && actx.Err() != nil:
				return fail(context.Cause(actx))
			case a.err != nil:
				return fail(fmt.Errorf("accept data connection: %w", a.err))
			// The token has let it in, so this is a near side of another mind, or somebody who has
			// read the token on the path.
			case a.index < 0 || a.index >= n || workers[a.index] != nil:
				_ = a.conn.Close() // refused
				return fail(fmt.Errorf("%w: data connection %d is out of place", ErrProtocol, a.index))
			}
			w, err := newWorker(spec, p, a.conn, false, a.index, quota)
			if err != nil {
				return fail(fmt.Errorf("accept data connection %d: %w", a.index, err))
			}
			workers[a.index] = w
			got++
		case m := <-s.in:
			if m.Type != msgBeat {
				return fail(unexpected(m))
			}
		case <-s.done():
			return fail(s.cause())
		case <-actx.Done():
			return fail(context.Cause(actx))
		}
	}
	return workers, nil
}

func present(workers []*engine.Worker) []*engine.Worker {
	var out []*engine.Worker
	for _, w := range workers {
		if w != nil {
			out = append(out, w)
		}
	}
	return out
}
