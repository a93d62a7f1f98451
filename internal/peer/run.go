package peer

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// Run runs one test against the far host; see traffic.Run for progress and errors. While other
// clients' tests run there, Run waits, reports through ConnectOptions.Notify how many come first,
// and returns ErrBusy after five minutes. If the far end goes away meanwhile, the error is
// wire.ErrPeerGone, whatever its last message was.
func (c *Client) Run(ctx context.Context, spec traffic.Spec, progress func(traffic.Interval)) (result *traffic.Result,
	err error) {
	// A specification that makes no sense fails here; the far side only sees valid ones.
	spec, err = spec.Normalize()
	if err != nil {
		return nil, err
	}
	select {
	// Test messages carry no id, so two tests on one channel could not be separated.
	case c.testing <- struct{}{}:
		defer func() { <-c.testing }()
	case <-ctx.Done():
		return nil, fmt.Errorf("run test against %s: %w", c.target, ctx.Err())
	}
	var opened runAnswer
	// This call may wait for other clients' tests.
	opening, _, cancel := traffic.Heed(ctx, c.options.Curtail)
	defer cancel()
	if err := c.call(opening, msgRunOpen, runCall{spec}, &opened, runOpenBound); err != nil {
		return nil, err
	}
	// Both ends generate the load, so both know how long it may crowd out the channel.
	defer c.conn.Bear(traffic.Silence(spec))()
	// Attached before the test's first message goes out, so that no answer to it is missed.
	box := newMailbox(c.conn)
	c.attach(box)
	defer func() {
		c.attach(nil)
		// The far side ends an unclosed test on its own. The outcome only shows whether the far
		// side is still there: a server that is ending may send the signal that ended it as the
		// reason, but that signal was its own host's.
		closed := c.call(context.WithoutCancel(ctx), msgRunClose, nil, nil, closeBound)
		if errors.Is(err, traffic.ErrFar) && errors.Is(closed, wire.ErrPeerGone) {
			err = fmt.Errorf("%s test: %w", spec.Test, closed)
		}
		if errors.Is(err, wire.ErrPeerGone) {
			err = c.gone(spec, err)
		}
	}()
	link := traffic.Link{
		Control: box,
		Dial: func(ctx context.Context, index int, o wire.DataOptions) (*net.TCPConn, error) {
			return wire.DialData(ctx, c.dataAddr, opened.Token, index, o)
		},
		PeerIP:   c.peerIP,
		Sample:   c.options.Root.Counters,
		HostName: c.options.HostName,
		Curtail:  c.options.Curtail,
	}
	return traffic.Run(ctx, link, spec, progress)
}

// gone returns the error of a test that the end of the connection has cut off.
func (c *Client) gone(spec traffic.Spec, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parting != "" {
		return parted{fmt.Sprintf("%s test: %s", spec.Test, c.parting), err}
	}
	return gone{err}
}

// parted reports that the far end has ended the connection on purpose, with its reason.
type parted struct {
	text string
	error
}

func (p parted) Error() string { return p.text }
func (p parted) Unwrap() error { return p.error }

// Hint returns what the user can do.
func (parted) Hint() string { return "the log of `linerate serve` on that host says more" }

// gone reports that the far end went away in the middle of a test. The cause is whichever operation
// failed first, most often a read or a write.
type gone struct{ error }

func (g gone) Unwrap() error { return g.error }

// Hint returns what the user can do.
func (gone) Hint() string {
	return "does `linerate serve` still run on the other host, and is the path to it still up?"
}

// attach makes box the receiver of test messages until the connection ends.
func (c *Client) attach(box *mailbox) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.box = box
	if box == nil {
		return
	}
	select {
	case <-c.finished:
		box.close() // the reader may have ended already, and could not close it
	default:
	}
}
