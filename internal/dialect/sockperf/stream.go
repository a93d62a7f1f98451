package sockperf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"syscall"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/admission"
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/traffic/service"
	"github.com/linerate/linerate/internal/wire"
)

// Errors that end a connection; their texts are for the log.
var (
	errSilent  = errors.New("nothing came")
	errSlow    = errors.New("an unfinished message did not end")
	errIdle    = errors.New("no further message")
	errStuck   = errors.New("it does not read its answers")
	errStopped = errors.New("the server ends")
)

// stream serves one client over TCP. The goroutine that runs it owns it.
type stream struct {
	ctx      context.Context
	end      *endpoint
	visit    *admission.Visit
	patience patience
	buf      []byte // filled up to have, and begins with a message
	have     int
	base     time.Time     // zero of now
	began    time.Duration // when the oldest byte in buf arrived, or the last message ended

	messages, answered, in, out int64 // in and out: bytes
}

// serveStream serves one connection to its end, and logs it in one sentence. head was already read.
func serveStream(ctx context.Context, conn *net.TCPConn, from netip.AddrPort, visit *admission.Visit, p patience,
	head []byte) string {
	end, err := adoptTCP(conn, engine.ConnOptions{NoDelay: true})
	if err != nil {
		return fmt.Sprintf("sockperf %s over tcp: %v", from, err)
	}
	defer end.close()
	stop := context.AfterFunc(ctx, end.wake)
	defer stop()
	defer engine.LendProcessors(1)()
	// Raw blocking calls need a thread of their own, which returns to the pool with the client.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &stream{ctx: ctx, end: end, visit: visit, patience: p, buf: make([]byte, 2*MaxMessageBytes), base: time.Now()}
	err = s.serve(head)
	seconds := s.now().Seconds()
	text := fmt.Sprintf(
		"sockperf %s over tcp: %d messages, %d answered, %d bytes in and %d out in %.1f s (%.0f answers/s)",
		from, s.messages, s.answered, s.in, s.out, seconds, float64(s.answered)/max(seconds, 1e-9))
	if err != nil {
		text += fmt.Sprintf(": %v", err)
	}
	return text
}

// now returns the time since the client came, without a system call.
func (s *stream) now() time.Duration { return time.Since(s.base) }

// serve returns nil when the client has closed its connection at the end of a message, or has reset
// it, as sockperf does.
func (s *stream) serve(head []byte) error {
	for {
		var n int
		var err error
		if len(head) > 0 {
			// The buffer is larger than any head, so all of it fits.
			n, head = copy(s.buf, head), nil
		} else {
			n, err = s.end.read(s.buf[s.have:])
		}
		now := s.now()
		switch {
		case s.ctx.Err() != nil:
			return errStopped
		case errors.Is(err, sys.ErrTimeout):
			if err := s.late(now); err != nil {
				return err
			}
			continue
		case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
			if s.have > 0 {
				return fmt.Errorf("it left in the middle of a message: %w", io.ErrUnexpectedEOF)
			}
			return nil
		case err != nil:
			return fmt.Errorf("receive: %w", err)
		}
		if s.have == 0 {
			s.began = now
		}
		s.have += n
		s.in += int64(n)
		replies, err := s.turnAll(now)
		if err == nil {
			err = s.send(s.buf[:replies])
		}
		if err != nil {
			return err
		}
		// Bytes that trickle in never let a read time out.
		if err := s.late(now); err != nil {
			return err
		}
		if err := s.account(int64(n + replies)); err != nil {
			return err
		}
		s.shift(replies)
	}
}

// late returns an error that names what the client took too long for.
func (s *stream) late(now time.Duration) error {
	waited := now - s.began
	switch {
	case s.have > 0 && waited > s.patience.first:
		return fmt.Errorf("%w within %v", errSlow, s.patience.first)
	case s.have == 0 && s.messages == 0 && waited > s.patience.first:
		return fmt.Errorf("%w within %v", errSilent, s.patience.first)
	case s.have == 0 && waited > s.patience.idle:
		return fmt.Errorf("%w within %v", errIdle, s.patience.idle)
	}
	return nil
}

// turnAll processes the whole messages in buf. Afterwards buf starts with replies bytes of answers,
// and the unfinished rest follows them: answers are never longer than their requests, so there is
// room for both.
func (s *stream) turnAll(now time.Duration) (replies int, err error) {
	at := 0
	for s.have-at >= HeaderBytes {
		h, ok := parseHeader(s.buf[at:s.have])
		if !ok {
			return 0, s.malformed(at, h)
		}
		length := int(h.length)
		if s.have-at < length {
			break
		}
		// Messages that request no answer are only counted: under load, every n-th requests one.
		if h.asks() {
			turn(s.buf[at:])
			copy(s.buf[replies:], s.buf[at:at+length])
			replies += length
			s.answered++
		}
		s.messages++
		at += length
	}
	if at > 0 {
		s.began = now // of the rest, or of the wait for the next message
	}
	// Unfinished bytes move down to the end of the answers; copy handles overlap.
	s.have = replies + copy(s.buf[replies:], s.buf[at:s.have])
	return replies, nil
}

// malformed returns an error that names the protocol, if it is a known one.
func (s *stream) malformed(at int, h header) error {
	// Only at the beginning: in the middle of a stream, a resemblance is coincidence.
	if s.messages == 0 {
		if guess := wire.Dialect(s.buf[:min(s.have, 64)]); guess != "something unknown" {
			return fmt.Errorf("no sockperf: the client speaks %s", guess)
		}
	}
	return fmt.Errorf("no sockperf: a message of %d bytes after %d", h.length, s.in-int64(s.have-at))
}

// shift removes the answers from the front of buf.
func (s *stream) shift(replies int) {
	s.have = copy(s.buf, s.buf[replies:s.have])
}

// send writes all of p, as long as the client accepts some of it from time to time.
func (s *stream) send(p []byte) error {
	// Progress is required, not completion in time: a slow path takes a burst of answers slowly.
	last := s.now()
	for len(p) > 0 {
		n, err := s.end.write(p)
		s.out += int64(max(n, 0))
		switch {
		case s.ctx.Err() != nil:
			return errStopped
		case errors.Is(err, sys.ErrTimeout):
			if s.now()-last > s.patience.answer {
				return fmt.Errorf("%w within %v", errStuck, s.patience.answer)
			}
			continue
		case err != nil:
			return fmt.Errorf("send: %w", err)
		}
		last = s.now()
		p = p[n:]
	}
	return nil
}

// account charges n bytes to the client and enforces its rate.
func (s *stream) account(n int64) error {
	if err := s.visit.Spend(n); err != nil {
		return err
	}
	pause := s.visit.Pause()
	if service.Rest(s.ctx, pause) != nil {
		return errStopped
	}
	s.began += pause // the pause was this server's
	return nil
}
