package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/wire"
)

// scripted is a control channel whose other end sends what the test puts in.
type scripted struct {
	said  chan wire.Message
	heard chan string
	stuck bool // Send blocks until its context ends
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

var brief = timing{Setup: time.Second, Silence: time.Second, Grace: 50 * time.Millisecond, Slack: time.Second,
	Beat: time.Second}

// slow is brief for channels that take every message, if not at once.
var slow = timing{Setup: time.Minute, Silence: time.Minute, Grace: time.Minute, Slack: time.Minute, Beat: time.Minute}

func open(t *testing.T, limit time.Duration) (*session, *scripted) {
	t.Helper()
	c := &scripted{said: make(chan wire.Message, 8), heard: make(chan string, 8)}
	return newSession(t.Context(), c, slow, limit, msgResult, msgError), c
}

func TestAwait(t *testing.T) {
	s, c := open(t, time.Minute)
	defer s.close()
	c.say(msgBeat, ``)
	c.say(msgInterval, `{}`)
	c.say(msgAccept, `{"port":7}`)
	var body struct{ Port int }
	if err := s.await(t.Context(), time.Minute, msgAccept, &body); err != nil || body.Port != 7 {
		t.Errorf("%v, port %d", err, body.Port)
	}
	c.say(msgReady, `[]`)
	if err := s.await(t.Context(), time.Minute, msgReady, &body); !errors.Is(err, ErrProtocol) {
		t.Errorf("broken body: %v", err)
	}
	c.say(msgMark, ``)
	if err := s.await(t.Context(), time.Minute, msgReady, nil); !errors.Is(err, ErrProtocol) ||
		!strings.Contains(err.Error(), msgMark) {
		t.Errorf("out of place: %v", err)
	}
	if err := s.await(t.Context(), time.Millisecond, msgReady, nil); !errors.Is(err, ErrPeerGone) {
		t.Errorf("silence: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrNoProgress)
	if err := s.await(ctx, time.Minute, msgReady, nil); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("cancelled: %v", err)
	}
	for body, want := range map[string]error{
		`{"message":"too long","refused":true}`: ErrRefused, `{"message":"no memory"}`: ErrFar, `7`: ErrProtocol,
	} {
		if err := unexpected(wire.Message{Type: msgError, Body: json.RawMessage(body)}); !errors.Is(err, want) {
			t.Errorf("%s: %v", body, err)
		}
	}
	if err := unexpected(wire.Message{Type: msgStop}); !errors.Is(err, errStopped) {
		t.Errorf("stop: %v", err)
	}
}

// TestLastWordsExplain checks that the error is what the other end said before the channel broke,
// not the broken channel.
func TestLastWordsExplain(t *testing.T) {
	s, c := open(t, time.Minute)
	defer s.close()
	if err := s.insteadOf(io.ErrShortWrite); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("nothing said yet: %v", err)
	}
	c.say(msgError, `{"message":"out of coffee"}`)
	<-s.spoken.Done()
	if err := s.insteadOf(io.ErrShortWrite); !errors.Is(err, ErrFar) {
		t.Errorf("said: %v", err)
	}
	// The reader has ended: what arrives now belongs to what follows the test.
	c.say(msgAccept, ``)
	if len(c.said) != 1 {
		t.Error("read beyond the last message")
	}
}

func TestBrokenChannel(t *testing.T) {
	s, c := open(t, time.Minute)
	defer s.close()
	close(c.said)
	<-s.done()
	if err := s.cause(); !errors.Is(err, ErrPeerGone) || !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	// An operation cancelled because of that also reports the end of the channel.
	if err := s.insteadOf(context.Canceled); !errors.Is(err, ErrPeerGone) {
		t.Errorf("%v", err)
	}
	s.post(msgGo, nil) // returns
	s.farewell()
}

// TestPauseIsNoSilence: an end that did not run for a minute finds one beat due when it continues,
// and looks for messages before it takes the other end for gone. An end that runs counts on.
func TestPauseIsNoSilence(t *testing.T) {
	c := conductor{session: &session{timing: patience}}
	for at := time.Minute; ; at += time.Minute { // every look is a minute late
		err := c.listen(at)
		if err == nil {
			continue
		}
		if want := patience.Silence + patience.Beat; !errors.Is(err, ErrPeerGone) || c.quiet != want {
			t.Errorf("%v after %v of silence, want %v", err, c.quiet, want)
		}
		return
	}
}

// TestBusyEndBeats: an end that does something else for long still sends its signs of life. None
// comes after its test.
func TestBusyEndBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &session{timing: patience, out: make(chan outgoing, 64)}
		stop := s.beats()
		time.Sleep(9*s.timing.Beat + s.timing.Beat/2)
		stop()
		time.Sleep(time.Minute)
		if len(s.out) != 9 {
			t.Errorf("%d beats, want 9", len(s.out))
		}
	})
}

