package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/lease"
	"github.com/linerate/linerate/internal/wire"
)

// runState is the test that a client has open, if any. The reader starts it; the worker opens and
// ends it.
type runState struct {
	mu      sync.Mutex
	current *farRun
}

// farRun is one admitted test.
type farRun struct {
	spec   traffic.Spec // normalized
	limits traffic.Limits
	queue  *wire.DataQueue
	box    *mailbox
	start  *time.Timer // frees the place if no test starts
	spend  func(bytes int64) error
	free   func() // closes the queue and frees the place, once
	cancel context.CancelFunc
	ended  chan struct{} // closed when the responder has returned; nil while none has started
}

// openRun waits for a place, makes the listener adopt changed defaults, and returns the token of
// the test's data connections.
func (c *session) openRun(ctx context.Context, opening call) (any, error) {
	var body runCall
	if err := decode(opening.Body, &body); err != nil {
		return nil, err
	}
	spec, err := body.Spec.Normalize()
	if err != nil {
		return nil, err
	}
	// A test that would be refused need not wait for its refusal.
	if reason := c.Limits.Refuse(spec); reason != "" {
		return nil, fmt.Errorf("%w: %s", traffic.ErrRefused, reason)
	}
	// A client has one test at a time. Opening the next one without closing the last gives the last
	// one up.
	c.endRun()
	leave, err := c.tests.enter(ctx, c.source, weigh(spec), func(before int) {
		// If the channel has ended, so does the wait.
		_ = c.conn.Send(ctx, msgNote, note{ID: opening.ID, Text: c.standing(before)})
	})
	if err != nil {
		return nil, err
	}
	returned, err := c.takeLease(ctx, spec)
	if err != nil {
		leave()
		return nil, err
	}
	entered := leave
	leave = func() { returned(); entered() }
	// The gate treats an unknown address (ssh without one) as one source.
	from, _ := netip.ParseAddr(c.ip)
	visit, err := c.Gate.EnterKnown(from) // clients that come this far have shown the key
	if err != nil {
		leave()
		var busy *admission.BusyError
		if errors.As(err, &busy) {
			err = fmt.Errorf("%w: %s", ErrBusy, busy.Reason)
		}
		return nil, err
	}
	r, err := c.expect(spec)
	if err != nil {
		visit.Leave()
		leave()
		return nil, err
	}
	r.queue.Admit(from)
	// No test moves more bytes than its source has left.
	r.limits = c.Limits
	if left := visit.Left(); r.limits.MaxBytes == 0 || left < r.limits.MaxBytes {
		r.limits.MaxBytes = left
	}
	r.spend = func(n int64) error {
		err := visit.Spend(n)
		// The gate's clock starts at the admission, traffic's limits at the start of the test. Here
		// the latter apply: a test of the longest allowed time must not be ended at its very end.
		if err == nil || visit.Left() > 0 {
			return nil
		}
		var over *admission.BudgetError
		if errors.As(err, &over) {
			return errors.New(over.Reason) // without the address, which the client knows
		}
		return err
	}
	// The first of three events frees the place: the test ends, the client closes it, or the client
	// does not start it. The queue closes first, because it may hold the listening port in a state
	// that is for this test only.
	over := c.conn.Bear(traffic.Silence(spec))
	r.free = sync.OnceFunc(func() {
		over()
		_ = r.queue.Close() // closes connections that no test will use
		visit.Leave()
		leave()
	})
	c.run.mu.Lock()
	c.run.current = r
	r.start = time.AfterFunc(startWait, func() { c.expireRun(r) })
	c.run.mu.Unlock()
	return runAnswer{r.queue.Token()}, nil
}

// leaseWait is how long a test waits for the lease of this host. Two hosts that test each other at
// the same time hold one lease each: the wait is short, and one of them tries again.
const leaseWait = 2 * time.Second

// takeLease takes the lease of this host for a heavy test. A client on this host is the test's
// other role, and may have the lease already.
func (c *session) takeLease(ctx context.Context, spec traffic.Spec) (release func(), err error) {
	if c.Lease == nil || weigh(spec) == light || c.local() {
		return func() {}, nil
	}
	release, err = c.Lease.Wait(ctx, leaseWait)
	if errors.Is(err, lease.ErrBusy) {
		return nil, fmt.Errorf("%w: %s", ErrBusy, lease.ErrBusy)
	}
	return release, err
}

