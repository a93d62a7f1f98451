package echo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/traffic/engine"
)

const (
	// pingRing is how many pings may be under way; an answer later than that is lost: at the
	// shortest gap of 100 µs after 1.6 s, at the default of 10 ms after 164 s. It is a power of
	// two.
	pingRing = 1 << 14
	// The pinger waits for answers after the last ping as long as this, or twice the longest round
	// trip so far, as ping(8) does, up to the second bound.
	stragglers, mostStragglers = time.Second, 5 * time.Second
	// tries and tryWait bound the trial of a way to ping before the test: 1.5 s for each of two
	// ways, within the time that the far end waits for the start.
	tries   = 3
	tryWait = 500 * time.Millisecond
	// stampWait gives the kernel time to begin timestamping.
	stampWait = 5 * time.Millisecond
)

// HeaderBytes is the smallest ping.
const HeaderBytes = echoHeaderBytes

// ErrNoAnswer reports that no ping was answered.
var ErrNoAnswer = errors.New("no answer")

// PingOptions are where to send pings and how.
type PingOptions struct {
	IP    netip.Addr     // of the far host, for ICMP echo; invalid: none
	UDP   netip.AddrPort // of the far Server; invalid: none
	Token Token          // for it
	Bytes int            // payload of a ping, HeaderBytes at least
	Gap   time.Duration  // between pings
	From  netip.Addr     // of this host; invalid: the route chooses
}

// Pinger is the body of a worker of role [engine.Pinger]. The worker owns it; other goroutines may
// read Sent, Answered and Troubles when the worker has ended.
type Pinger struct {
	socket   *echoSocket
	token    Token
	gap      time.Duration
	ping     []byte // the packet that is sent, token in place
	sequence uint64 // of the next ping
	ring     []pingSent
	longest  time.Duration // round trip so far
	sent     int64         // inside the window
	answered int64         // of those
	troubles troubles

	// The kernel may or may not have counted a packet that it refused in the numbers of its send
	// timestamps.
	unsure           bool
	stampsIn, stamps bool // the kernel reported when an answer arrived, and also when its ping left
}

// pingSent is one ping that may still be answered.
type pingSent struct {
	sequence uint64
	at       time.Duration
	wall     int64 // CLOCK_REALTIME in nanoseconds, of the call that sent it
	left     int64 // the same, when it entered the host's queues; 0: not known
	measured bool
	waiting  bool
}

// Sent returns the number of pings inside the measured window.
func (s *Pinger) Sent() int64 { return s.sent }

// Answered returns how many of those were answered, in time and once.
func (s *Pinger) Answered() int64 { return s.answered }

// Troubles returns what the network or this host reported about pings that did not get through,
// from the first ping on; nil: no reports.
func (s *Pinger) Troubles() []Trouble { return s.troubles.list() }

// Wake does nothing: a pinger never sleeps for more than a tenth of a second.
func (s *Pinger) Wake() {}

// Close gives the socket up.
func (s *Pinger) Close() { s.socket.close() }

// Loop sends a ping per gap by the clock, not after the answer, so that a slow answer hides no
// others. It skips pings that it could not send in time: catching up in a burst would measure the
// burst. After the window it waits for stragglers and ends.
func (s *Pinger) Loop(w *engine.Worker) error {
	defer s.socket.close()
	next := w.Now()
	var tail time.Duration // when the window was over
	for {
		now := w.Now()
		switch w.Phase.Is() {
		case engine.Stopped:
			return nil
		case engine.Tail:
			if tail == 0 {
				tail = now
			}
			next = tail + min(max(stragglers, 2*s.longest), mostStragglers)
			if now >= next || s.answered == s.sent {
				return nil
			}
		default:
			if now >= next {
				s.sendPing(w, now)
				next = max(next+s.gap, now)
			}
		}
		// The loop looks at the phase again after a tenth of a second at most.
		s.takeAnswer(w, min(next-now, 100*time.Millisecond))
	}
}

func (s *Pinger) sendPing(w *engine.Worker, now time.Duration) {
	slot := &s.ring[s.sequence%pingRing]
	*slot = pingSent{sequence: s.sequence, at: now, measured: w.Phase.Is() == engine.Measured, waiting: true}
	putPing(s.ping, s.token, s.sequence)
	if slot.measured {
		s.sent++
	}
	slot.wall = time.Now().UnixNano()
	// A ping that the host itself could not send is lost like any other. The error queue has the
	// reason.
	if err := s.socket.send(s.ping, s.sequence); err != nil {
		s.unsure = true
	}
	s.sequence++
}

