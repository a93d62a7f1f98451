package traffic

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

const (
	// pingRing is how many pings may be under way; an answer later than that is lost: at the shortest gap of 100 µs after 1.6 s, at the
	// default of 10 ms after 164 s. It is a power of two.
	pingRing = 1 << 14
	// stragglers is how long answers are waited for after the last ping.
	stragglers = time.Second
	// echoTries and echoWait are how a way to ping is tried before the test: 1.5 s for each of two ways, within the setup time that the far
	// side waits for test.go.
	echoTries = 3
	echoWait  = 500 * time.Millisecond
)

// pingState is what a pinger works on. The worker owns it; the conductor reads sent and answered when the worker has ended.
type pingState struct {
	socket   *echoSocket
	token    Token
	gap      time.Duration
	ping     []byte // the packet that is sent, token in place
	sequence uint64 // of the next ping
	ring     []pingSent
	sent     int64 // inside the window
	answered int64 // of those
}

// pingSent is one ping that may still be answered.
type pingSent struct {
	sequence uint64
	at       time.Duration
	measured bool
	waiting  bool
}

// pingLoop sends a ping per gap by the clock, not after the answer, so that a slow answer hides no others. What could not be sent in
// time is left out: catching up in a burst would measure the burst.
func (w *worker) pingLoop() error {
	s := w.ping
	defer s.socket.close()
	next := time.Since(w.base)
	var quit time.Duration // when to stop waiting for stragglers
	for {
		now := time.Since(w.base)
		switch w.phase.is() {
		case stopped:
			return nil
		case tail:
			if quit == 0 {
				quit = now + stragglers
			}
			if now >= quit || s.answered == s.sent {
				return nil
			}
			next = quit
		default:
			if now >= next {
				w.sendPing(now)
				next = max(next+s.gap, now)
			}
		}
		// The phase is looked at again after a tenth of a second at most.
		w.takeAnswer(min(next-now, 100*time.Millisecond))
	}
}

func (w *worker) sendPing(now time.Duration) {
	s := w.ping
	slot := &s.ring[s.sequence%pingRing]
	*slot = pingSent{sequence: s.sequence, at: now, measured: w.phase.is() == measured, waiting: true}
	putPing(s.ping, s.token, s.sequence)
	if slot.measured {
		s.sent++
	}
	// A ping that the host itself could not send is lost like any other, and so is one whose loss the network reports.
	_ = s.socket.send(s.ping, s.sequence)
	s.sequence++
}

// takeAnswer waits for one answer; what is late twice over, doubled or foreign is not counted.
func (w *worker) takeAnswer(wait time.Duration) {
	s := w.ping
	p, err := s.socket.receive(wait)
	if p == nil || err != nil {
		return // an error is the network's word on some ping, which stays unanswered
	}
	now := time.Since(w.base)
	sequence, ok := parsePing(p, s.token)
	if !ok {
		return
	}
	slot := &s.ring[sequence%pingRing]
	// A copy that the network made, or an answer whose place another ping has taken since.
	if !slot.waiting || slot.sequence != sequence {
		return
	}
	slot.waiting = false
	w.transactions.Add(1)
	w.rttNanos.Add(int64(now - slot.at))
	if slot.measured {
		s.answered++
		w.rtt.Record(int64(now - slot.at))
	}
}

// findEcho finds out who answers: the far kernel over ICMP if the network lets it, else the far linerate over UDP.
func (l Link) findEcho(ctx context.Context, spec Spec, p *phase, accepted acceptBody) (*worker, string, error) {
	var tried []error
	try := func(name string, token Token, open func() (*echoSocket, error)) *worker {
		socket, err := open()
		if err != nil {
			tried = append(tried, fmt.Errorf("%s: %w", name, err))
			return nil
		}
		w := newWorker(pinger, nil, spec, p)
		w.ping = &pingState{socket: socket, token: token, gap: spec.Gap, ping: pattern(spec.RequestBytes), ring: make([]pingSent, pingRing)}
		for range echoTries {
			w.sendPing(time.Since(w.base))
			for until := time.Since(w.base) + echoWait; w.transactions.Load() == 0 && ctx.Err() == nil; {
				left := until - time.Since(w.base)
				if left <= 0 {
					break
				}
				w.takeAnswer(min(left, 50*time.Millisecond))
			}
			if w.transactions.Load() > 0 {
				return w
			}
		}
		socket.close()
		tried = append(tried, fmt.Errorf("%s: %w to %d packets", name, ErrNoAnswer, echoTries))
		return nil
	}

	ip, err := netip.ParseAddr(l.PeerIP)
	if err != nil {
		tried = append(tried, fmt.Errorf("icmp echo: %w", err))
	} else {
		var token Token
		// crypto/rand.Read never fails: it crashes the program instead (Go 1.24).
		_, _ = rand.Read(token[:])
		if w := try("icmp echo", token, func() (*echoSocket, error) { return openICMP(ip, spec.RequestBytes) }); w != nil {
			return w, "icmp echo", nil
		}
	}
	if to, ok := l.echoAddress(ctx, accepted); ok && len(accepted.EchoToken) == TokenBytes {
		if w := try("udp echo", Token(accepted.EchoToken), func() (*echoSocket, error) { return openUDP(to, spec.RequestBytes) }); w != nil {
			return w, "udp echo", nil
		}
	}
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	return nil, "", fmt.Errorf("ping %s: %w", l.PeerIP, errors.Join(tried...))
}

// echoAddress is where the far EchoServer listens: where the caller says, else at the port that the far side named.
func (l Link) echoAddress(ctx context.Context, accepted acceptBody) (netip.AddrPort, bool) {
	target := l.Echo
	if target == "" {
		target = net.JoinHostPort(l.PeerIP, strconv.Itoa(accepted.EchoPort))
	}
	if a, err := netip.ParseAddrPort(target); err == nil {
		return a, a.Port() != 0
	}
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return netip.AddrPort{}, false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return netip.AddrPort{}, false
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(ips) == 0 {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(ips[0].Unmap(), uint16(n)), true
}
