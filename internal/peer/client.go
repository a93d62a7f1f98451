package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/wire"
)

// How long the far side may take for each kind of call. Reading a snapshot of a host with hundreds
// of queues takes seconds; a driver may re-initialise its card when a feature is turned.
const (
	readBound     = 15 * time.Second
	snapshotBound = 60 * time.Second
	changeBound   = 90 * time.Second
	runOpenBound  = 4 * retellEvery // from one note to the next; how long a test may wait in all is up to the far side
	closeBound    = 10 * time.Second
	// cancelGrace is how long a call that its caller gave up may still bring its answer, so that a
	// change that was made is known of.
	cancelGrace = 3 * time.Second
	// sshBound is for people who type a passphrase.
	sshBound = 2 * time.Minute
)

// ErrNoKey says that a running serve was named as the target, and no key was given for it.
var ErrNoKey error = noKey{}

type noKey struct{}

func (noKey) Error() string { return "no key given" }
func (noKey) Hint() string {
	return "give --key (or LINERATE_KEY) what `linerate serve` printed on that host"
}

// ConnectOptions say how to reach a far host and what it is told. Zero values have defaults.
type ConnectOptions struct {
	Key string // as people type it; not needed for ssh
	// for connection and greeting; default 10 s. ssh gets 2 min or more, since it may ask for a
	// passphrase
	Timeout    time.Duration
	SSHCommand []string  // what ssh runs at the far end; default wire.DefaultSSHCommand
	Version    string    // of this linerate, for people
	HostName   string    // of this host; default os.Hostname
	Root       host.Root // where the counters of this host are read around tests; default live
	// told while a call waits, for instance for another client's test; must not block; may be nil
	Notify  func(message string)
	Curtail <-chan struct{} // closed: tests end early, see traffic.Link
	// how long the far guard lets a trial last without another change; default 15 min, 0 < TrialFor
	// ≤ the far side's bound
	TrialFor time.Duration
}

// defaultTrialFor must outlast the longest experiment with one setting; connection loss ends a
// trial much sooner.
const defaultTrialFor = 15 * time.Minute

// Client is one far host. Its methods may be called from several goroutines; calls are answered one
// after the other, and one test runs at a time. Trial changes made through it end with it.
type Client struct {
	conn     *wire.Conn
	target   Target
	dataAddr string // host:port for data connections
	peerIP   string
	options  ConnectOptions
	info     Info
	testing  chan struct{} // one place: the test that runs, so that a second one waits here and not at the far side

	// closed when the reader has ended; everything that came is delivered and cause is set by then
	finished chan struct{}

	mu      sync.Mutex
	nextID  uint64
	waiting map[uint64]inquiry // by the id of the call
	box     *mailbox           // of the test that runs
	cause   error              // why the channel has ended
}

// inquiry is a call that waits for its answer.
type inquiry struct {
	answer chan answer   // has room for the one that comes, so that the reader never waits for a caller that has gone
	note   chan struct{} // one place: the far side has said that it has not forgotten
}

