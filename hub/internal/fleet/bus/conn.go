package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// The subjects.
const (
	hostPrefix  = "lr.h."
	groupPrefix = "lr.g."
	allPrefix   = "lr.all."
	upPrefix    = "lr.up."
)

// ToHost returns the subject of a message to one host.
func ToHost(id, kind string) string { return hostPrefix + id + "." + kind }

// ToGroup returns the subject of a message to a group.
func ToGroup(group, kind string) string { return groupPrefix + group + "." + kind }

// ToAll returns the subject of a message to every host.
func ToAll(kind string) string { return allPrefix + kind }

// FromHost returns the subject of a message of one host; with the id "*" that of any host.
func FromHost(id, kind string) string { return upPrefix + id + "." + kind }

// Sender returns which host sent a message, and its kind. The server lets a host write only below
// its own id, so the answer cannot be forged by another host.
func Sender(subject string) (id, kind string, ok bool) {
	rest, ok := strings.CutPrefix(subject, upPrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ".")
}

// Message is what a subscription receives. Data is valid until the handler returns.
type Message struct {
	Subject string
	Reply   string
	Data    []byte
	Absent  bool // no connection listens where a message with this subject as its reply was sent
}

// pending is how much may wait in this process for the handler of a subscription.
const (
	pendingMessages = 1 << 20
	pendingBytes    = 128 << 20
)

// Conn is a connection to the bus. Its methods may be called from any number of goroutines.
type Conn struct {
	nc     *nats.Conn
	lost   atomic.Int64 // times that a message was, or may have been, lost on its way into a handler
	denied chan error
}

func newConn(nc *nats.Conn) *Conn {
	c := &Conn{nc: nc, denied: make(chan error, 1)}
	inner := nc.Opts.AsyncErrorCB
	nc.SetErrorHandler(func(nc *nats.Conn, s *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrSlowConsumer) {
			c.lost.Add(1)
		}
		if errors.Is(err, nats.ErrPermissionViolation) {
			select {
			case c.denied <- fmt.Errorf("%w: %w", ErrDenied, err):
			default:
			}
		}
		if inner != nil {
			inner(nc, s, err)
		}
	})
	before := nc.Opts.DisconnectedErrCB
	nc.SetDisconnectErrHandler(func(nc *nats.Conn, err error) {
		if !nc.IsClosed() {
			c.lost.Add(1)
		}
		if before != nil {
			before(nc, err)
		}
	})
	return c
}

// Dialing says how a host connects.
type Dialing struct {
	URLs     []string
	TLS      *tls.Config
	Key      Key
	Identity func() (string, error) // returns the current JWT; called for every connection
	Name     string                 // shown by the server
	Longest  time.Duration          // between two attempts; 0: a minute
	// Events, each of which may be nil. They must return soon.
	Connected    func()
	Disconnected func(error)
}

// ErrDenied reports that the server refused a subject: the host's rights are not what it expects.
var ErrDenied = errors.New("the bus refuses a subject")

// Dial starts to connect, and returns at once. The connection retries for ever, with a pause that
// doubles up to Longest and is drawn anew from its whole range each time, so that hosts which lost
// their hub at the same moment do not return at the same moment. It keeps nothing for later: a
// message that is sent while the connection is down is lost, because an answer that comes late
// answers nothing.
func Dial(d Dialing) (*Conn, error) {
	longest := d.Longest
	if longest == 0 {
		longest = time.Minute
	}
	call := func(f func()) {
		if f != nil {
			f()
		}
	}
	nc, err := nats.Connect(strings.Join(d.URLs, ","),
		nats.Name(d.Name), nats.Secure(d.TLS), nats.TLSHandshakeFirst(), nats.Timeout(handshakeWithin),
		nats.UserJWT(d.Identity, d.Key.Sign),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.IgnoreAuthErrorAbort(), nats.PingInterval(pingEvery), nats.NoEcho(),
		nats.CustomReconnectDelay(func(attempts int) time.Duration { return Pause(attempts, longest) }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // otherwise printed on stderr
		nats.ConnectHandler(func(*nats.Conn) { call(d.Connected) }),
		nats.ReconnectHandler(func(*nats.Conn) { call(d.Connected) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if d.Disconnected != nil {
				d.Disconnected(err)
			}
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("connect to the bus: %w", err)
	}
	return newConn(nc), nil
}

// Pause draws the time before the next attempt: from zero to two seconds at first, twice that with
// each failure, up to longest.
func Pause(attempts int, longest time.Duration) time.Duration {
	most := min(time.Second<<min(max(attempts, 1), 16), longest)
	return rand.N(most)
}

// Send sends a message; reply is where an answer goes, and may be empty.
func (c *Conn) Send(subject, reply string, data []byte) error {
	if reply == "" {
		return c.nc.Publish(subject, data)
	}
	return c.nc.PublishRequest(subject, reply, data)
}

// Subscription is an interest in a subject.
type Subscription struct{ s *nats.Subscription }

// Subscribe calls the handler for each message, one at a time, until the subscription or the
// connection is closed.
func (c *Conn) Subscribe(subject string, handler func(Message)) (*Subscription, error) {
	s, err := c.nc.Subscribe(subject, func(m *nats.Msg) {
		handler(Message{Subject: m.Subject, Reply: m.Reply, Data: m.Data,
			Absent: len(m.Data) == 0 && m.Header.Get("Status") == "503"})
	})
	if err == nil {
		err = s.SetPendingLimits(pendingMessages, pendingBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("subscribe %s: %w", subject, err)
	}
	return &Subscription{s}, nil
}

// Close ends the interest.
func (s *Subscription) Close() error { return s.s.Unsubscribe() }

// Flush returns once the server has processed everything sent so far.
// It waits at most as long as for a handshake.
func (c *Conn) Flush(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, handshakeWithin)
	defer stop()
	return c.nc.FlushWithContext(ctx)
}

// Lost returns how often this connection was cut, or dropped messages because a handler was slow.
// A gathering during which it grows is incomplete, and says nothing about hosts that did not
// answer.
func (c *Conn) Lost() int64 { return c.lost.Load() }

// Denied receives an [ErrDenied] when the server refused a subject: that leaves the connection
// open, and would otherwise look like silence.
func (c *Conn) Denied() <-chan error { return c.denied }

// Up reports whether the connection stands.
func (c *Conn) Up() bool { return c.nc.IsConnected() }

// Bytes returns what the connection has received and sent, in bytes of NATS's protocol before TLS.
func (c *Conn) Bytes() (in, out uint64) {
	s := c.nc.Stats()
	return s.InBytes, s.OutBytes
}

// Again ends the connection and opens it anew, for instance with a new identity.
func (c *Conn) Again() error { return c.nc.ForceReconnect() }

// Close ends the connection for good.
func (c *Conn) Close() { c.nc.Close() }
