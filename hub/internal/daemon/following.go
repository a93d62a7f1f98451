package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/base/runs"
	"github.com/linerate/linerate/internal/change/journal"
	"github.com/linerate/linerate/internal/firewall/tally"
	"github.com/linerate/linerate/internal/peer/agent"
)

// hostSource reads changes, runs and measurements of this host. It reads their directory, and asks
// the socket of `linerate agent` for what only root may read: the directory is open to all, the
// runs in it are not. It decides at each look, so an agent may start later than the hub.
type hostSource struct {
	local agent.Local
	far   *agent.Client

	// absent: at the latest look the directory did not exist and an agent answered. The first
	// change creates the directory, which then belongs to the user that made the change.
	absent bool
}

func newHostSource(c Config) *hostSource {
	return &hostSource{local: agent.Local{Dir: c.State}, far: agent.NewClient(c.Agent)}
}

// Stamp begins a look: the follower asks for it first.
func (s *hostSource) Stamp(ctx context.Context) (string, error) {
	s.absent = false
	if _, err := os.Stat(s.local.Dir); errors.Is(err, fs.ErrNotExist) {
		if stamp, err := s.far.Stamp(ctx); err == nil {
			s.absent = true
			return stamp, nil
		}
	}
	return either(s, everything, func() (string, error) { return s.local.Stamp(ctx) },
		func() (string, error) { return s.far.Stamp(ctx) })
}

// State returns the state directory of the host.
func (s *hostSource) State(ctx context.Context) (string, error) {
	return either(s, everything, func() (string, error) { return s.local.State(ctx) },
		func() (string, error) { return s.far.State(ctx) })
}

// History returns all changes, oldest first.
func (s *hostSource) History(ctx context.Context) ([]journal.Change, error) {
	return either(s, everything, func() ([]journal.Change, error) { return s.local.History(ctx) },
		func() ([]journal.Change, error) { return s.far.History(ctx) })
}

// Runs returns the ids of the stored documents of a kind, newest first.
func (s *hostSource) Runs(ctx context.Context, kind runs.Kind) ([]string, error) {
	return either(s, documents, func() ([]string, error) { return s.local.Runs(ctx, kind) },
		func() ([]string, error) { return s.far.Runs(ctx, kind) })
}

// Run returns a stored document.
func (s *hostSource) Run(ctx context.Context, kind runs.Kind, id string) ([]byte, error) {
	return either(s, documents, func() ([]byte, error) { return s.local.Run(ctx, kind, id) },
		func() ([]byte, error) { return s.far.Run(ctx, kind, id) })
}

// Rules returns the counters of the packet filter's rules, and how many are left out.
func (s *hostSource) Rules(ctx context.Context) ([]tally.Count, int, error) {
	type answer struct {
		counts []tally.Count
		left   int
	}
	of := func(rules func(context.Context) ([]tally.Count, int, error)) func() (answer, error) {
		return func() (answer, error) {
			counts, left, err := rules(ctx)
			return answer{counts, left}, err
		}
	}
	a, err := either(s, counters, of(s.local.Rules), of(s.far.Rules))
	return a.counts, a.left, err
}

// What a question is about, for people. Who may not read changes may read nothing of the rest.
const (
	documents  = "tunes and measurements from the command line"
	everything = "changes, tunes and measurements from the command line"
	counters   = "counters of firewall rules"
)

// either reads the directory, and asks the agent for what this user may not read there.
func either[T any](s *hostSource, what string, local, far func() (T, error)) (T, error) {
	if s.absent {
		return far()
	}
	v, err := local()
	if !errors.Is(err, fs.ErrPermission) {
		return v, err
	}
	v, err = far()
	if err == nil || errors.Is(err, fs.ErrNotExist) && !noAgent(err) {
		return v, err // the second: the agent has no such document
	}
	return v, &closedError{what: what, agent: err}
}

// closedError reports data that only root may read, and why the agent did not return them.
type closedError struct {
	what  string
	agent error
}

func (e *closedError) Error() string {
	return fmt.Sprintf("the page does not show %s of this host: only root may read them, and %s", e.what, e.why())
}

func (e *closedError) why() string {
	switch {
	case noAgent(e.agent):
		return "`linerate agent` does not run"
	case errors.Is(e.agent, fs.ErrPermission):
		return "the socket of `linerate agent` refuses the user of this hub, who is not in the group of the socket"
	}
	return "`linerate agent` does not answer: " + e.agent.Error()
}

// noAgent reports whether no process listens on the socket.
func noAgent(err error) bool {
	var call *os.SyscallError
	return errors.As(err, &call) && (call.Err == syscall.ENOENT || call.Err == syscall.ECONNREFUSED)
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
		if closed, ok := errors.AsType[*closedError](err); ok {
			err = hinted{closed, "linerate agent"}
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