// Connect reaches the far host that target names, and makes acquaintance. Errors: ErrTarget,
// ErrNoKey and wire.ErrBadKey for what was typed wrong; wire.ErrUnreachable, ErrWrongKey,
// ErrNotLinerate, ErrPeerGone; ErrVersion and ErrBusy from the far side.
func Connect(ctx context.Context, target string, o ConnectOptions) (*Client, error) {
	t, err := ParseTarget(target)
	if err != nil {
		return nil, err
	}
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.TrialFor = cmp.Or(o.TrialFor, defaultTrialFor)
	if o.HostName == "" {
		// Without a name the far side's log has the address alone.
		o.HostName, _ = os.Hostname()
	}
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	if t.SSH != nil {
		// A user's own --timeout may lengthen it, but never cut off somebody who is typing a
		// passphrase.
		o.Timeout = max(o.Timeout, sshBound)
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	c := &Client{
		target: t, options: o, waiting: make(map[uint64]inquiry),
		testing: make(chan struct{}, 1), finished: make(chan struct{}),
	}
	if t.SSH != nil {
		err = c.reachSSH(ctx)
	} else {
		err = c.reach(ctx)
	}
	if err != nil {
		return nil, err
	}
	return c.greet(ctx)
}

// reach opens the control channel to a running serve. Data connections then go to the address that
// answered, not to the name again.
func (c *Client) reach(ctx context.Context) error {
	if c.options.Key == "" {
		return fmt.Errorf("connect to %s: %w", c.target.Addr, ErrNoKey)
	}
	key, err := wire.ParseKey(c.options.Key)
	if err != nil {
		return err
	}
	if c.conn, err = wire.Dial(ctx, c.target.Addr, key); err != nil {
		return err
	}
	c.dataAddr = c.conn.RemoteAddr().String()
	c.peerIP, _, _ = net.SplitHostPort(c.dataAddr)
	return nil
}

// reachSSH starts the far end over ssh.
func (c *Client) reachSSH(ctx context.Context) error {
	conn, dataAddr, err := wire.SSH(ctx, c.target.SSH.String(), c.options.SSHCommand)
	if err != nil {
		return err
	}
	c.conn, c.dataAddr = conn, dataAddr
	name, port, err := net.SplitHostPort(dataAddr)
	if err == nil {
		// One address for everything that is measured; the resolver sorts those first that this
		// host has a route to (RFC 6724).
		var addrs []netip.Addr
		if addrs, err = net.DefaultResolver.LookupNetIP(ctx, "ip", name); err == nil && len(addrs) > 0 {
			c.peerIP = addrs[0].Unmap().String()
			c.dataAddr = net.JoinHostPort(c.peerIP, port)
			return nil
		}
	}
	_ = conn.Close()
	return &wire.Error{
		Op: "find the address of", Peer: c.target.String(), Kind: wire.ErrUnreachable, Err: err,
		Advice: "ssh reaches it by its own means, but tests need a TCP path of their own: give it a HostName that resolves here",
	}
}

// greet exchanges the first messages.
func (c *Client) greet(ctx context.Context) (*Client, error) {
	go c.read()
	hello := helloCall{Protocol: Protocol, Linerate: c.options.Version, Host: c.options.HostName}
	err := c.call(ctx, msgHello, hello, &c.info, c.options.Timeout)
	// The far side compares as well; this is for one that is older than the comparison.
	if err == nil && c.info.Protocol != Protocol {
		err = fmt.Errorf("%s: %w: it speaks version %d of the protocol, this linerate %d", c.target, ErrVersion,
			c.info.Protocol, Protocol)
	}
	if err == nil {
		return c, nil
	}
	_ = c.Close()
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		err = &wire.Error{Op: "greet", Peer: c.target.String(), Kind: wire.ErrUnreachable, Err: err,
			Advice: "is the linerate there alive?"}
	}
	return nil, err
}

// Info gives what the far side said of itself.
func (c *Client) Info() Info { return c.info }

// Done is closed when the connection has ended; by then, or soon after, the far host takes back the
// trials made through it.
func (c *Client) Done() <-chan struct{} { return c.conn.Done() }

// Close ends the connection. The far host takes back every trial that was not committed.
func (c *Client) Close() error { return c.conn.Close() }

// Snapshot reads the far host.
func (c *Client) Snapshot(ctx context.Context) (*host.Snapshot, error) {
	var s host.Snapshot
	if err := c.call(ctx, msgSnapshot, nil, &s, snapshotBound); err != nil {
		return nil, err
	}
	return &s, nil
}

