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
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/wire"
)

// Bounds on how long the far side may take for each kind of call. A snapshot of a host with
// hundreds of queues takes seconds; a driver may reinitialize its NIC when a feature changes.
const (
	readBound     = 15 * time.Second
	snapshotBound = 60 * time.Second
	changeBound   = 90 * time.Second
	runOpenBound  = 4 * retellEvery // from one note to the next
	// the whole wait for a place, which the far side bounds too
	admissionBound = admissionWait + runOpenBound
	closeBound     = 10 * time.Second
	// cancelGrace is how long the answer to a call may still take after the caller gave up, so that
	// the client learns of a change that was made.
	cancelGrace = 3 * time.Second
	// sshBound leaves time to type a passphrase.
	sshBound = 2 * time.Minute
)

// ErrNoKey reports a running serve as the target without a key for it.
var ErrNoKey error = noKey{}

type noKey struct{}

func (noKey) Error() string { return "no key given" }
func (noKey) Hint() string {
	return "set LINERATE_KEY to what `linerate serve` printed on that host, or give --key-file FILE"
}

// ConnectOptions say how to reach a far host and what to send it. Zero values have defaults.
type ConnectOptions struct {
	Key string // as users type it; not needed for ssh
	// IPv4 or IPv6 only: "4" or "6"; empty: what the resolver prefers
	Family string
	// From is the address of this host for the control channel; the zero value: the route chooses.
	// Tests have their own in traffic.Spec.
	From netip.Addr
	// for connection and greeting; default 10 s. ssh gets at least 2 min, because it may ask for a
	// passphrase
	Timeout    time.Duration
	SSHCommand []string  // command that ssh runs at the far end; default wire.DefaultSSHCommand
	Version    string    // of this linerate, for display
	HostName   string    // of this host; default os.Hostname
	Root       host.Root // source of this host's counters around tests; default live
	// called while a call waits, for instance for another client's test; must not block; may be nil
	Notify  func(message string)
	Curtail <-chan struct{} // closing it ends tests early, see traffic.Link
	// how long the far guard keeps a trial without another change; default 15 min, 0 < TrialFor ≤
	// the far side's bound
	TrialFor time.Duration
	Run      string // name of the run that changes belong to, for the far journal; empty: none

	cancelGrace time.Duration // shorter in tests; 0: the constant
}

// defaultTrialFor must outlast the longest experiment with one setting. The loss of the connection
// ends a trial much sooner.
const defaultTrialFor = 15 * time.Minute

// Client is a connection to one far host. Its methods may be called from several goroutines. Calls
// are answered one after another, and one test runs at a time. Trials made through a Client end
// with it.
type Client struct {
	conn     *wire.Conn
	target   Target
	dataAddr string // host:port for data connections
	peerIP   string
	options  ConnectOptions
	info     Info
	testing  chan struct{} // one place: the running test holds it, so a second one waits here and not at the far side

	// closed when the reader has ended; all messages are delivered and cause is set by then
	finished chan struct{}

	mu      sync.Mutex
	nextID  uint64
	waiting map[uint64]inquiry // by the id of the call
	box     *mailbox           // of the running test
	cause   error              // why the channel ended
	parting string             // why the far side ends it, in its own words
}

// inquiry is a call that waits for its answer.
type inquiry struct {
	answer chan answer   // has room for the one answer, so the reader never waits for a caller that has gone
	note   chan struct{} // one place: the far side is still working on the call
}

