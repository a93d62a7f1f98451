package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// Responder is what the far end of a test has. It serves one test at a time.
type Responder struct {
	Control Control
	// Accept returns the next data connection of this test; not called for tests that need none.
	Accept   func(ctx context.Context) (conn *net.TCPConn, index int, err error)
	Sample   func() (*host.Counters, error) // counters of this host; nil: none
	HostName string                         // of this host
	Limits   Limits
	Echo     *echo.Server // answers UDP pings; nil: ICMP only
	PeerIP   string       // of the near host; the only address that Echo answers. Empty: ICMP only
	// Spend takes the payload bytes that were moved since its last call, sent and received
	// together. Its error ends the test and is the reason that the near end reads. Answers to pings
	// are not included. Nil: there is no budget.
	Spend func(bytes int64) error

	timing *timing // tests only; nil: that of every real test
}

// Respond runs the far end of one test, after the message that the near end sent with [MsgStart],
// whose body the caller passes. When it returns, it has sent its last message and read the near
// end's last one, so the channel is ready for the next test, unless the error is [ErrPeerGone]. A
// test that the near end stopped early is an error as well, but not [ErrPeerGone].
func (r *Responder) Respond(ctx context.Context, start StartBody) error {
	t := patience
	if r.timing != nil {
		t = *r.timing
	}
	spec, err := start.Spec.Normalize()
	// The watchdog covers everything: a near end that only sends beats cannot keep the one place
	// for tests, nor the threads and connections of this one.
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
			f := &farEnd{Responder: r, session: s, spec: spec, phase: &engine.Phase{}, revoke: func() {},
				numbered: start.FirstNumbers}
			body, err = f.play(ctx)
			refused = errors.Is(err, errRefusing)
		}
	}
	if err == nil {
		s.post(msgResult, body)
		return nil
	}
	// The near end answers every error with a stop. Without this wait, that stop would be the first
	// message of the next test.
	s.post(msgError, errorBody{Message: plainReason(err), Refused: refused})
	if !errors.Is(err, errStopped) {
		s.farewell()
	}
	if errors.Is(err, errRefusing) {
		return fmt.Errorf("%s test refused: %w", spec.Test, err)
	}
	return fmt.Errorf("%s test: %w", spec.Test, err)
}

// errRefusing marks a Spec that is over this host's limits.
var errRefusing = errors.New("over the limits")

// plainReason returns the sentence that the other end reads.
func plainReason(err error) string {
	var refusal = errRefusing.Error() + ": "
	text := err.Error()
	if errors.Is(err, errRefusing) && len(text) > len(refusal) {
		return text[len(refusal):]
	}
	return text
}

// farEnd is the far end of one test.
type farEnd struct {
	*Responder
	session    *session
	spec       Spec
	phase      *engine.Phase
	offer      acceptBody // what test.accept names
	revoke     func()     // ends what admitEchoes has admitted
	numbered   bool       // the near end knows FirstNumbers
	remembered []string   // warnings about what the kernel remembers
}

// play is Respond between a Spec within the limits and the result.
func (f *farEnd) play(ctx context.Context) (resultBody, error) {
	if reason := engine.Unusable(f.spec.FarCPUs); reason != "" {
		return resultBody{}, fmt.Errorf("%w: %s", errRefusing, reason)
	}
	defer func() { f.revoke() }()
	k, _ := kindOf(f.spec.Test) // known, because the Spec is normalized
	side, err := k.far(ctx, f)
	if err != nil {
		return resultBody{}, err
	}
	f.session.post(msgReady, nil)
	err = f.session.await(ctx, f.session.timing.Setup, msgGo, nil)
	if side.begun != nil {
		side.begun()
	}
	if err != nil {
		closeWorkers(side.workers)
		return resultBody{}, err
	}
	c := newFarConductor(f.spec, f.session, f.phase, side, f.Limits)
	c.sample, c.spend = f.Sample, f.Spend
	c.warnings = f.remembered
	c.onPart = func(p part) { f.session.tryPost(msgInterval, p) }
	if err := c.run(ctx); err != nil {
		return resultBody{}, err
	}
	return c.body(f.HostName), nil
}

// accept sends the near end what it must know. From then on it may connect.
func (f *farEnd) accept() error {
	if f.spec.ProbeGap != 0 {
		if _, err := f.admitEchoes(); err != nil {
			return err
		}
	}
	f.remembered = forget(f.spec, f.PeerIP)
	f.session.post(msgAccept, f.offer)
	return nil
}

// admitEchoes lets the echo server answer the near host during the test, and reports whether there
// is such a server. Without one the kernel may still answer pings.
func (f *farEnd) admitEchoes() (admitted bool, err error) {
	if f.offer.EchoToken != nil {
		return true, nil
	}
	// For this address only, which the control channel's TCP handshake has proved to be that of its
	// client.
	ip, err := netip.ParseAddr(f.PeerIP)
	if f.Echo == nil || err != nil {
		return false, nil
	}
	token, err := f.Echo.Register(ip, longest(f.spec, f.session.timing))
	if err != nil {
		return false, err
	}
	f.offer.EchoToken, f.offer.EchoPort = token[:], f.Echo.Port()
	f.revoke = func() { f.Echo.Revoke(token) }
	return true, nil
}

// collect takes the data connections. The near end may give up meanwhile, so it watches the
// channel.
func (f *farEnd) collect(ctx context.Context, worker makeWorker) ([]*engine.Worker, error) {
	n, s := f.spec.Connections(), f.session
	actx, cancel := s.within(ctx, s.timing.Setup,
		fmt.Errorf("accept data connections: %w: nothing within %v", ErrPeerGone, s.timing.Setup))
	defer cancel()
	type arrival struct {
		conn  *net.TCPConn
		index int
		err   error
	}
	// A goroutine of its own, because the test waits for Accept and the channel at once. It ends
	// with actx and closes what it could not hand over, so no connection outlives a test that never
	// began.
	arrivals := make(chan arrival)
	go func() {
		defer close(arrivals)
		for range n {
			conn, index, err := f.Accept(actx)
			select {
			case arrivals <- arrival{conn, index, err}:
			case <-actx.Done():
				if err == nil {
					_ = conn.Close() // nothing waits for it any more
				}
				return
			}
			if err != nil {
				return
			}
		}
	}()
	workers := make([]*engine.Worker, n)
	fail := func(err error) ([]*engine.Worker, error) {
		cancel()
		for a := range arrivals {
			if a.err == nil {
				_ = a.conn.Close() // as above
			}
		}
		closeWorkers(workers)
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
			// Its token was right, so the near end is broken, or an attacker on the path has read
			// the token.
			case a.index < 0 || a.index >= n || workers[a.index] != nil:
				_ = a.conn.Close() // refused
				return fail(fmt.Errorf("%w: data connection %d is out of place", ErrProtocol, a.index))
			}
			w, err := worker(a.conn, a.index)
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
