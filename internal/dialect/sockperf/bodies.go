package sockperf

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// asker keeps one message under way over TCP.
type asker struct {
	end      *endpoint
	message  []byte
	answer   []byte // as long as a message: over TCP nothing but the length says where the next begins
	sequence uint64 // of the last message
}

// Wake and Close are of [engine.Body].
func (a *asker) Wake()  { a.end.wake() }
func (a *asker) Close() { a.end.close() }

// Loop asks until the test is over.
func (a *asker) Loop(w *engine.Worker) error {
	for w.Phase.Is() != engine.Stopped {
		if err := a.round(w, 0); err != nil {
			if w.Phase.Is() == engine.Stopped {
				return nil
			}
			return err
		}
	}
	return nil
}

// greet is the first round trip, which finds out whether a server is there at all.
func (a *asker) greet(ctx context.Context, w *engine.Worker) error {
	stop := context.AfterFunc(ctx, a.end.wake)
	defer stop()
	err := a.round(w, w.Now()+firstWaitTCP)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil || errors.Is(err, traffic.ErrProtocol):
		return err
	case a.answer[0] != 0:
		// A greeting shorter than a message; a sequence number that small starts with zeros.
		return foreign(bytes.TrimRight(a.answer, "\x00"))
	case errors.Is(err, io.EOF):
		return noAnswer(nil, "the far end closed the connection")
	case errors.Is(err, sys.ErrTimeout):
		return noAnswer(nil, fmt.Sprintf("nothing came back within %v", firstWaitTCP))
	}
	return err
}

// round is one message and its answer, timed from before its first byte is written until after its
// last byte is read. It gives up at until; 0: never, before the end of the test.
func (a *asker) round(w *engine.Worker, until time.Duration) error {
	a.sequence++
	binary.BigEndian.PutUint64(a.message, a.sequence)
	// Before the write and not after: what the kernel takes to accept the message is part of what a
	// program waits for.
	start := w.Now()
	if err := transfer(w, a.end.write, a.message, until); err != nil {
		return fmt.Errorf("send message: %w", err)
	}
	if err := transfer(w, a.end.read, a.answer, until); err != nil {
		return fmt.Errorf("receive answer: %w", err)
	}
	d := w.Now() - start
	// With one message under way any other number is an answer to nobody, and the stream cannot be
	// trusted from there on.
	if h, ok := parseHeader(a.answer); !ok || !h.answers(a.sequence, len(a.message)) {
		return foreign(a.answer)
	}
	tally(w, d)
	return nil
}

// tally counts one round trip.
func tally(w *engine.Worker, d time.Duration) {
	w.Transactions.Add(1)
	w.RTTNanos.Add(int64(d))
	if w.Phase.Is() == engine.Measured {
		w.RTT.Record(int64(d))
	}
}

// transfer moves all of p, sleeping on while the test runs.
func transfer(w *engine.Worker, call func([]byte) (int, error), p []byte, until time.Duration) error {
	for {
		n, err := call(p)
		if n == len(p) {
			return nil
		}
		// A call that timed out may have moved a part, which is not moved again.
		p = p[n:]
		if err != nil && !errors.Is(err, sys.ErrTimeout) {
			return err
		}
		// The end of a test is no failure of its last round trip; Loop looks at the phase as well
		// and says nothing of it.
		if w.Phase.Is() == engine.Stopped || until != 0 && w.Now() >= until {
			return sys.ErrTimeout
		}
	}
}

const (
	// underWay is how many messages may wait for their answers; an older one is lost. At the
	// shortest gap of 100 µs that is after 1.6 s. It is a power of two.
	underWay = 1 << 14
	// stragglers is how long answers are waited for after the last message.
	stragglers = time.Second
	// lookEvery bounds the sleep between looks at the phase.
	lookEvery = 100 * time.Millisecond
)

// pinger sends a message per gap over UDP and times the answers.
type pinger struct {
	end     *endpoint
	gap     time.Duration
	message []byte
	// as large as a datagram can be: an answer that is too long is no answer, and must be seen to
	// be one
	answer   []byte
	sequence uint64 // of the last message
	waiting  []sending
	sent     int64 // inside the measured window
	answered int64 // of those
}

