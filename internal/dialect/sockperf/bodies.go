package sockperf

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// asker keeps one message in flight over TCP.
type asker struct {
	end      *endpoint
	message  []byte
	answer   []byte // as long as a message: over TCP only the length shows where the next one begins
	sequence uint64 // of the last message
}

// Wake and Close implement [engine.Body].
func (a *asker) Wake()  { a.end.wake() }
func (a *asker) Close() { a.end.close() }

// Loop sends requests until the test is over.
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

// greet makes the first round trip, which shows whether there is a server.
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
		// The server's greeting is shorter than a message; a small sequence number starts with
		// zeros.
		return foreign(bytes.TrimRight(a.answer, "\x00"))
	case errors.Is(err, io.EOF):
		return noAnswer(nil, "the far end closed the connection")
	case errors.Is(err, sys.ErrTimeout):
		return noAnswer(nil, fmt.Sprintf("nothing came back within %v", firstWaitTCP))
	}
	return err
}

// round sends one message and reads its answer, timed from before the first byte is written until
// the last byte is read. It gives up at until; 0: at the end of the test.
func (a *asker) round(w *engine.Worker, until time.Duration) error {
	a.sequence++
	binary.BigEndian.PutUint64(a.message, a.sequence)
	// Before the write: the time that the kernel takes to accept the message is part of what a
	// program waits for.
	start := w.Now()
	if err := transfer(w, a.end.write, a.message, until); err != nil {
		return fmt.Errorf("send message: %w", err)
	}
	if err := transfer(w, a.end.read, a.answer, until); err != nil {
		return fmt.Errorf("receive answer: %w", err)
	}
	d := w.Now() - start
	// With one message in flight, any other number answers no request, and the rest of the stream
	// cannot be trusted.
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

// transfer moves all of p, and repeats calls that time out while the test runs.
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
		// The end of a test is no failure of its last round trip; Loop checks the phase too and
		// reports nothing.
		if w.Phase.Is() == engine.Stopped || until != 0 && w.Now() >= until {
			return sys.ErrTimeout
		}
	}
}

const (
	// underWay is how many messages may wait for their answers; older ones are lost. At the
	// shortest gap of 100 µs that is after 1.6 s. It is a power of two.
	underWay = 1 << 14
	// stragglers is how long the pinger waits for answers after the last message.
	stragglers = time.Second
	// lookEvery bounds the sleep between checks of the phase.
	lookEvery = 100 * time.Millisecond
)

// pinger sends one message per gap over UDP and times the answers.
type pinger struct {
	end     *endpoint
	gap     time.Duration
	message []byte
	// as large as the largest datagram, so that an answer which is too long is recognized and
	// refused
	answer   []byte
	sequence uint64 // of the last message
	waiting  []sending
	sent     int64 // inside the measured window
	answered int64 // of those
}

// sending is a message that waits for its answer.
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

// Close implements [engine.Body].
func (p *pinger) Close() { p.end.close() }

// greet shows whether a server answers at all.
func (p *pinger) greet(ctx context.Context, w *engine.Worker, wait time.Duration) error {
	var cause error
	for range firstTries {
		// An error here may belong to the previous message, so it does not end the search.
		sent := p.send(w)
		for until := w.Now() + wait; w.Now() < until; {
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
				cause = err // most often "connection refused", which the far kernel reports at once
			}
		}
		cause = errors.Join(cause, sent)
	}
	return noAnswer(cause, fmt.Sprintf("%d messages were sent", firstTries))
}

// Loop sends by the clock and not after the answer, so that a slow answer does not delay other
// messages. Messages that could not be sent in time are skipped: a burst to catch up would measure
// itself. After the window it waits for late answers and ends.
func (p *pinger) Loop(w *engine.Worker) error {
	next := w.Now()
	var quit time.Duration // when to stop waiting for late answers
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
			// All answers are in, or the rest is lost.
			if now >= quit || p.answered == p.sent {
				return nil
			}
			next = quit
		default:
			if now >= next {
				_ = p.send(w) // a message that this host could not send is lost like any other
				next = max(next+p.gap, now)
			}
		}
		// An error is the network's report on some message, which stays unanswered.
		if n, err := p.end.readWithin(p.answer, min(max(next-w.Now(), 0), lookEvery)); err == nil {
			p.take(w, p.answer[:n])
		}
	}
}

// send sends the next message.
func (p *pinger) send(w *engine.Worker) error {
	p.sequence++
	binary.BigEndian.PutUint64(p.message, p.sequence)
	// The message in this place has waited for underWay others: it is lost, and its answer will
	// find another number here.
	s := &p.waiting[p.sequence%underWay]
	*s = sending{sequence: p.sequence, measured: w.Phase.Is() == engine.Measured, at: w.Now()}
	if s.measured {
		p.sent++
	}
	_, err := p.end.write(p.message)
	return err
}

// take examines one datagram, and counts it if it is the first answer to a waiting message.
func (p *pinger) take(w *engine.Worker, answer []byte) bool {
	now := w.Now()
	h, ok := parseHeader(answer)
	// Number 0 is never sent, but would match a place without a message.
	if !ok || len(answer) != len(p.message) || h.sequence == 0 || !h.answers(h.sequence, len(p.message)) {
		return false
	}
	s := &p.waiting[h.sequence%underWay]
	if s.sequence != h.sequence {
		return false // a duplicate, or too late
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

// perSecond returns a rate; 0 if no time has passed.
func perSecond(n int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(n) / seconds
}

// distribution returns the round trips for a result; nil if there are none.
func distribution(workers []*engine.Worker) *stats.Latencies {
	all := newHistogram()
	for _, w := range workers {
		all.Merge(w.RTT)
	}
	return all.Snapshot().OrNil()
}
