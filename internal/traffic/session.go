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

// errorBody is the body of a test.error message: a reason in words, for people.
type errorBody struct {
	Message string `json:"message"`
	Refused bool   `json:"refused,omitempty"` // the far end refuses the test; otherwise the test failed there
}

// timing is how long one end waits.
type timing struct {
	Setup   time.Duration // for each step before the data flows
	Silence time.Duration // without any message; the peer sends a beat every second
	Grace   time.Duration // for the last messages of a cancelled or broken test
	Slack   time.Duration // of the whole-test watchdog
	Beat    time.Duration
}

// patience is the timing of every real test; a longer silence means that the other end is gone.
var patience = timing{
	Setup: 10 * time.Second, Silence: 10 * time.Second, Grace: 2 * time.Second, Slack: 15 * time.Second,
	Beat: time.Second,
}

// session is one end's use of the control channel for one test: a reader, a writer, and one context
// that ends with the channel and carries the reason as its cause. It outlives the caller's context,
// so that a cancelled test can still send its last message.
type session struct {
	control Control
	ctx     context.Context
	fail    context.CancelCauseFunc
	in      chan wire.Message // messages of the other end, in order
	spoken  context.Context   // ends when the other end's last message of the test has arrived
	end     context.CancelFunc
	out     chan outgoing
	sent    chan struct{} // closed when the writer has ended
	armed   sync.Mutex    // held while limit is set
	limit   *time.Timer   // whole-test watchdog
	timing  timing
}

type outgoing struct {
	typ  string
	body any
}

// newSession starts reader and writer. The reader ends after a message of one of the types in last,
// so that it reads nothing that belongs to what follows the test.
func newSession(ctx context.Context, control Control, t timing, limit time.Duration, last ...string) *session {
	// 64 messages of room each way. A test sends a few per second, so a full queue means a peer
	// that has stopped reading.
	sctx, fail := context.WithCancelCause(context.WithoutCancel(ctx))
	s := &session{
		control: control, ctx: sctx, fail: fail, timing: t,
		in: make(chan wire.Message, 64), out: make(chan outgoing, 64), sent: make(chan struct{}),
	}
	s.spoken, s.end = context.WithCancel(sctx)
	arriving := s.arriving()
	s.armed.Lock()
	s.limit = time.AfterFunc(limit, func() {
		s.armed.Lock()
		defer s.armed.Unlock()
		if arriving(t.Beat) {
			s.limit.Reset(t.Beat) // a large message is under way
			return
		}
		fail(fmt.Errorf("%w: still running after %v", ErrStalled, limit))
	})
	s.armed.Unlock()
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
			return // one more Receive would take the first message of what follows the test
		}
	}
}

func (s *session) write() {
	defer close(s.sent)
	for o := range s.out {
		if s.ctx.Err() != nil {
			continue // the channel is dead; drop the rest
		}
		if err := s.control.Send(s.ctx, o.typ, o.body); err != nil {
			s.fail(asGone(err))
		}
	}
}

// post queues a message. It waits only while 64 messages are queued, and gives up with the session.
func (s *session) post(typ string, body any) {
	select {
	case s.out <- outgoing{typ, body}:
	case <-s.ctx.Done():
	}
}

// tryPost queues a message that may be lost on a congested path, because the result repeats it.
func (s *session) tryPost(typ string, body any) {
	select {
	case s.out <- outgoing{typ, body}:
	default:
	}
}

// beats sends a sign of life at every beat until stop is called, which returns when the last one is
// queued. It has a goroutine of its own: a starved host may need seconds to read its counters, and
// lives all the same.
func (s *session) beats() (stop func()) {
	beat, over, ended := time.NewTicker(s.timing.Beat), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				// A beat that finds 64 messages waiting is not missed: the channel is slow, and those
				// messages are signs of life too.
				s.tryPost(msgBeat, nil)
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// close sends what is queued, for the time of grace at most, and ends reader and writer. Post
// nothing after it.
func (s *session) close() {
	// The writer sends what is queued, so that the last message (a result, a stop) goes out. Only
	// then does the session's context end, which also frees the reader when the other end's last
	// message never arrived.
	close(s.out)
	patient := time.AfterFunc(s.timing.Grace, func() { s.fail(ErrStalled) })
	<-s.sent
	patient.Stop()
	s.limit.Stop()
	s.fail(context.Canceled)
}

// arriving returns a function that reports whether a large message has made progress over the time
// since the last call, which is given: over a slow path the result of a long test takes longer than
// any fixed wait. Beats alone are slower than wire.LeastPace. Together the other end gets
// wire.MostForMessage.
//
// The first call compares with now.
func (s *session) arriving() func(since time.Duration) bool {
	counts, ok := s.control.(interface{ Arrived() int64 })
	if !ok {
		return func(time.Duration) bool { return false }
	}
	before, left := counts.Arrived(), wire.MostForMessage
	return func(since time.Duration) bool {
		n := counts.Arrived()
		came := float64(n - before)
		before = n
		if left <= 0 || came < wire.LeastPace*since.Seconds() {
			return false
		}
		left -= since
		return true
	}
}

// within returns a context that ends with cause after d of the time in which this process runs and
// no large message arrives. It counts beats: a process that was paused finds one of them due when
// it continues, and what the other end has sent meanwhile still counts.
func (s *session) within(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	step := min(d, s.timing.Beat)
	beats := time.NewTicker(step)
	arriving := s.arriving()
	go func() {
		defer beats.Stop()
		for d > 0 {
			select {
			case <-beats.C:
			case <-ctx.Done():
				return
			}
			if !arriving(step) {
				d -= step
			}
		}
		end(cause)
	}()
	return ctx, func() { end(nil) }
}

// await waits for a message of type want, skipping beats, and decodes its body into body when that
// is not nil.
func (s *session) await(ctx context.Context, patience time.Duration, want string, body any) error {
	ctx, cancel := s.within(ctx, patience,
		fmt.Errorf("wait for %s message: %w: nothing within %v", want, ErrPeerGone, patience))
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.ctx.Done():
			return s.cause()
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

// farewell reads on until the other end's last message has arrived, for the time of grace at most,
// so that the channel is in step for the next test. Without that message the channel is out of
// step, and closing the session breaks the pending read.
func (s *session) farewell() {
	patient := time.NewTimer(s.timing.Grace)
	defer patient.Stop()
	for {
		select {
		case <-s.in:
		case <-s.spoken.Done(): // also when the session is over
			return
		case <-patient.C:
			return
		}
	}
}

// insteadOf returns err, or the reason that the other end gave when it gave up, which explains
// more.
func (s *session) insteadOf(err error) error {
	if s.spoken.Err() == nil {
		return err
	}
	if s.ctx.Err() != nil {
		err = context.Cause(s.ctx) // the channel broke first, and err only follows from that
	}
	return s.said(err)
}

// done is closed when the channel is dead or the session over.
func (s *session) done() <-chan struct{} { return s.ctx.Done() }

// cause returns why the session ended. A reason that the other end still sent explains more than
// the broken channel after it.
func (s *session) cause() error { return s.said(context.Cause(s.ctx)) }

// said returns the other end's reason among the waiting messages, or else err.
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

// unexpected turns a message that does not belong here into an error; a reason that the far end
// gives is the best one.
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

// Heed returns a context that is also cancelled when curtail is closed, until enough is called.
// Curtail may be nil. Call cancel at the end, as with context.WithCancel.
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