// local reports whether the client is on this host.
func (c *session) local() bool {
	from, err := netip.ParseAddr(c.ip)
	if err != nil {
		return false
	}
	if from.Unmap().IsLoopback() {
		return true
	}
	own, _ := net.InterfaceAddrs() // without a list, the client is another host
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == from.Unmap() {
			return true
		}
	}
	return false
}

// expect prepares the port for the data connections of a test.
func (c *session) expect(spec traffic.Spec) (*farRun, error) {
	r := &farRun{spec: spec, box: newMailbox(c.conn)}
	token, n := wire.NewToken(), max(spec.Connections(), 1)
	if o := listenOptions(spec); o != (wire.ListenOptions{}) {
		queue, err := c.Listener.ExpectWith(token, n, o)
		if err == nil {
			r.queue = queue
			return r, nil
		}
		// On systems other than Linux the options are set after the handshake, which is the best
		// possible there.
		if !errors.Is(err, errors.ErrUnsupported) {
			return nil, err
		}
	}
	// Knobs may have changed since the listener was created, and the sockets that it accepts must
	// have the new values.
	if err := c.Listener.Renew(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	r.queue = c.Listener.Expect(token, n)
	return r, nil
}

// weigh returns how much of a host a test takes.
func weigh(spec traffic.Spec) weight {
	switch {
	case listenOptions(spec) != (wire.ListenOptions{}):
		return alone
	case !spec.Heavy():
		return light
	}
	return heavy
}

// listenOptions returns the options of a test that the far end must set before it accepts a
// connection: the listening socket's window determines the window scale (RFC 7323 §2.2), and the
// segment size is sent in the answer to the first packet.
func listenOptions(spec traffic.Spec) wire.ListenOptions {
	return wire.ListenOptions{WindowBytes: spec.WindowBytes, MSSBytes: spec.MSSBytes}
}

// standing is the message to a waiting client: how many tests come first.
func (c *session) standing(before int) string {
	if before == 0 {
		return fmt.Sprintf("other tests run on %s; you are next", c.HostName)
	}
	return fmt.Sprintf("another test runs on %s; %d before you", c.HostName, before)
}

// expireRun ends an admitted test that never started.
func (c *session) expireRun(r *farRun) {
	c.run.mu.Lock()
	idle := c.run.current == r && r.ended == nil
	if idle {
		c.run.current = nil
	}
	c.run.mu.Unlock()
	if idle {
		r.free()
	}
}

// endRun stops the open test, if any, and waits until nothing of it is left.
func (c *session) endRun() {
	c.run.mu.Lock()
	r := c.run.current
	c.run.current = nil
	c.run.mu.Unlock()
	if r == nil {
		return
	}
	r.start.Stop()
	r.box.close()
	// ended no longer changes: testMessage sets it under the lock and only for the current test,
	// which this one no longer is.
	if r.ended != nil {
		r.cancel()
		<-r.ended
	}
	// Needed if no responder was started. A responder frees the place at its own end, and free
	// counts once.
	r.free()
}

// testMessage handles a message of package traffic. The one that starts a test starts its far side
// here; all others go to that far side.
func (c *session) testMessage(ctx context.Context, m wire.Message) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	r := c.run.current
	if r == nil {
		return // of a test that has ended
	}
	if m.Type != traffic.MsgStart {
		r.box.put(m)
		return
	}
	var body traffic.StartBody
	// Only the admitted test may run; otherwise a heavy test could pass for a light one.
	if decode(m.Body, &body) != nil || r.ended != nil || !sameSpec(body.Spec, r.spec) {
		go c.conn.Close() // not this protocol; in a goroutine, because closing may wait for the peer
		return
	}
	r.start.Stop()
	r.ended = make(chan struct{})
	ctx, r.cancel = context.WithCancel(ctx)
	responder := traffic.Responder{
		Control:  r.box,
		Accept:   r.queue.Accept,
		Sample:   c.Root.Counters,
		HostName: c.HostName,
		Limits:   r.limits,
		Spend:    r.spend,
		Echo:     c.Echo,
		PeerIP:   c.ip,
	}
	go func() {
		defer close(r.ended)
		defer r.cancel()
		defer r.free()
		err := responder.Respond(ctx, body)
		select {
		case <-c.conn.Done(): // the client is gone, which its session logs
		default:
			if err != nil && ctx.Err() == nil {
				c.Log(fmt.Sprintf("test of %s: %v", c.who, err))
			}
		}
	}()
}

// sameSpec reports whether spec, once normalized, is the one that was admitted.
func sameSpec(spec, admitted traffic.Spec) bool {
	spec, err := spec.Normalize()
	return err == nil && reflect.DeepEqual(spec, admitted)
}