// TestWaitIsCounted: a wait ends after its time, with its cause.
func TestWaitIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &session{timing: patience}
		ctx, cancel := s.within(t.Context(), s.timing.Setup, ErrStalled)
		defer cancel()
		began := time.Now()
		<-ctx.Done()
		if waited := time.Since(began); waited != s.timing.Setup || !errors.Is(context.Cause(ctx), ErrStalled) {
			t.Errorf("%v after %v", context.Cause(ctx), waited)
		}
	})
}

// TestFarewellAfterTheLastMessage: the last message came before its time and was judged. Nothing
// follows it, so there is nothing to wait for.
func TestFarewellAfterTheLastMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := open(t, time.Hour)
		defer s.close()
		c.say(msgResult, "{}")
		<-s.in
		began := time.Now()
		s.farewell()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestWatchdog(t *testing.T) {
	s, _ := open(t, time.Millisecond)
	defer s.close()
	<-s.done()
	if err := s.cause(); !errors.Is(err, ErrStalled) {
		t.Errorf("%v", err)
	}
}

func TestCloseSendsWhatIsQueued(t *testing.T) {
	s, c := open(t, time.Minute)
	for range 3 {
		s.post(msgBeat, nil)
	}
	s.post(msgStop, nil)
	s.close()
	close(c.heard)
	var last string
	n := 0
	for typ := range c.heard {
		last = typ
		n++
	}
	if n != 4 || last != msgStop {
		t.Errorf("%d messages, the last is %q", n, last)
	}
}

// TestCloseDoesNotHang has a channel that takes nothing any more.
func TestCloseDoesNotHang(t *testing.T) {
	c := &scripted{said: make(chan wire.Message), stuck: true}
	s := newSession(t.Context(), c, brief, time.Minute, msgResult)
	for range 100 {
		s.tryPost(msgBeat, nil) // more than there is room for
	}
	s.close()
	if err := s.cause(); !errors.Is(err, ErrStalled) {
		t.Errorf("%v", err)
	}
}

func TestGone(t *testing.T) {
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if !errors.Is(asGone(err), ErrPeerGone) || !errors.Is(asGone(err), err) {
			t.Errorf("%v: %v", err, asGone(err))
		}
	}
	if asGone(nil) != nil || errors.Is(asGone(syscall.EINVAL), ErrPeerGone) {
		t.Error("taken for the end of the other side")
	}
}

// arriver is a channel that a large message arrives over, at a rate.
type arriver struct {
	scripted
	began time.Time
	rate  float64
}

func (a *arriver) Arrived() int64 { return int64(a.rate * time.Since(a.began).Seconds()) }

// TestLargeResultOverASlowPath checks that a wait and the watchdog of a test go on while a large
// message arrives, and end with beats alone and after wire.MostForMessage.
func TestLargeResultOverASlowPath(t *testing.T) {
	for _, c := range []struct {
		rate   float64
		comes  time.Duration // the message is whole
		passes bool
	}{{8000, 40 * time.Second, true}, {100, 40 * time.Second, false}, {8000, time.Hour, false}} {
		synctest.Test(t, func(t *testing.T) {
			a := &arriver{scripted{said: make(chan wire.Message, 8), heard: make(chan string, 8)}, time.Now(), c.rate}
			s := newSession(t.Context(), a, patience, 15*time.Second, msgResult, msgError)
			defer s.close()
			defer time.AfterFunc(c.comes, func() { a.say(msgResult, `{}`) }).Stop()
			began := time.Now()
			err := s.await(t.Context(), s.timing.Setup, msgResult, nil)
			if (err == nil) != c.passes {
				t.Errorf("%v b/s, whole after %v: %v", c.rate, c.comes, err)
			}
			if waited := time.Since(began); waited > wire.MostForMessage+time.Minute {
				t.Errorf("waited %v", waited)
			}
		})
	}
}
