package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/journal"
	"github.com/linerate/linerate/internal/wire"
)

// session is one client as the far side sees it. Three goroutines: the reader sorts messages, the worker answers calls in order, and while
// a test runs, a third plays its far side.
type session struct {
	*server
	conn  *wire.Conn
	who   string // for people: name and address
	ip    string
	calls chan pending // from reader to worker
	run   runState     // shared by both

	mu      sync.Mutex
	cancels map[uint64]context.CancelFunc // of calls that are not yet answered

	// The worker's own, until it has ended.
	greeted bool
	journal *journal.Journal
	trials  []string    // ids that this client made
	lease   *time.Timer // ends them when their client does not come back to them
}

// pending is a call on its way to the worker.
type pending struct {
	ctx    context.Context
	cancel context.CancelFunc
	typ    string
	call   call
}

// serve answers one client until it goes or ctx ends. Its IP address is empty if it is not known.
func (s *server) serve(ctx context.Context, conn *wire.Conn, ip string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	c := &session{
		server: s, conn: conn, ip: ip, who: "a client over ssh",
		calls: make(chan pending, maxCalls), cancels: make(map[uint64]context.CancelFunc),
		lease: time.NewTimer(maxTrialFor),
	}
	defer c.lease.Stop()
	if a := conn.RemoteAddr(); a != nil {
		c.who = a.String()
	}
	// Only who holds the key comes this far, so the bound is against mistakes and not against strangers; those are the listener's business.
	if err := s.admit(); err != nil {
		c.refuse(ctx, err)
		return
	}
	defer s.dismiss()
	// The end of the channel ends everything that works for it; the end of ctx ends the channel.
	var parts sync.WaitGroup
	parts.Go(func() {
		select {
		case <-conn.Done():
		case <-ctx.Done():
		}
		cancel()
		_ = conn.Close()
	})
	parts.Go(func() { c.work(ctx) })
	c.read(ctx)
	// In this order: nothing new comes, what works on calls gives up, and only when nobody uses the journal any more it is wound up.
	cancel()
	close(c.calls)
	parts.Wait()
	c.endRun()
	c.takeBack()
	if c.greeted {
		s.Log(c.who + " left")
	}
}

// refuse answers the first call of a client that is not let in.
func (c *session) refuse(ctx context.Context, why error) {
	c.Log(fmt.Sprintf("%s turned away: %v", c.who, why))
	ctx, cancel := context.WithTimeout(ctx, greetingWait)
	defer cancel()
	m, err := c.conn.Receive(ctx)
	var hello call
	if err == nil && decode(m.Body, &hello) == nil {
		_ = c.conn.Send(ctx, msgAnswer, answer{ID: hello.ID, Fault: newFault(why)}) // it is turned away with or without knowing why
	}
}

// read sorts messages until the channel ends. It must not wait for anything else, since it also brings the end of what is waited for.
func (c *session) read(ctx context.Context) {
	greeting := time.AfterFunc(greetingWait, func() { _ = c.conn.Close() })
	defer greeting.Stop()
	for {
		m, err := c.conn.Receive(ctx)
		if err != nil {
			return
		}
		greeting.Stop() // heartbeats bound the silence of whoever has spoken once
		switch {
		case strings.HasPrefix(m.Type, testPrefix):
			c.testMessage(ctx, m)
		case m.Type == msgCancel:
			var body cancelCall
			if decode(m.Body, &body) == nil {
				c.mu.Lock()
				if cancel := c.cancels[body.Cancel]; cancel != nil {
					cancel()
				}
				c.mu.Unlock()
			}
		default:
			p := pending{typ: m.Type}
			if decode(m.Body, &p.call) != nil {
				_ = c.conn.Close() // what comes next cannot be trusted to be this protocol
				return
			}
			callCtx, cancel := context.WithCancel(ctx)
			p.ctx, p.cancel = callCtx, cancel
			c.mu.Lock()
			c.cancels[p.call.ID] = cancel
			c.mu.Unlock()
			select {
			case c.calls <- p:
			default:
				_ = c.conn.Close() // no client of ours asks for so much at once
				return
			}
		}
	}
}

