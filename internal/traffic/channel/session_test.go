package channel

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/wire"
)

// scripted is a control channel whose other side says what the test puts in.
type scripted struct {
	said  chan wire.Message
	heard chan string
	stuck bool // Send never returns by itself
}

func (c *scripted) Send(ctx context.Context, typ string, _ any) error {
	if c.stuck {
		<-ctx.Done()
		return ctx.Err()
	}
	c.heard <- typ
	return nil
}

func (c *scripted) Receive(ctx context.Context) (wire.Message, error) {
	select {
	case m, ok := <-c.said:
		if !ok {
			return wire.Message{}, io.EOF
		}
		return m, nil
	case <-ctx.Done():
		return wire.Message{}, ctx.Err()
	}
}

func (c *scripted) say(typ, body string) {
	c.said <- wire.Message{Type: typ, Body: json.RawMessage(body)}
}

var brief = Timing{Setup: time.Second, Silence: time.Second, Grace: 50 * time.Millisecond, Slack: time.Second,
	Beat: time.Second}

func open(t *testing.T, limit time.Duration) (*Session, *scripted) {
	t.Helper()
	c := &scripted{said: make(chan wire.Message, 8), heard: make(chan string, 8)}
	return New(t.Context(), c, brief, limit, Result, Error), c
}

func TestAwait(t *testing.T) {
	s, c := open(t, time.Minute)
	defer s.Close()
	c.say(Beat, ``)
	c.say(Interval, `{}`)
	c.say(Accept, `{"port":7}`)
	var body struct{ Port int }
	if err := s.Await(t.Context(), time.Minute, Accept, &body); err != nil || body.Port != 7 {
		t.Errorf("%v, port %d", err, body.Port)
	}
	c.say(Ready, `[]`)
	if err := s.Await(t.Context(), time.Minute, Ready, &body); !errors.Is(err, ErrProtocol) {
		t.Errorf("broken body: %v", err)
	}
	c.say(Mark, ``)
	if err := s.Await(t.Context(), time.Minute, Ready, nil); !errors.Is(err, ErrProtocol) ||
		!strings.Contains(err.Error(), Mark) {
		t.Errorf("out of place: %v", err)
	}
	if err := s.Await(t.Context(), time.Millisecond, Ready, nil); !errors.Is(err, ErrPeerGone) {
		t.Errorf("silence: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrNoProgress)
	if err := s.Await(ctx, time.Minute, Ready, nil); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("cancelled: %v", err)
	}
	for body, want := range map[string]error{
		`{"message":"too long","refused":true}`: ErrRefused, `{"message":"no memory"}`: ErrFar, `7`: ErrProtocol,
	} {
		if err := Unexpected(wire.Message{Type: Error, Body: json.RawMessage(body)}); !errors.Is(err, want) {
			t.Errorf("%s: %v", body, err)
		}
	}
	if err := Unexpected(wire.Message{Type: Stop}); !errors.Is(err, ErrStopped) {
		t.Errorf("stop: %v", err)
	}
}

// TestLastWordsExplain: what the other side said before the channel broke is the error, not the
// broken channel.
func TestLastWordsExplain(t *testing.T) {
	s, c := open(t, time.Minute)
	defer s.Close()
	if err := s.InsteadOf(io.ErrShortWrite); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("nothing said yet: %v", err)
	}
	c.say(Error, `{"message":"out of coffee"}`)
	<-s.Spoken.Done()
	if err := s.InsteadOf(io.ErrShortWrite); !errors.Is(err, ErrFar) {
		t.Errorf("said: %v", err)
	}
	// The reader has ended: what comes now belongs to whatever follows the test.
	c.say(Accept, ``)
	if len(c.said) != 1 {
		t.Error("read beyond the last message")
	}
}

func TestBrokenChannel(t *testing.T) {
	s, c := open(t, time.Minute)
	defer s.Close()
	close(c.said)
	<-s.Done()
	if err := s.Cause(); !errors.Is(err, ErrPeerGone) || !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	// What was cancelled because of that is the end of the channel as well.
	if err := s.InsteadOf(context.Canceled); !errors.Is(err, ErrPeerGone) {
		t.Errorf("%v", err)
	}
	s.Post(Go, nil) // returns
	s.Farewell(Result)
}

func TestWatchdog(t *testing.T) {
	s, _ := open(t, time.Millisecond)
	defer s.Close()
	<-s.Done()
	if err := s.Cause(); !errors.Is(err, ErrStalled) {
		t.Errorf("%v", err)
	}
}

func TestCloseSendsWhatIsQueued(t *testing.T) {
	s, c := open(t, time.Minute)
	for range 3 {
		s.Post(Beat, nil)
	}
	s.Post(Stop, nil)
	s.Close()
	close(c.heard)
	var last string
	n := 0
	for typ := range c.heard {
		last = typ
		n++
	}
	if n != 4 || last != Stop {
		t.Errorf("%d messages, the last is %q", n, last)
	}
}

// TestCloseDoesNotHang has a channel that takes nothing any more.
func TestCloseDoesNotHang(t *testing.T) {
	c := &scripted{said: make(chan wire.Message), stuck: true}
	s := New(t.Context(), c, brief, time.Minute, Result)
	for range 100 {
		s.TryPost(Beat, nil) // more than there is room for
	}
	s.Close()
	if err := s.Cause(); !errors.Is(err, ErrStalled) {
		t.Errorf("%v", err)
	}
}

func TestGone(t *testing.T) {
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if !errors.Is(Gone(err), ErrPeerGone) || !errors.Is(Gone(err), err) {
			t.Errorf("%v: %v", err, Gone(err))
		}
	}
	if Gone(nil) != nil || errors.Is(Gone(syscall.EINVAL), ErrPeerGone) {
		t.Error("taken for the end of the other side")
	}
}