// sending is a message that may still be answered.
type sending struct {
	sequence uint64 // 0: answered, or none yet
	at       time.Duration
	measured bool
}

func newPinger(end *endpoint, bytes int, gap time.Duration) *pinger {
	return &pinger{end: end, gap: gap, message: newMessage(bytes), answer: make([]byte, 1<<16),
		waiting: make([]sending, underWay)}
}

// Wake does nothing: a pinger never sleeps for long.
func (p *pinger) Wake() {}

// Close is of [engine.Body].
func (p *pinger) Close() { p.end.close() }

// greet finds out whether a server answers at all.
func (p *pinger) greet(ctx context.Context, w *engine.Worker) error {
	var cause error
	for range firstTries {
		// A refusal of the message before comes back with this one, so an error here does not end
		// the search.
		sent := p.send(w)
		for until := w.Now() + firstWaitUDP; w.Now() < until; {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			n, err := p.end.readWithin(p.answer, min(lookEvery, until-w.Now()))
			switch {
			case err == nil && p.take(w, p.answer[:n]):
				return nil
			case err == nil:
				cause = foreign(p.answer[:n])
			case !errors.Is(err, sys.ErrTimeout):
				cause = err // most often "connection refused", which the far kernel said at once
			}
		}
		cause = errors.Join(cause, sent)
	}
	return noAnswer(cause, fmt.Sprintf("%d messages stayed without", firstTries))
}

// Loop sends by the clock, not after the answer, so that a slow answer hides no others. What could
// not be sent in time is left out: catching up in a burst would measure the burst. After the window
// it waits for stragglers and ends by itself.
func (p *pinger) Loop(w *engine.Worker) error {
	next := w.Now()
	var quit time.Duration // when to stop waiting for stragglers
	for {
		now := w.Now()
		switch w.Phase.Is() {
		case engine.Stopped:
			return nil
		// No more messages, only answers.
		case engine.Tail:
			if quit == 0 {
				quit = now + stragglers
			}
			// All are in, or the rest is lost.
			if now >= quit || p.answered == p.sent {
				return nil
			}
			next = quit
		default:
			if now >= next {
				_ = p.send(w) // what this host could not send is lost like any other
				next = max(next+p.gap, now)
			}
		}
		// An error is the network's word on some message, which stays unanswered.
		if n, err := p.end.readWithin(p.answer, min(max(next-w.Now(), 0), lookEvery)); err == nil {
			p.take(w, p.answer[:n])
		}
	}
}

// send sends the next message.
func (p *pinger) send(w *engine.Worker) error {
	p.sequence++
	binary.BigEndian.PutUint64(p.message, p.sequence)
	// Whoever waited in this place has waited for underWay messages: it is lost, and its answer
	// finds another number here.
	s := &p.waiting[p.sequence%underWay]
	*s = sending{sequence: p.sequence, measured: w.Phase.Is() == engine.Measured, at: w.Now()}
	if s.measured {
		p.sent++
	}
	_, err := p.end.write(p.message)
	return err
}

// take looks at one datagram and counts it if it is the first answer to a message that still waits
// for one.
func (p *pinger) take(w *engine.Worker, answer []byte) bool {
	now := w.Now()
	h, ok := parseHeader(answer)
	// Number 0 is never sent, and would match a place where nothing waits.
	if !ok || len(answer) != len(p.message) || h.sequence == 0 || !h.answers(h.sequence, len(p.message)) {
		return false
	}
	s := &p.waiting[h.sequence%underWay]
	if s.sequence != h.sequence {
		return false // doubled on the way, or too late
	}
	s.sequence = 0
	d := now - s.at
	w.Transactions.Add(1)
	w.RTTNanos.Add(int64(d))
	if s.measured {
		p.answered++
		w.RTT.Record(int64(d))
	}
	return true
}

var _, _ engine.Body = (*asker)(nil), (*pinger)(nil)

// perSecond is a rate; 0 where there was no time.
func perSecond(n int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(n) / seconds
}

// distribution is what a result says of round trips; nil when there are none.
func distribution(workers []*engine.Worker) *traffic.Distribution {
	all := newHistogram()
	for _, w := range workers {
		all.Merge(w.RTT)
	}
	return traffic.DistributionOf(all.Snapshot())
}
