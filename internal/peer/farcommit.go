package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/wire"
)

const (
	// confirmWithin is how long a client may take to confirm a commit over a new connection. Five
	// SYNs of a path that loses packets take half of it.
	confirmWithin = 30 * time.Second
	// confirmBytes pass in each direction of the new connection: more than a window of small packets,
	// so that a path which drops large ones does not confirm.
	confirmBytes = 64 << 10
)

// ErrUnconfirmed: no new connection could confirm a commit, and the changes were undone.
var ErrUnconfirmed = errors.New("not confirmed over a new connection")

// commitment is a commit that waits for its confirmation.
type commitment struct {
	ids   []string
	queue *wire.DataQueue
	until time.Time
	lease time.Time // the end of the lease that the time to confirm replaces
}

// commit prepares to make trials of this client permanent. A connection that was open before a
// change may survive a change that blocks every new one, so the client has to confirm over a new
// connection. Until then the changes stay on trial, and their lease ends with the time to confirm.
func (c *session) commit(ctx context.Context, raw json.RawMessage) (any, error) {
	var body changesCall
	if err := c.open(ctx, raw, &body); err != nil {
		return nil, err
	}
	defer c.letGo()
	if !c.confirms {
		return nil, fmt.Errorf("commit: %w: this linerate (%s) wants a new connection to confirm it; "+
			"install the same release on both", ErrVersion, c.Version)
	}
	if err := c.committable(body.IDs); err != nil {
		return nil, err
	}
	c.dropCommit()
	if len(body.IDs) == 0 {
		return commitAnswer{}, nil
	}
	// The new connection must meet the settings in force, like every later one.
	if err := c.Listener.Renew(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	queue := c.Listener.Expect(wire.NewToken(), 1)
	// The token crosses the path in the clear: a stranger who reads it must neither confirm a change
	// that locks the client out, nor take the client's place.
	from, _ := netip.ParseAddr(c.ip) // unknown over ssh
	queue.Admit(from)
	c.commitment = &commitment{ids: body.IDs, queue: queue, until: time.Now().Add(c.confirmWithin),
		lease: c.leaseEnd}
	c.leaseEnd = c.commitment.until
	c.lease.Reset(c.confirmWithin)
	token := queue.Token()
	return commitAnswer{Token: &token, Within: c.confirmWithin}, nil
}

// committable checks that ids are trials of this client.
func (c *session) committable(ids []string) error {
	states := make(map[string]journal.State)
	for _, change := range c.journal.Changes() {
		states[change.ID] = change.State
	}
	for _, id := range ids {
		switch {
		case !slices.Contains(c.trials, id):
			return fmt.Errorf("commit %s: %w made through this connection", id, journal.ErrUnknownChange)
		case states[id] != journal.Trial:
			return fmt.Errorf("commit %s: its state is %s: %w", id, states[id], journal.ErrNotTrial)
		}
	}
	return nil
}

// confirm waits for the new connection and commits. Without one the changes go back at once.
func (c *session) confirm(ctx context.Context, _ json.RawMessage) (any, error) {
	pending := c.commitment
	if pending == nil {
		return nil, fmt.Errorf("confirm: %w: no commit waits", wire.ErrProtocol)
	}
	defer c.letGo()
	defer c.dropCommit()
	err := c.meet(ctx, pending)
	// The journal ignores the context once it commits. If the client gave the call up, or its
	// connection ended while the call waited behind others, the commit must not take effect: a
	// trial is promised to end, a committed change is not.
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		c.Log(fmt.Sprintf("%s did not confirm %d changes over a new connection: %v", c.who, len(pending.ids), err))
		c.undoTrials()
		return nil, fmt.Errorf("commit: undone: %w: %w", ErrUnconfirmed, err)
	}
	if err := c.mayTune(ctx); err != nil { // the lease may be over, and the journal closed
		return nil, err
	}
	if err := c.journal.Commit(ctx, pending.ids...); err != nil {
		return nil, err
	}
	c.leaseEnd = pending.lease // that of other trials
	c.lease.Reset(time.Until(c.leaseEnd))
	c.Log(fmt.Sprintf("%s committed %d changes, confirmed over a new connection", c.who, len(pending.ids)))
	return nil, nil
}

// meet accepts the new connection of a client and passes data in both directions.
func (c *session) meet(ctx context.Context, pending *commitment) error {
	ctx, cancel := context.WithDeadline(ctx, pending.until)
	defer cancel()
	conn, _, err := pending.queue.Accept(ctx)
	if err != nil {
		return err
	}
	return exchange(ctx, conn)
}

// exchange passes confirmBytes in both directions at once and closes the connection.
func exchange(ctx context.Context, conn *net.TCPConn) error {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(make([]byte, confirmBytes))
		sent <- err
	}()
	_, err := io.CopyN(io.Discard, conn, confirmBytes)
	return errors.Join(err, <-sent)
}

// dropCommit forgets a commit that was confirmed, refused or replaced.
func (c *session) dropCommit() {
	if c.commitment != nil {
		_ = c.commitment.queue.Close()
		c.commitment = nil
	}
}