// work answers calls in the order they came, and ends trials whose time is over.
func (c *session) work(ctx context.Context) {
	for {
		select {
		// What was queued when the channel ended still comes out here. Its context has ended, which every call looks at before it changes
		// anything.
		case p, more := <-c.calls:
			if !more {
				return
			}
			c.answer(ctx, p)
		// Here and not in a goroutine of its own: the trials and the journal are the worker's, so no call can be half way through a change now.
		case <-c.lease.C:
			if c.undoTrials() > 0 {
				c.Log(c.who + " left its trials standing for too long")
			}
		}
	}
}

// answer answers one call.
func (c *session) answer(ctx context.Context, p pending) {
	body, err := c.handle(p)
	a := answer{ID: p.call.ID}
	if err != nil {
		a.Fault = newFault(err)
	}
	if a.Body, err = encode(body); err != nil {
		a.Fault = newFault(fmt.Errorf("encode answer to %s: %w", p.typ, err))
	}
	// Its own, not the one that the map has: a client that gives one id to many calls must not leave a context behind with each.
	p.cancel()
	c.mu.Lock()
	delete(c.cancels, p.call.ID)
	c.mu.Unlock()
	if err := c.conn.Send(ctx, msgAnswer, a); err != nil && ctx.Err() == nil {
		// The channel is whole, so the answer itself cannot be sent: it is too long. Then its reason is sent.
		_ = c.conn.Send(ctx, msgAnswer, answer{ID: p.call.ID, Fault: newFault(err)})
	}
}

// handle makes the answer to one call.
func (c *session) handle(p pending) (any, error) {
	// Version first: a message of another version may mean another thing under the same name.
	if !c.greeted && p.typ != msgHello {
		return nil, fmt.Errorf("%w: %s before hello", wire.ErrProtocol, p.typ)
	}
	switch p.typ {
	case msgHello:
		return c.hello(p.call.Body)
	case msgSnapshot:
		return c.Root.Snapshot(p.ctx)
	case msgHistory:
		return c.history()
	case msgRead:
		return c.readKnob(p.ctx, p.call.Body)
	case msgApply:
		return c.apply(p.ctx, p.call.Body)
	case msgUndo:
		return c.undo(p.ctx, p.call.Body)
	case msgCommit:
		return nil, c.commit(p.ctx, p.call.Body)
	case msgRunOpen:
		return c.openRun(p.ctx, p.call.ID)
	case msgRunClose:
		c.endRun()
		return nil, nil
	}
	// A newer client may ask for more than this version has; the connection stays of use for the rest.
	return nil, fmt.Errorf("%w: this linerate (%s) does not know the call %q", errors.ErrUnsupported, c.Version, p.typ)
}

// hello makes acquaintance.
func (c *session) hello(raw json.RawMessage) (any, error) {
	var hello helloCall
	if err := decode(raw, &hello); err != nil {
		return nil, err
	}
	if hello.Protocol != Protocol {
		return nil, fmt.Errorf("%w: linerate %s on %s speaks version %d of the protocol, linerate %s on %s version %d; install the same release on both",
			ErrVersion, hello.Linerate, hello.Host, hello.Protocol, c.Version, c.HostName, Protocol)
	}
	if !c.greeted {
		c.greeted = true
		if hello.Host != "" {
			c.who = fmt.Sprintf("%q (%s)", hello.Host, c.who)
		}
		c.Log(c.who + " came")
	}
	return Info{
		Protocol: Protocol, Linerate: c.Version, Host: c.HostName,
		OS: runtime.GOOS, Arch: runtime.GOARCH, AllowTuning: c.AllowTuning,
	}, nil
}

// history reads the journal.
func (c *session) history() (any, error) {
	if c.History == nil {
		return nil, fmt.Errorf("read history: %w", errors.ErrUnsupported)
	}
	changes, err := c.History()
	return historyAnswer{changes}, err
}
