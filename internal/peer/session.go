package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/profile/record"
	"github.com/linerate/linerate/internal/wire"
)

// session is one client as the far side sees it. An idle session has no goroutine: the channel's
// reader sorts its messages (see message), a worker answers calls in order and ends when none is
// left, and while a test runs, a third goroutine is its far side.
type session struct {
	*server
	conn   *wire.Conn
	who    string // for display: name and address; after the start it belongs to the worker
	ip     string
	source netip.Prefix
	ctx    context.Context // of the server, shared by all sessions; end cancels what must end with the channel
	run    runState        // shared by reader and worker

	mu       sync.Mutex
	greeting *time.Timer                   // ends a silent channel; nil after the first message
	heard    time.Time                     // when the last message came
	calls    []pending                     // not yet begun, oldest first
	current  pending                       // being answered
	cancels  map[uint64]context.CancelFunc // of calls that are not yet answered
	working  bool                          // there is a worker, which checks calls before it ends
	over     bool                          // the channel has ended; no worker starts any more
	leaving  bool                          // it is being closed because its key has ended
	workers  sync.WaitGroup                // the worker, if any

	// These belong to the worker until the channel has ended.
	greeted  bool
	confirms bool             // the client knows how to confirm a commit
	recorder *record.Recorder // nil before the first profile

	// changing is held by each call that changes settings, and by the end of the lease. Other calls
	// of the worker can wait for minutes, and no trial may wait for them.
	changing   sync.Mutex
	journal    *journal.Journal
	trials     []string    // ids of this client's trials
	commitment *commitment // that waits for a new connection; nil: none
	// ends the trials when the client does not renew them; nil before the first trial
	lease    *time.Timer
	leaseEnd time.Time
}

// pending is a call that waits for the worker.
type pending struct {
	ctx    context.Context
	cancel context.CancelFunc
	typ    string
	call   call
}

// start makes a channel a session and returns at once; s.sessions counts it until nothing of it is
// left. ip is empty if it is unknown.
func (s *server) start(ctx context.Context, conn *wire.Conn, ip string) {
	c := &session{server: s, conn: conn, ctx: ctx, ip: ip, source: sourceOf(ip), who: s.nameOf(conn),
		heard: time.Now()}
	// Only clients with the key come this far, so the bound is against mistakes. The listener
	// handles everything else.
	if err := s.admit(c); err != nil {
		s.refuse(ctx, conn, c.who, err)
		return
	}
	c.greeting = time.AfterFunc(greetingWait, func() { _ = conn.Close() })
	conn.Handle(c.message, c.end)
}

// refuse answers the first call of a client that is not let in, and hangs up.
func (s *server) refuse(ctx context.Context, conn *wire.Conn, who string, why error) {
	s.Log(fmt.Sprintf("%s turned away: %v", who, why))
	if !s.hold(conn) {
		_ = conn.Close() // too many are being notified already; this one only sees the connection close
		return
	}
	late := time.AfterFunc(greetingWait, func() { _ = conn.Close() })
	conn.Handle(func(m wire.Message) {
		var hello call
		if decode(m.Body, &hello) != nil {
			_ = conn.Close()
			return
		}
		go func() {
			ctx, cancel := context.WithTimeout(ctx, greetingWait)
			defer cancel()
			// it is refused even if the reason cannot be sent
			_ = conn.Send(ctx, msgAnswer, answer{ID: hello.ID, Fault: newFault(why)})
			_ = conn.Close()
		}()
	}, func() {
		late.Stop()
		s.release(conn)
	})
}

// message sorts one message. The reader of the channel calls it, so it must not wait: the reader
// also delivers the end of whatever it would wait for.
func (c *session) message(m wire.Message) {
	c.mu.Lock()
	if c.greeting != nil {
		c.greeting.Stop() // from now on heartbeats bound the silence
		c.greeting = nil
	}
	c.heard = time.Now()
	c.mu.Unlock()
	switch {
	case strings.HasPrefix(m.Type, testPrefix):
		c.testMessage(c.ctx, m)
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
			_ = c.conn.Close() // later messages cannot be trusted to follow this protocol
			return
		}
		c.enqueue(p)
	}
}

// enqueue passes a call to the worker, and starts one if there is none.
func (c *session) enqueue(p pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	waiting := 0
	for _, q := range c.calls {
		waiting += len(q.call.Body)
	}
	if len(c.calls) >= maxCalls || waiting+len(p.call.Body) > maxCallBytes {
		// no correct client has this number of calls waiting; in a goroutine, because closing
		// writes a last record while the lock is held
		go c.conn.Close()
		return
	}
	p.ctx, p.cancel = context.WithCancel(c.ctx)
	if c.cancels == nil {
		c.cancels = make(map[uint64]context.CancelFunc)
	}
	c.cancels[p.call.ID] = p.cancel
	c.calls = append(c.calls, p)
	if !c.working {
		c.working = true
		c.workers.Go(c.work)
	}
}