// Connect connects to the far host that target names and exchanges greetings. Errors: ErrTarget,
// ErrNoKey and wire.ErrBadKey for what the user typed; wire.ErrUnreachable, ErrWrongKey,
// ErrNotLinerate and ErrPeerGone from the connection; ErrVersion and ErrBusy from the far side.
func Connect(ctx context.Context, target string, o ConnectOptions) (*Client, error) {
	t, err := ParseTarget(target)
	if err != nil {
		return nil, err
	}
	o.cancelGrace = cmp.Or(o.cancelGrace, cancelGrace)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.TrialFor = cmp.Or(o.TrialFor, defaultTrialFor)
	if o.HostName == "" {
		// Without a name, the far side's log has only the address.
		o.HostName, _ = os.Hostname()
	}
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	if t.SSH != nil {
		// The user's --timeout may lengthen the bound, but must not interrupt a user who types a
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
// answered; the name is not resolved again.
func (c *Client) reach(ctx context.Context) error {
	if c.options.Key == "" {
		return fmt.Errorf("connect to %s: %w", c.target.Addr, ErrNoKey)
	}
	key, err := wire.ParseKey(c.options.Key)
	if err != nil {
		return err
	}
	addr := c.target.Addr
	if c.options.Family != "" {
		name, port, err := net.SplitHostPort(addr)
		if err == nil {
			name, err = InFamily(ctx, c.options.Family, name)
		}
		if err != nil {
			return err
		}
		addr = net.JoinHostPort(name, port)
	}
	if c.conn, err = wire.DialFrom(ctx, c.options.From, addr, key); err != nil {
		return err
	}
	c.dataAddr = c.conn.RemoteAddr().String()
	c.peerIP, _, _ = net.SplitHostPort(c.dataAddr)
	return nil
}

// InFamily returns an address of one family ("4" or "6") of a host name; an address of that family
// is its own. The error is a *wire.Error of kind wire.ErrUnreachable.
func InFamily(ctx context.Context, family, name string) (string, error) {
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip"+family, name)
	if err != nil || len(found) == 0 {
		return "", &wire.Error{Op: "find an IPv" + family + " address of", Peer: name, Kind: wire.ErrUnreachable, Err: err,
			Advice: "leave --ipv4 and --ipv6 out to take any address of it"}
	}
	return found[0].Unmap().String(), nil
}

// reachSSH starts the far end over ssh.
func (c *Client) reachSSH(ctx context.Context) error {
	var options []string
	if c.options.Family != "" {
		options = append(options, "-"+c.options.Family)
	}
	if c.options.From.IsValid() {
		options = append(options, "-b", c.options.From.String())
	}
	conn, dataAddr, err := wire.SSH(ctx, c.target.SSH.String(), c.options.SSHCommand, options...)
	if err != nil {
		return err
	}
	c.conn, c.dataAddr = conn, dataAddr
	name, port, err := net.SplitHostPort(dataAddr)
	if err == nil {
		// All measurements use one address. The resolver returns addresses that this host has a
		// route to first (RFC 6724).
		var addrs []netip.Addr
		if addrs, err = net.DefaultResolver.LookupNetIP(ctx, "ip"+c.options.Family, name); err == nil && len(addrs) > 0 {
			c.peerIP = addrs[0].Unmap().String()
			c.dataAddr = net.JoinHostPort(c.peerIP, port)
			return nil
		}
	}
	_ = conn.Close()
	return &wire.Error{
		Op: "find the address of", Peer: c.target.String(), Kind: wire.ErrUnreachable, Err: err,
		Advice: "ssh may reach it by other means, but tests need a TCP path of their own: " +
			"give it a HostName that resolves here",
	}
}

// greet exchanges the first messages.
func (c *Client) greet(ctx context.Context) (*Client, error) {
	go c.read()
	hello := helloCall{Protocol: Protocol, Linerate: c.options.Version, Host: c.options.HostName,
		Confirms: true}
	err := c.call(ctx, msgHello, hello, &c.info, c.options.Timeout)
	// The far side compares too; this check is for a version older than that comparison.
	if err == nil && c.info.Protocol != Protocol {
		err = fmt.Errorf("%s: %w: it speaks version %d of the protocol, this linerate %d", c.target, ErrVersion,
			c.info.Protocol, Protocol)
	}
	if err == nil {
		c.info.Host = apart(c.info.Host, c.options.HostName, c.target.String())
		return c, nil
	}
	_ = c.Close()
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		err = &wire.Error{Op: "greet", Peer: c.target.String(), Kind: wire.ErrUnreachable, Err: err,
			Advice: "is linerate still running there?"}
	}
	return nil, err
}

// apart returns the name of the far host, with the target behind it where this host has the same
// name, as clones and fresh installations do: a sentence about one of them must not be read as
// about the other.
func apart(far, near, target string) string {
	if far == "" || far != near {
		return far
	}
	return far + " (" + target + ")"
}

// Info returns what the far side reported about itself.
func (c *Client) Info() Info { return c.info }

// Done returns a channel that is closed when the connection has ended. The far host undoes the
// trials made through the connection at about that time.
func (c *Client) Done() <-chan struct{} { return c.conn.Done() }

// Close ends the connection. The far host undoes every trial that was not committed.
func (c *Client) Close() error { return c.conn.Close() }

// Snapshot reads the far host.
func (c *Client) Snapshot(ctx context.Context) (*host.Snapshot, error) {
	var s host.Snapshot
	if err := c.call(ctx, msgSnapshot, nil, &s, snapshotBound); err != nil {
		return nil, err
	}
	return &s, nil
}

// read is the goroutine that sorts the far side's messages.
func (c *Client) read() {
	var last note
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
				_ = c.conn.Close() // not this protocol; the waiting call returns that the peer is gone
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
			if n.ID == 0 {
				c.parting = admission.OneLine(n.Text)
			}
			if in, ok := c.waiting[n.ID]; ok {
				select {
				case in.note <- struct{}{}:
				default: // the caller has not read the last note, and will find both
				}
			}
			c.mu.Unlock()
			if n != last { // a repeated note only shows that the far side is alive; the user has seen it
				last = n
				c.options.Notify(n.Text)
			}
		}
	}
}