// takeAnswer waits for one answer; it does not count very late, duplicated or foreign ones.
func (s *Pinger) takeAnswer(w *engine.Worker, wait time.Duration) {
	e := s.socket.next(wait)
	now := w.Now()
	switch {
	case e.trouble.Count > 0:
		s.troubles.add(e.trouble) // the ping that the report is about stays unanswered
		return
	case e.sent != 0:
		// Numbers of 32 bits, which is enough to find the one ping among those that may be under
		// way.
		sequence := s.sequence - uint64(uint32(s.sequence)-e.id)
		if slot := &s.ring[sequence%pingRing]; slot.sequence == sequence && !s.unsure {
			slot.left = e.sent
		}
		return
	}
	sequence, ok := parsePing(e.payload, s.token)
	if !ok {
		return
	}
	slot := &s.ring[sequence%pingRing]
	// A duplicate that the network made, or an answer whose place another ping has taken since.
	if !slot.waiting || slot.sequence != sequence {
		return
	}
	slot.waiting = false
	d := s.between(slot, now, e.received)
	s.longest = max(s.longest, d)
	w.Transactions.Add(1)
	w.RTTNanos.Add(int64(d))
	if slot.measured {
		s.answered++
		w.RTT.Record(int64(d))
	}
}

// between returns the round trip of a ping that was answered at now, as the kernel saw it: from the
// moment the packet entered the queues of this host to the moment the answer left the driver,
// received. Where the kernel reports no times, those of the calls replace them, which include the
// scheduler's delay.
//
// The kernel's times are those of the wall clock, which may be set between the two. The monotonic
// clock around them bounds the round trip from above, so that an impossible value is not used.
func (s *Pinger) between(slot *pingSent, now time.Duration, received int64) time.Duration {
	around := now - slot.at
	if received == 0 {
		return around
	}
	from := slot.wall
	left := slot.left >= slot.wall && slot.left < received
	if left {
		from = slot.left
	}
	inside := time.Duration(received - from)
	if inside <= 0 || inside > around {
		return around
	}
	s.stampsIn, s.stamps = true, s.stamps || left
	return inside
}

// clock returns which clock times the round trips, for the worker's Method.
func (s *Pinger) clock() string {
	switch {
	case s.stamps:
		return ", kernel timestamps"
	case s.stampsIn:
		return ", kernel receive timestamps"
	}
	return ""
}

func newPinger(p *engine.Phase, socket *echoSocket, token Token, o PingOptions) (*engine.Worker, *Pinger) {
	s := &Pinger{socket: socket, token: token, gap: o.Gap, ping: engine.Pattern(o.Bytes),
		ring: make([]pingSent, pingRing)}
	w := engine.New(engine.Pinger, p, s)
	w.RTT = stats.NewHistogram()
	return w, s
}

// NewPinger finds out which end answers and makes the worker that pings it: the far kernel over
// ICMP if the network lets it, else the far linerate over UDP. The worker's Method has the way and
// the clock: "icmp echo" or "udp echo", followed by ", kernel timestamps" where the kernel reports
// when packets leave and arrive, or ", kernel receive timestamps" where it reports only the latter.
// Without an answer the error is [ErrNoAnswer] and has what the network reported instead.
func NewPinger(ctx context.Context, p *engine.Phase, o PingOptions) (*engine.Worker, *Pinger, error) {
	var tried []error
	try := func(name string, token Token, open func() (*echoSocket, error)) (*engine.Worker, *Pinger) {
		socket, err := open()
		if err != nil {
			tried = append(tried, fmt.Errorf("%s: %w", name, err))
			return nil, nil
		}
		w, s := newPinger(p, socket, token, o)
		for range tries {
			s.sendPing(w, w.Now())
			before := w.Transactions.Load()
			for until := w.Now() + tryWait; w.Transactions.Load() == before && ctx.Err() == nil; {
				left := until - w.Now()
				if left <= 0 {
					break
				}
				s.takeAnswer(w, min(left, 50*time.Millisecond))
			}
			// The kernel begins to take times some milliseconds after the first socket of the host
			// has requested them (net/core/dev.c, net_enable_timestamp), so the first answer may
			// come without one.
			if s.stamps {
				break
			}
			if w.Transactions.Load() > 0 {
				time.Sleep(stampWait)
			}
		}
		if w.Transactions.Load() > 0 {
			w.Method = name + s.clock()
			return w, s
		}
		socket.close()
		err = fmt.Errorf("%s: %w to %d packets", name, ErrNoAnswer, tries)
		for _, t := range s.Troubles() {
			err = fmt.Errorf("%w; %s", err, t)
		}
		tried = append(tried, err)
		return nil, nil
	}
	if o.IP.IsValid() {
		var token Token
		// crypto/rand.Read never fails: it crashes the program instead (Go 1.24).
		_, _ = rand.Read(token[:])
		if w, s := try("icmp echo", token, func() (*echoSocket, error) { return openICMP(o.From, o.IP, o.Bytes) }); w != nil {
			return w, s, nil
		}
	}
	if o.UDP.IsValid() && o.UDP.Port() != 0 {
		open := func() (*echoSocket, error) { return openUDP(o.From, o.UDP, o.Bytes) }
		if w, s := try("udp echo", o.Token, open); w != nil {
			return w, s, nil
		}
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if len(tried) == 0 {
		return nil, nil, fmt.Errorf("ping: %w: no address to ask", ErrNoAnswer)
	}
	return nil, nil, fmt.Errorf("ping %s: %w", o.IP, errors.Join(tried...))
}
