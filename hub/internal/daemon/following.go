package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/linerate/linerate/hub/internal/timeline/follow"
	"github.com/linerate/linerate/internal/peer/agent"
)

// source is where changes and runs of this host are read: where they lie, or, if only root may look
// there, at the socket of `linerate agent`.
func source(c Config) follow.Source {
	_, err := os.ReadDir(c.State)
	if errors.Is(err, fs.ErrPermission) {
		return agent.NewClient(c.Agent)
	}
	// One that is not there is made with the first change, and then belongs to whoever makes it: a
	// hub that is not root asks the agent if there is one.
	if _, there := os.Stat(c.Agent); err != nil && there == nil {
		return agent.NewClient(c.Agent)
	}
	return agent.Local{Dir: c.State}
}

// followHost turns changes, runs, links and verdicts into events until the context ends.
func (d *daemon) followHost(ctx context.Context) {
	// A history that is still being repaired does not know yet when it ended; the follower
	// remembers for itself when it was last there.
	if err := d.follower.Begin(d.store.Status().Newest); err != nil {
		d.told("the time line", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.follower.Follow(ctx)
	}()
	for range ticks(ctx, 10*time.Second) {
		err := d.follower.Err()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			err = hinted{errors.New(
				"changes and tunes of this host are not shown: only root may read them and `linerate agent` does not run"), "linerate agent"}
		}
		if d.board.problem("events", err) {
			d.told("events", err)
		}
	}
	<-done
}

// lostWarnings says how many events of links came faster than they could be written.
func (d *daemon) lostWarnings() []string {
	if n := d.follower.Lost(); n > 0 {
		return []string{fmt.Sprintf(
			"events: %d of links were left out, because they came faster than they could be written", n)}
	}
	return nil
}
