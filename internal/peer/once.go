package peer

import (
	"context"
	"fmt"
)

// errTaken refuses every client but the first one.
var errTaken error = taken{}

type taken struct{}

func (taken) Error() string        { return "serve answers one client only, and another came first" }
func (taken) Is(target error) bool { return target == ErrBusy }
func (taken) Hint() string         { return "start serve there again, without --once for more clients" }

// choose makes a client that has said hello the only one, or refuses it.
func (s *server) choose(c *session) error {
	if !s.Once {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chosen != nil {
		return errTaken
	}
	s.chosen = c
	return nil
}

// finish ends Serve with a result, if it is for one client; the first result counts.
func (s *server) finish(err error) {
	if !s.Once {
		return
	}
	select {
	case s.once <- err:
	default:
	}
}

// expireOnce ends Serve when no client has come before its key expired.
func (s *server) expireOnce() {
	s.mu.Lock()
	came := s.chosen != nil
	s.mu.Unlock()
	if !came {
		s.finish(fmt.Errorf("serve: no client came within %s: %w", s.KeyExpires, ErrKeyExpired))
	}
}

// watchOnce ends Serve when its one client has left, until the returned function is called.
func (s *server) watchOnce(cancel context.CancelFunc) (end func()) {
	if !s.Once {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case err := <-s.once:
			s.once <- err // for result
			cancel()
		case <-done:
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// result is what Serve returns when it has ended in order.
func (s *server) result() error {
	select {
	case err := <-s.once:
		return err
	default:
		return nil
	}
}
