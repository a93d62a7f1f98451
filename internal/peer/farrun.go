package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// runState is the test that a client has open, if any. The reader starts it, the worker opens and ends it.
type runState struct {
	mu      sync.Mutex
	current *farRun
}

// farRun is one admitted test.
type farRun struct {
	queue  *wire.DataQueue
	box    *mailbox
	start  *time.Timer // gives the place free when no test starts
	free   func()      // gives the place free, once
	cancel context.CancelFunc
	ended  chan struct{} // closed when the responder has returned; nil while none was started
}

// openRun waits for the one place, makes the listener take up changed defaults, and gives the token of the test's data connections.
func (c *session) openRun(ctx context.Context, id uint64) (any, error) {
	// A client has one test at a time. One that opens the next without closing the last has given the last one up.
	c.endRun()
	tell := func(text string) {
		_ = c.conn.Send(ctx, msgNote, note{ID: id, Text: text}) // if the channel is gone, so is the wait
	}
	if err := c.enterTest(ctx, tell); err != nil {
		return nil, err
	}
	// The place is given free by whichever is first: the end of the test, its closing, or the client's not starting it.
	free := sync.OnceFunc(c.leaveTest)
	// One session at a time is here, since the place is taken, so the port is renewed once per test and not by two clients at once.
	// Knobs may have been turned since the listener was made, and its accepted sockets must show it.
	if err := c.Listener.Renew(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		free()
		return nil, err
	}
	r := &farRun{box: newMailbox(c.conn), free: free}
	// A place that was not started in time goes to somebody else; the token dies with it, so a late start finds no listener for its data.
	// How many connections the test needs is in its Spec, which comes later; package traffic takes as many as it wants.
	r.queue = c.Listener.Expect(wire.NewToken(), wire.MaxDataConns)
	c.run.mu.Lock()
	c.run.current = r
	r.start = time.AfterFunc(startWait, func() { c.expireRun(r) })
	c.run.mu.Unlock()
	return runAnswer{r.queue.Token()}, nil
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
		_ = r.queue.Close()
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
	// Nobody sets ended any more: testMessage does so under the lock and for the current test only, which this one ceased to be above.
	if r.ended != nil {
		r.cancel()
		<-r.ended
	}
	// Again, in case no responder was started; one that was has given the place free at its own end, and free counts once.
	_ = r.queue.Close()
	r.free()
}

// testMessage takes a message of package traffic: the one that starts a test starts its far side here, the others go to it.
func (c *session) testMessage(ctx context.Context, m wire.Message) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	r := c.run.current
	if r == nil {
		return // of a test that is over
	}
	if m.Type != traffic.MsgStart {
		r.box.put(m)
		return
	}
	var body traffic.StartBody
	if decode(m.Body, &body) != nil || r.ended != nil {
		_ = c.conn.Close() // not this protocol
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
		Limits:   c.Limits,
		Echo:     c.Echo,
		PeerIP:   c.ip,
	}
	go func() {
		defer close(r.ended)
		defer r.cancel()
		defer r.free()
		if err := responder.Respond(ctx, body.Spec); err != nil && ctx.Err() == nil {
			c.Log(fmt.Sprintf("test of %s: %v", c.who, err))
		}
	}()
}