// work answers calls in the order of their arrival until there is none. Calls that were queued when
// the channel ended are still processed; their contexts have ended, which every call checks before
// it changes anything.
func (c *session) work() {
	for {
		c.mu.Lock()
		if len(c.calls) == 0 {
			c.calls, c.cancels, c.current, c.working = nil, nil, pending{}, false
			c.mu.Unlock()
			return
		}
		p := c.calls[0]
		c.calls, c.current = c.calls[1:], p
		c.mu.Unlock()
		c.answer(p)
	}
}

// end winds the session up when the channel has ended, or was never used.
func (c *session) end() {
	defer c.dismiss(c)
	// The order matters: first no new calls, then the running calls give up, and the journal is
	// wound up only when nothing uses it any more.
	c.mu.Lock()
	c.over = true
	for _, p := range append(c.calls, c.current) {
		if p.cancel != nil {
			p.cancel()
		}
	}
	if c.greeting != nil {
		c.greeting.Stop()
	}
	c.mu.Unlock()
	c.workers.Wait()
	c.endRun()
	c.takeBack()
	if c.greeted {
		c.Log(c.who + " left")
		c.finish(nil)
	}
}

// idleSince returns when the last message came, or the current time while a call or a test is
// running.
func (c *session) idleSince() time.Time {
	c.run.mu.Lock()
	testing := c.run.current != nil
	c.run.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if testing || c.working {
		c.heard = time.Now()
	}
	return c.heard
}

// answer answers one call.
func (c *session) answer(p pending) {
	body, err := c.handle(p)
	a := answer{ID: p.call.ID}
	if err != nil {
		a.Fault = newFault(err)
	}
	if a.Body, err = encode(body); err != nil {
		a.Fault = newFault(fmt.Errorf("encode answer to %s: %w", p.typ, err))
	}
	// This call's own cancel and not the one in the map: a client that gives one id to many calls
	// must not leave a context behind with each.
	p.cancel()
	c.mu.Lock()
	delete(c.cancels, p.call.ID)
	c.mu.Unlock()
	if err := c.conn.Send(c.ctx, msgAnswer, a); err != nil {
		// If the channel works, the answer is too long to be sent. The reason is sent instead.
		_ = c.conn.Send(c.ctx, msgAnswer, answer{ID: p.call.ID, Fault: newFault(err)})
	}
}

// handle computes the answer to one call.
func (c *session) handle(p pending) (any, error) {
	// The version comes first: in another version, a message of the same name may have another
	// meaning.
	if !c.greeted && p.typ != msgHello {
		return nil, fmt.Errorf("%w: %s before hello", wire.ErrProtocol, p.typ)
	}
	switch p.typ {
	case msgHello:
		return c.hello(p.call.Body)
	case msgSnapshot:
		return c.Root.Snapshot(p.ctx)
	case msgProfile:
		return c.profile(p.ctx, p.call.Body)
	case msgHistory:
		return c.history()
	case msgRead:
		return c.readKnob(p.ctx, p.call.Body)
	case msgApply:
		return c.change(p, c.apply)
	case msgUndo:
		return c.change(p, c.undo)
	case msgCommit:
		return c.change(p, c.commit)
	case msgConfirm:
		return c.change(p, c.confirm)
	case msgRunOpen:
		return c.openRun(p.ctx, p.call)
	case msgRunClose:
		c.endRun()
		return nil, nil
	}
	// A newer client may request more than this version supports; the connection remains usable for
	// the rest.
	return nil, fmt.Errorf("%w: this linerate (%s) does not know the call %q", errors.ErrUnsupported, c.Version, p.typ)
}

// hello answers a client's introduction.
func (c *session) hello(raw json.RawMessage) (any, error) {
	var hello helloCall
	if err := decode(raw, &hello); err != nil {
		return nil, err
	}
	if hello.Protocol != Protocol {
		return nil, fmt.Errorf(
			"%w: linerate %s on %s speaks version %d of the protocol, linerate %s on %s version %d; "+
				"install the same release on both",
			ErrVersion, hello.Linerate, hello.Host, hello.Protocol, c.Version, c.HostName, Protocol)
	}
	if !c.greeted {
		if err := c.choose(c); err != nil {
			return nil, err
		}
		c.greeted, c.confirms = true, hello.Confirms
		c.notePeer()
		if hello.Host != "" {
			c.who = fmt.Sprintf("%q (%s)", shortened(hello.Host, maxHostName), c.who)
		}
		c.Log(c.who + " came")
	}
	info := Info{
		Protocol: Protocol, Linerate: c.Version, Host: c.HostName, OS: runtime.GOOS, Arch: runtime.GOARCH,
	}
	if tuning := c.permission(); tuning != nil {
		info.AllowTuning, info.Tuning = true, tuning.String()
	}
	return info, nil
}

// Longest texts of a client that this host keeps, in bytes.
const (
	maxHostName = 253 // of a name in the DNS (RFC 1035 §2.3.4, without the root)
	maxReason   = 500
)

// shortened returns the beginning of a text of a client: the log has the name with each event, and
// the journal keeps the reasons.
func shortened(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// history reads the journal.
func (c *session) history() (any, error) {
	if c.History == nil {
		return nil, fmt.Errorf("read history: %w", errors.ErrUnsupported)
	}
	changes, err := c.History()
	return historyAnswer{journal.Redact(changes, knob.Catalogue())}, err
}
