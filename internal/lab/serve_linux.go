package lab

import (
	"context"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"
)

// Serve starts `linerate serve --allow-tuning` in the far host, with its journal in state, and
// returns when it listens. What it says goes to log, which may be nil. stop ends it in order: a
// responder that is asked to end gives back what it holds.
func (r *Running) Serve(ctx context.Context, key, state string, log io.Writer) (stop func(), err error) {
	inner, cancel := context.WithCancel(ctx)
	c := r.Far().Command(inner, "serve", "--listen", r.Far().Address+":"+port, "--allow-tuning", "--state", state)
	c.Env = []string{"LINERATE_KEY=" + key}
	first := &firstLine{seen: make(chan struct{})}
	said := &tail{}
	c.Stdout, c.Stderr = first, said
	if log != nil {
		c.Stderr = io.MultiWriter(said, log)
	}
	if err := c.Start(); err != nil {
		cancel()
		return nil, err
	}
	// Room for the one outcome, so that the waiting goroutine ends whether or not anybody still
	// asks.
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			_ = c.Signal(syscall.SIGTERM) // one that has ended already is what is wanted
			select {
			case <-ended:
			case <-time.After(killAfter):
			}
			// One that still lives is interrupted and then killed by its context; its guard takes
			// back what it left.
			cancel()
		})
	}
	select {
	case <-first.seen:
		return stop, nil
	case err := <-ended:
		cancel()
		return nil, fmt.Errorf("the far end did not start: %w%s", err, said.last())
	case <-ctx.Done():
		stop()
		return nil, ctx.Err()
	}
}
