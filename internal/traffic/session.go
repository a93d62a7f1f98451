package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/wire"
)

// errorBody is the body of an Error message: a reason in words, for people.
type errorBody struct {
	Message string `json:"message"`
	Refused bool   `json:"refused,omitempty"` // the far side does not want to, it did not fail
}

// timing is the patience of one side.
type timing struct {
	Setup   time.Duration // for each step before the data flows
	Silence time.Duration // without any message; a beat comes every second
	Grace   time.Duration // for the last messages of a test that was cancelled or broke
	Slack   time.Duration // of the whole-test watchdog
	Beat    time.Duration
}

// patience is that of every real test; a longer silence than it allows is the end of the other
// side.
var patience = timing{
	Setup: 10 * time.Second, Silence: 10 * time.Second, Grace: 2 * time.Second, Slack: 15 * time.Second,
	Beat: time.Second,
}

// session is one side's use of the control channel for one test: a reader, a writer, and one
// context that dies with the channel and carries the reason as its cause. It outlives the caller's
// context, so that a cancelled test can still say goodbye.
type session struct {
	control Control
	ctx     context.Context
	fail    context.CancelCauseFunc
	in      chan wire.Message // what the other side says, in order
	spoken  context.Context   // ends when the other side's last message of the test has come
	end     context.CancelFunc
	out     chan outgoing
	sent    chan struct{} // closed when the writer has ended
	limit   *time.Timer   // whole-test watchdog
	timing  timing
}

type outgoing struct {
	typ  string
	body any
}

// New starts reader and writer. The reader ends by itself after a message of one of the types in
// last, so that nothing that belongs to whatever comes after the test is read.
func newSession(ctx context.Context, control Control, t timing, limit time.Duration, last ...string) *session {
	// 64 messages of room each way. A test sends some per second, so a full queue means a peer that
	// has stopped reading.
	sctx, fail := context.WithCancelCause(context.WithoutCancel(ctx))
	s := &session{
		control: control, ctx: sctx, fail: fail, timing: t,
		in: make(chan wire.Message, 64), out: make(chan outgoing, 64), sent: make(chan struct{}),
	}
	s.spoken, s.end = context.WithCancel(sctx)
	s.limit = time.AfterFunc(limit, func() { fail(fmt.Errorf("%w: still running after %v", ErrStalled, limit)) })
	go s.read(last)
	go s.write()
	return s
}

func (s *session) read(last []string) {
	for {
		m, err := s.control.Receive(s.ctx)
		if err != nil {
			s.fail(asGone(err))
			return
		}
		select {
		case s.in <- m:
		case <-s.ctx.Done():
			return
		}
		if slices.Contains(last, m.Type) {
			s.end()
			return // one Receive too many would swallow the first message of whatever follows the test
		}
	}
}

func (s *session) write() {
	defer close(s.sent)
	for o := range s.out {
		if s.ctx.Err() != nil {
			continue // the channel is dead; let the others pass
		}
		if err := s.control.Send(s.ctx, o.typ, o.body); err != nil {
			s.fail(asGone(err))
		}
	}
}

// Post queues a message. It waits only while 64 others do, and gives up with the session.
func (s *session) post(typ string, body any) {
	select {
	case s.out <- outgoing{typ, body}:
	case <-s.ctx.Done():
	}
}

// TryPost queues a message that may be lost on a congested path: what it says is said again in the
// result.
func (s *session) tryPost(typ string, body any) {
	select {
	case s.out <- outgoing{typ, body}:
	default:
	}
}

// Close sends what is queued, for the time of grace at most, and ends reader and writer. No post
// may follow.
func (s *session) close() {
	// The writer sends what is queued, so that the last message (a result, a stop) goes out; only
	// then is the session's context ended, which also frees the reader when the other side's last
	// message never came.
	close(s.out)
	patient := time.AfterFunc(s.timing.Grace, func() { s.fail(ErrStalled) })
	<-s.sent
	patient.Stop()
	s.limit.Stop()
	s.fail(context.Canceled)
}

// Await waits for a message of type want, letting beats pass, and decodes its body into body when
// that is not nil.
func (s *session) await(ctx context.Context, patience time.Duration, want string, body any) error {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.ctx.Done():
			return s.cause()
		case <-timeout.C:
			return fmt.Errorf("wait for %s message: %w: nothing within %v", want, ErrPeerGone, patience)
		case m := <-s.in:
			switch m.Type {
			case want:
				return decode(m, body)
			case msgBeat, msgInterval, msgSteady, msgDone, msgFull, msgSent:
			default:
				return unexpected(m)
			}
		}
	}
}

// Farewell reads on until the other side's last message, for the time of grace at most, so that the
// channel is in step for the next test. When it does not come, the channel is out of step; closing
// the session then breaks the pending read.
func (s *session) farewell(last ...string) {
	patient := time.NewTimer(s.timing.Grace)
	defer patient.Stop()
	for {
		select {
		case m := <-s.in:
			if slices.Contains(last, m.Type) {
				return
			}
		case <-s.ctx.Done():
			return
		case <-patient.C:
			return
		}
	}
}

// InsteadOf is err, or what the other side said when it gave up, which explains more.
func (s *session) insteadOf(err error) error {
	if s.spoken.Err() == nil {
		return err
	}
	if s.ctx.Err() != nil {
		err = context.Cause(s.ctx) // the channel broke, and whatever else ended then is only its shadow
	}
	return s.said(err)
}

// Done is closed when the channel is dead or the session over.
func (s *session) done() <-chan struct{} { return s.ctx.Done() }

// Cause tells why the session died. What the other side still managed to say explains more than the
// broken channel after it.
func (s *session) cause() error { return s.said(context.Cause(s.ctx)) }

// said is the other side's own account among the messages that wait, or else err.
func (s *session) said(err error) error {
	for {
		select {
		case m := <-s.in:
			if m.Type == msgError || m.Type == msgStop {
				return unexpected(m)
			}
		default:
			return err
		}
	}
}

// decode reads the body of a message into v; nil takes no body.
func decode(m wire.Message, v any) error {
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(m.Body, v); err != nil {
		return fmt.Errorf("decode %s message: %w: %w", m.Type, ErrProtocol, err)
	}
	return nil
}

// unexpected turns a message that does not belong here into an error; the far side's own words are
// the best of all.
func unexpected(m wire.Message) error {
	switch m.Type {
	case msgError:
		var body errorBody
		if err := decode(m, &body); err != nil {
			return err
		}
		if body.Refused {
			return fmt.Errorf("%w: %s", ErrRefused, body.Message)
		}
		return fmt.Errorf("%w: %s", ErrFar, body.Message)
	case msgStop:
		return errStopped
	}
	return fmt.Errorf("%w: %q message out of place", ErrProtocol, m.Type)
}

// Heed gives a context that is also cancelled when curtail, which may be nil, is closed, until
// enough is called. Call cancel at the end, as that of context.WithCancel.
func Heed(parent context.Context, curtail <-chan struct{}) (ctx context.Context, enough, cancel func()) {
	ctx, stop := context.WithCancel(parent)
	deaf := make(chan struct{})
	go func() {
		select {
		case <-curtail:
			stop()
		case <-deaf:
		case <-ctx.Done():
		}
	}()
	return ctx, sync.OnceFunc(func() { close(deaf) }), stop
}
