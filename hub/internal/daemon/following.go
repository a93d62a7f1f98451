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

// source returns where the hub reads changes and runs of this host: from their directory, or, if
// only root may read that, from the socket of `linerate agent`.
func source(c Config) follow.Source {
	_, err := os.ReadDir(c.State)
	if errors.Is(err, fs.ErrPermission) {
		return agent.NewClient(c.Agent)
	}
	// The first change creates the directory, which then belongs to the user that made the change.
	// A hub that is not root therefore asks the agent if one runs.
	if _, there := os.Stat(c.Agent); err != nil && there == nil {
		return agent.NewClient(c.Agent)
	}
	return agent.Local{Dir: c.State}
}

// followHost turns changes, runs, links and verdicts into events until the context ends.
func (d *daemon) followHost(ctx context.Context) {
	// A history that is still loading does not know yet when it ended; the follower has its own
	// record of when the hub last ran.
	if err := d.follower.Begin(d.store.Status().Newest); err != nil {
		d.report("the timeline", err)
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
				"the page does not show changes and tunes of this host: only root may read them, and `linerate " +
					"agent` does not run"), "linerate agent"}
		}
		if d.board.problem("events", err) {
			d.report("events", err)
		}
	}
	<-done
}

// lostWarnings reports how many link events were lost because they came too fast.
func (d *daemon) lostWarnings() []string {
	if n := d.follower.Lost(); n > 0 {
		return []string{fmt.Sprintf(
			"events: %d link events are lost: they came faster than the hub could write them", n)}
	}
	return nil
}