// call sends a call to the far side and waits for its answer at most bound. For a call that waits
// in the far side's queue it starts anew with every note about the call, up to admissionBound. An
// answer may have both a body and a fault.
func (c *Client) call(ctx context.Context, typ string, body, into any, bound time.Duration) error {
	return c.callThen(ctx, typ, body, into, bound, func() {})
}

// callThen is call with something to do once the call is sent.
func (c *Client) callThen(ctx context.Context, typ string, body, into any, bound time.Duration, sent func()) error {
	raw, err := encode(body)
	if err != nil {
		return fmt.Errorf("ask %s for %s: %w", c.target, typ, err)
	}
	in := inquiry{make(chan answer, 1), make(chan struct{}, 1)}
	// The reader must know the call before it is sent, because the answer may arrive before this
	// goroutine continues.
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
	// If the context ends during the write, it is unknown whether the message was sent: the far
	// side may answer before this goroutine learns that the write succeeded. The call is then
	// treated as sent, and cancelled below.
	if err := c.conn.Send(ctx, typ, call{ID: id, Body: raw}); err != nil && ctx.Err() == nil {
		return c.failed(typ, err)
	}
	sent()
	most := bound
	if typ == msgRunOpen {
		most = admissionBound
	}
	if err := c.await(ctx, in, bound, most); err != nil {
		// A change may have been made at this very moment. Its answer has the ids with which it can
		// be undone, so waiting three seconds is worthwhile. Without the ids, the end of the
		// connection undoes it.
		c.abandon(id)
		if ctx.Err() != nil {
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.cancelGrace)
			defer cancel()
			if c.await(grace, in, c.options.cancelGrace, c.options.cancelGrace) != nil {
				return c.failed(typ, err)
			}
		} else {
			return &wire.Error{Op: "ask for " + typ, Peer: c.target.String(), Kind: wire.ErrPeerGone,
				Err: fmt.Errorf("connected, but no answer for %s: %w", bound, err)}
		}
	}
	select {
	case a := <-in.answer: // the last message, if the connection has ended
		return c.accept(a, into)
	default:
		return c.failed(typ, c.cause)
	}
}

// await returns nil when the answer has arrived or the connection has ended. Otherwise it returns
// the error of ctx, or a deadline error when nothing was heard for bound, or notes alone for most.
// Time in which a large answer arrives does not count, up to wire.MostForMessage: a snapshot takes
// long over a slow path.
func (c *Client) await(ctx context.Context, in inquiry, bound, most time.Duration) error {
	step := min(bound, time.Second)
	look := time.NewTicker(step)
	defer look.Stop()
	left, arrived, extra := bound, c.conn.Arrived(), wire.MostForMessage
	for {
		select {
		case a := <-in.answer:
			in.answer <- a // put back for the caller; the channel has room again
			return nil
		case <-c.finished:
			return nil
		case <-in.note:
			left = bound
		case <-look.C:
			before := arrived
			arrived = c.conn.Arrived()
			if extra > 0 && float64(arrived-before) >= wire.LeastPace*step.Seconds() {
				extra -= step
				continue
			}
			left, most = left-step, most-step
			if left <= 0 || most <= 0 {
				return context.DeadlineExceeded
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// abandon asks the far side to drop a call. If the request cannot be sent, the connection is ending
// anyway.
func (c *Client) abandon(id uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), cancelGrace)
	defer cancel()
	_ = c.conn.Send(ctx, msgCancel, cancelCall{Cancel: id})
}

// accept decodes an answer.
func (c *Client) accept(a answer, into any) error {
	if err := decode(a.Body, into); err != nil {
		return fmt.Errorf("answer of %s: %w", c.target, err)
	}
	if a.Fault != nil {
		return newRemoteError(cmp.Or(c.info.Host, c.target.String()), a.Fault)
	}
	return nil
}

// failed adds the call and the host to an error of the channel.
func (c *Client) failed(typ string, err error) error {
	return fmt.Errorf("ask %s for %s: %w", c.target, typ, err)
}
