package lab

import (
	"context"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"
)

// Serve starts `linerate serve --allow-tuning=d3` in the far host, with its journal in state, and
// returns when it listens. Its stderr goes to log, which may be nil. stop ends the server in order,
// so that it takes back the changes that it holds.
func (r *Running) Serve(ctx context.Context, key, state string, log io.Writer) (stop func(), err error) {
	inner, cancel := context.WithCancel(ctx)
	c := r.Far().Command(inner, "serve", "--listen", r.Far().Address+":"+port, "--allow-tuning=d3", "--state", state)
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
	// Room for the one result, so that the waiting goroutine always ends.
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			_ = c.Signal(syscall.SIGTERM) // fails if the server has ended
			select {
			case <-ended:
			case <-time.After(killAfter):
			}
			// The context interrupts and then kills a server that still runs; its guard takes back
			// the changes that it left.
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
