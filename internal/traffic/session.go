package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/traffic/datagram"
	"github.com/linerate/linerate/internal/traffic/plan"
	"github.com/linerate/linerate/internal/wire"
)

// Control is the channel that a test is driven over; *wire.Conn is one. Send may be called while Receive is.
type Control interface {
	Send(ctx context.Context, typ string, body any) error
	Receive(ctx context.Context) (wire.Message, error)
}

// Message types, see the package comment.
const (
	MsgStart    = "test.start"
	msgAccept   = "test.accept"
	msgReady    = "test.ready"
	msgGo       = "test.go"
	msgSteady   = "test.steady"
	msgMark     = "test.mark"
	msgOpened   = "test.opened"
	msgInterval = "test.interval"
	msgBeat     = "test.beat"
	msgFull     = "test.full"
	msgSent     = "test.sent"
	msgDone     = "test.done"
	msgStop     = "test.stop"
	msgResult   = "test.result"
	msgError    = "test.error"
)

// StartBody is the body of the message that opens a test, MsgStart.
type StartBody struct {
	Spec Spec `json:"spec"`
}

type acceptBody struct {
	EchoToken   []byte   `json:"echo_token,omitempty"`
	EchoPort    int      `json:"echo_port,omitempty"`
	AcceptToken []byte   `json:"accept_token,omitempty"` // what requests of crr start with
	AcceptPorts []uint16 `json:"accept_ports,omitempty"` // of crr, one for each stream
}

type sentBody struct {
	Streams []datagram.Tally `json:"streams"` // of the senders, in the order of their sockets
}

type errorBody struct {
	Message string `json:"message"`
	Refused bool   `json:"refused,omitempty"`
}

type resultBody struct {
	End           End          `json:"end"`
	Bytes         int64        `json:"bytes"`
	Verified      int64        `json:"verified_bytes,omitempty"`
	Transactions  int64        `json:"transactions"`
	Seconds       float64      `json:"seconds"`        // of the far window, by the far clock; of an amount: until all of it was there
	Window        float64      `json:"window_seconds"` // of the host's counters
	SendMethod    string       `json:"send_method,omitempty"`
	ReceiveMethod string       `json:"receive_method,omitempty"`
	UDPSent       *udpSent     `json:"udp_sent,omitempty"`
	UDPReceived   *udpReceived `json:"udp_received,omitempty"`
	Parts         []part       `json:"parts"`
	Warnings      []string     `json:"warnings,omitempty"`
}

// check refuses figures of a far side that cannot be, and that would make infinities of sums and rates.
func (b *resultBody) check() error {
	const longest = 1e7 // seconds: a hundred days
	plausible := b.Bytes >= 0 && b.Bytes <= plan.MaxAmount && b.Transactions >= 0 && b.Verified >= 0 && b.Verified <= plan.MaxAmount
	for _, seconds := range []float64{b.Seconds, b.Window} {
		plausible = plausible && (seconds == 0 || seconds >= shortestPart.Seconds()/1000 && seconds < longest)
	}
	if u := b.UDPReceived; u != nil {
		plausible = plausible && u.Bytes >= 0 && u.Bytes <= plan.MaxAmount && u.Seconds >= 0 && u.Seconds < longest && u.Sent < 1<<50
	}
	if u := b.UDPSent; u != nil {
		plausible = plausible && u.Bytes >= 0 && u.Bytes <= plan.MaxAmount
	}
	if e := b.End; !(e.CPUSeconds >= 0 && e.CPUSeconds < 1e12) {
		plausible = false
	}
	for _, p := range b.Parts {
		plausible = plausible && p.plausible()
	}
	if !plausible {
		return fmt.Errorf("%w: %s message with impossible figures", ErrProtocol, msgResult)
	}
	return nil
}

// timing holds the patience of both sides; tests shorten it.
type timing struct {
	setup   time.Duration // for each step before the data flows
	silence time.Duration // without any message; a beat comes every second
	grace   time.Duration // for the last messages of a test that was cancelled or broke
	slack   time.Duration // of the whole-test watchdog
	beat    time.Duration
}

var patience = timing{
	setup: 10 * time.Second, silence: 10 * time.Second, grace: 2 * time.Second, slack: 15 * time.Second, beat: time.Second,
}

// session is one side's use of the control channel for one test: a reader, a writer, and one context that dies with the channel and
// carries the reason as its cause. It outlives the caller's context, so that a cancelled test can still say goodbye.
type session struct {
	control Control
	ctx     context.Context
	fail    context.CancelCauseFunc
	in      chan wire.Message
	spoken  context.Context // ends when the other side's last message of the test has come
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

// newSession starts reader and writer. The reader ends by itself after a message of one of the types in last, so that nothing that belongs
// to whatever comes after the test is read.
func newSession(ctx context.Context, control Control, t timing, limit time.Duration, last ...string) *session {
	// 64 messages of room each way. A test sends some per second, so a full queue means a peer that has stopped reading.
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
			s.fail(gone(err))
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
			s.fail(gone(err))
		}
	}
}

// post queues a message. It waits only while 64 others do, and gives up with the session.
func (s *session) post(typ string, body any) {
	select {
	case s.out <- outgoing{typ, body}:
	case <-s.ctx.Done():
	}
}

// tryPost queues a message that may be lost on a congested path: what it says is said again in the result.
func (s *session) tryPost(typ string, body any) {
	select {
	case s.out <- outgoing{typ, body}:
	default:
	}
}

// close sends what is queued, for the time of grace at most, and ends reader and writer. No post may follow.
func (s *session) close() {
	// The writer sends what is queued, so that the last message (a result, a stop) goes out; only then is the session's context ended, which
	// also frees the reader when the other side's last message never came.
	close(s.out)
	patient := time.AfterFunc(s.timing.grace, func() { s.fail(ErrStalled) })
	<-s.sent
	patient.Stop()
	s.limit.Stop()
	s.fail(context.Canceled)
}

// await waits for a message of type want, letting beats pass, and decodes its body into body when that is not nil.
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

// farewell reads on until the other side's last message, for the time of grace at most, so that the channel is in step for the next test.
// When it does not come, the channel is out of step; closing the session then breaks the pending read.
func (s *session) farewell(last ...string) {
	patient := time.NewTimer(s.timing.grace)
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

// insteadOf is err, or what the other side said when it gave up, which explains more.
func (s *session) insteadOf(err error) error {
	if s.spoken.Err() == nil {
		return err
	}
	return s.said(err)
}

// cause tells why the session died. What the other side still managed to say explains more than the broken channel after it.
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

// unexpected turns a message that does not belong here into an error; the far side's own words are the best of all.
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

// errStopped is a near side that ended the test early, most often because somebody pressed Ctrl-C there.
var errStopped = errors.New("stopped by the near end")