// read is the goroutine that sorts what the far side sends.
func (c *Client) read() {
	var told note
	for {
		m, err := c.conn.Receive(context.Background())
		if err != nil {
			c.mu.Lock()
			c.cause = err
			if c.box != nil {
				c.box.close()
			}
			c.mu.Unlock()
			close(c.finished)
			return
		}
		switch {
		case strings.HasPrefix(m.Type, testPrefix):
			c.mu.Lock()
			if c.box != nil {
				c.box.put(m)
			}
			c.mu.Unlock()
		case m.Type == msgAnswer:
			var a answer
			if decode(m.Body, &a) != nil {
				_ = c.conn.Close() // not this protocol; the call that waits is told that the peer is gone
				continue
			}
			c.mu.Lock()
			if in, ok := c.waiting[a.ID]; ok {
				in.answer <- a
				delete(c.waiting, a.ID)
			}
			c.mu.Unlock()
		case m.Type == msgNote:
			var n note
			if decode(m.Body, &n) != nil {
				continue
			}
			c.mu.Lock()
			if in, ok := c.waiting[n.ID]; ok {
				select {
				case in.note <- struct{}{}:
				default: // the caller has not seen the last one, and will find both
				}
			}
			c.mu.Unlock()
			if n != told { // what is only said again is for this program and not for people
				told = n
				c.options.Notify(n.Text)
			}
		}
	}
}

// call asks the far side for something and waits no longer than bound for the answer, counted anew
// from every note that the far side sends about it. An answer may have a body beside its fault.
func (c *Client) call(ctx context.Context, typ string, body, into any, bound time.Duration) error {
	raw, err := encode(body)
	if err != nil {
		return fmt.Errorf("ask %s for %s: %w", c.target, typ, err)
	}
	in := inquiry{make(chan answer, 1), make(chan struct{}, 1)}
	// Known to the reader before it is sent: the answer may be faster than this goroutine.
	c.mu.Lock()
	c.nextID++
	id := c.nextID
	c.waiting[id] = in
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	if err := ctx.Err(); err != nil {
		return c.failed(typ, err) // nothing was sent
	}
	// A context that ends while the message is on its way leaves open whether it went: the far side
	// may answer (or tell that it waits) before this goroutine learns that the message was written.
	// So it is then treated as sent, and called back below.
	if err := c.conn.Send(ctx, typ, call{ID: id, Body: raw}); err != nil && ctx.Err() == nil {
		return c.failed(typ, err)
	}
	if err := c.await(ctx, in, bound); err != nil {
		// A change may have been made at this very moment. Its answer has the ids by which it can
		// be taken back, so it is worth three seconds; without them the end of the connection takes
		// it back.
		c.abandon(id)
		if ctx.Err() != nil {
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelGrace)
			defer cancel()
			if c.await(grace, in, cancelGrace) != nil {
				return c.failed(typ, err)
			}
		} else {
			return &wire.Error{Op: "ask for " + typ, Peer: c.target.String(), Kind: wire.ErrPeerGone,
				Err: fmt.Errorf("connected, but no answer for %s: %w", bound, err)}
		}
	}
	select {
	case a := <-in.answer: // the last thing that came, if the connection has ended
		return c.accept(a, into)
	default:
		return c.failed(typ, c.cause)
	}
}

// await returns nil when the answer is there or none will ever come, and otherwise the error of
// ctx, or that of a deadline when nothing was heard for bound.
func (c *Client) await(ctx context.Context, in inquiry, bound time.Duration) error {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	for {
		select {
		case a := <-in.answer:
			in.answer <- a // for the caller; the room is free again
			return nil
		case <-c.finished:
			return nil
		case <-in.note:
			timer.Reset(bound)
		case <-timer.C:
			return context.DeadlineExceeded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// abandon tells the far side that nobody waits for an answer any more. If that cannot be said
// either, the connection is ending anyway.
func (c *Client) abandon(id uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), cancelGrace)
	defer cancel()
	_ = c.conn.Send(ctx, msgCancel, cancelCall{Cancel: id})
}

// accept unpacks an answer.
func (c *Client) accept(a answer, into any) error {
	if err := decode(a.Body, into); err != nil {
		return fmt.Errorf("answer of %s: %w", c.target, err)
	}
	if a.Fault != nil {
		return newRemoteError(cmp.Or(c.info.Host, c.target.String()), a.Fault)
	}
	return nil
}

// failed names the call and the host of a channel's error.
func (c *Client) failed(typ string, err error) error {
	return fmt.Errorf("ask %s for %s: %w", c.target, typ, err)
}
