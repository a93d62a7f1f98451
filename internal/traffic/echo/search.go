package echo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

const (
	// maxPacket is the largest IP packet to try: the maximum of the length field of IPv4.
	maxPacket = 1<<16 - 1
	// probeTries is how often a size is tried before it counts as one that does not pass. On a path
	// that loses one packet in ten, both ways, seven sizes in a thousand then look too big by
	// chance; the search tries its final size as often again.
	probeTries = 3
	// shortest and longest wait for the answers of one try, and the wait before the round trip is
	// known.
	leastProbeWait, longestProbeWait, firstProbeWait = 60 * time.Millisecond, time.Second, 500 * time.Millisecond
	// mostLate is how many packets of the socket a try takes after its end.
	mostLate = 256
	// searchRounds bounds a search on a path that changes meanwhile: from 65535 sizes it takes
	// eight rounds with four sizes each.
	searchRounds = 24
)

// maxHints bounds the sizes of a round: a path has few hops that name one, and a host that names
// thousands wants this host to send that many packets.
const maxHints = 32

// usualSizes are tried first: what links, tunnels and the minima of the protocols leave. IPv6 needs
// 1280 and IPv4 576 (RFC 8200, RFC 791); PPPoE leaves 1492, 6in4 1480, GRE 1476, WireGuard 1420 and
// 1440, IPsec about 1400; IP over InfiniBand has 2044, jumbo frames 9000.
var usualSizes = []int{576, 1280, 1400, 1420, 1440, 1476, 1480, 1492, 1500, 2044, 9000}

// SearchOptions are which path to search. With neither address the search fails.
type SearchOptions struct {
	UDP   netip.AddrPort // of a far Server, which finds both directions. Invalid: none
	Token Token          // for it
	// of the far host, for ICMP echo if the server is silent: the smaller of both directions,
	// because its answers are as large. Invalid: none
	IP   netip.Addr
	From netip.Addr // of this host; invalid: the route chooses
}

// PathMTU is what a search found. Sizes are of whole IP packets in bytes.
type PathMTU struct {
	Method    string // "udp echo" or "icmp echo"
	Up, Down  PathSide
	RoundTrip time.Duration // of the smallest packet, the first that was answered
	Troubles  []Trouble     // what the network reported
}

// PathSide is one direction of a path; the zero value was not searched.
type PathSide struct {
	Bytes     int  // largest packet that passed in one piece
	Exact     bool // the next larger size did not pass; false when the search was cut short
	Interface int  // MTU of the sending interface; 0: not known
	Reported  int  // MTU that the path reported in an ICMP message; 0: none
	BlackHole bool // larger packets leave the sender and are dropped without an ICMP message
}

// SearchPathMTU finds the largest packets that pass each way in one piece, by trying: it sends
// unfragmentable packets, several sizes at a time, until two adjacent sizes are left of which one
// passes and one does not (RFC 4821 and RFC 8899 without their timers, which are for connections
// that live for hours). It takes some round trips where the path reports what it drops, and a
// second or two where it does not. It ends with ctx, with what it has by then. The error is
// [ErrNoAnswer] when not even the smallest packet is answered; where fragments cannot be forbidden
// it wraps sys.ErrNotSupported.
func SearchPathMTU(ctx context.Context, o SearchOptions) (PathMTU, error) {
	var own Token
	// crypto/rand.Read never fails: it crashes the program instead (Go 1.24).
	_, _ = rand.Read(own[:])
	var tried []error
	for _, way := range []struct {
		name  string
		to    netip.Addr
		token Token
		both  bool // directions
		open  func() (*echoSocket, error)
	}{
		{"udp echo", o.UDP.Addr(), o.Token, true, func() (*echoSocket, error) { return openUDP(o.From, o.UDP, maxPacket) }},
		{"icmp echo", o.IP, own, false, func() (*echoSocket, error) { return openICMP(o.From, o.IP, maxPacket) }},
	} {
		if !way.to.IsValid() {
			continue
		}
		socket, err := way.open()
		if err == nil {
			s := newSearch(socket, way.token, way.to.Unmap().Is6(), way.both)
			if err = socket.dontFragment(); err == nil {
				err = s.run(ctx)
			}
			socket.close()
			if err == nil {
				return s.result(way.name), nil
			}
		}
		if ctx.Err() != nil {
			return PathMTU{}, fmt.Errorf("search path mtu: %w", context.Cause(ctx))
		}
		tried = append(tried, fmt.Errorf("%s: %w", way.name, err))
	}
	if len(tried) == 0 {
		return PathMTU{}, fmt.Errorf("search path mtu: %w: no address to ask", ErrNoAnswer)
	}
	return PathMTU{}, fmt.Errorf("search path mtu: %w", errors.Join(tried...))
}

// search is one search; one goroutine owns it. It searches both directions at once over one socket:
// their probes do not disturb each other, and a silent path costs its waits only once.
type search struct {
	socket   prober
	token    Token
	headers  int // of IP and what is on it, before the payload
	packet   []byte
	id       uint64 // of the last probe
	start    time.Time
	trip     time.Duration
	wait     time.Duration // for the answers of a try
	up, down side
	troubles troubles
}

// prober is the part of an echoSocket that a search needs; tests of the search simulate a path
// behind it.
type prober interface {
	send(packet []byte, sequence uint64) error
	next(wait time.Duration) event
}

// side is the state of one direction. Every size up to low passes, as far as is known, and none
// from high on.
//
// This order makes the search possible: a hop that takes a packet takes every shorter one. Chance
// breaks the order when it loses a short packet three times; a longer one that passes then corrects
// it.
type side struct {
	on        bool
	kind      byte
	low, high int
	local     int   // MTU of the sending interface; 0: not known
	hop       int   // named by the path; unnamed: it reported without naming one
	hints     []int // sizes worth trying next
	probes    []probe
	confirm   confirmation
}

// confirmation is how far the outcome of a search was tried again.
type confirmation int

const (
	unconfirmed confirmation = iota
	confirming
	confirmed
)

// probe is one size of the running round.
type probe struct {
	size  int
	first uint64 // id of the first try; the others follow at steps of probeStep
	state probeState
}

type probeState int

const (
	waiting probeState = iota
	passed
	failed
)

// probeStep is the distance of the ids of a probe's tries: the lower half of an id is the probe's,
// the upper the try's. An answer to an early try that arrives after a later one was sent is as good
// as an answer to that one.
const probeStep = 1 << 32

func newSearch(socket prober, token Token, v6, both bool) *search {
	s := &search{socket: socket, token: token, headers: 20 + 8, packet: make([]byte, maxPacket), start: time.Now()}
	if v6 {
		s.headers = 40 + 8
	}
	s.up = side{on: true, kind: kindHeard, high: maxPacket + 1, hints: slices.Clone(usualSizes)}
	s.down = side{on: both, kind: kindSend, high: maxPacket + 1, hints: slices.Clone(usualSizes)}
	return s
}

// run searches until both directions are known to the byte.
func (s *search) run(ctx context.Context) error {
	if err := s.greet(ctx); err != nil {
		return err
	}
	for range searchRounds {
		s.up.plan()
		s.down.plan()
		if len(s.up.probes)+len(s.down.probes) == 0 || ctx.Err() != nil {
			break
		}
		s.round(ctx)
		s.up.conclude()
		s.down.conclude()
	}
	// What the far end heard about its last packets comes with its next answer.
	if s.down.on && s.down.low != s.down.local {
		s.ask(ctx)
	}
	return nil
}

// greet exchanges the smallest packet, which shows that the far end answers, and how long it takes.
func (s *search) greet(ctx context.Context) error {
	s.wait = firstProbeWait
	if !s.ask(ctx) {
		err := fmt.Errorf("%w to %d packets", ErrNoAnswer, probeTries)
		for _, t := range s.troubles.list() {
			err = fmt.Errorf("%w; %s", err, t)
		}
		return err
	}
	// Four times covers what the queues that this search itself fills add on an otherwise idle
	// path. The shortest wait covers what a busy host adds, and slow answers count as losses only
	// when all tries are slow.
	s.wait = min(max(4*s.trip, leastProbeWait), longestProbeWait)
	// The request passed upwards, and its answer, just as short, downwards.
	s.up.low = s.headers + probeHeaderBytes
	s.down.low = s.up.low
	return nil
}

// ask sends the smallest packet until it is answered, and reports whether it was. Its answer has
// what the path reported to the far end.
func (s *search) ask(ctx context.Context) bool {
	s.up.probes = []probe{{size: s.headers + probeHeaderBytes}}
	s.down.probes = nil
	s.round(ctx)
	answered := s.up.probes[0].state == passed
	s.up.probes = nil
	return answered
}

// plan chooses the sizes of the next round: none when the direction is known.
func (d *side) plan() {
	d.probes = d.probes[:0]
	if !d.on {
		return
	}
	add := func(size int) {
		if size > d.low && size < d.high &&
			!slices.ContainsFunc(d.probes, func(p probe) bool { return p.size == size }) {
			d.probes = append(d.probes, probe{size: size})
		}
	}
	switch {
	// The sending interface is still unknown: one packet that is too big for nearly all of them
	// reveals its MTU.
	case d.high > maxPacket:
		add(maxPacket)
	case d.low < d.high-1:
		// The largest size that may pass passes most paths, and its answer ends the search in one
		// round trip. Beside it go the usual sizes, and what the path named with the next larger
		// one, so that a true report ends the search in another.
		add(d.high - 1)
		for _, size := range d.hints {
			add(size)
		}
		d.hints = d.hints[:0]
		if len(d.probes) > 1 {
			break
		}
		// Evenly between what passes and what does not. Fewer of large packets, because of socket
		// buffers: 200 KiB by default.
		sizes := 8
		if d.high > 10000 {
			sizes = 4
		}
		step := max((d.high-d.low)/(sizes+1), 1)
		for i := 1; i <= sizes; i++ {
			add(d.low + i*step)
		}
	// The next larger size again, in case chance alone lost it three times. A report by the path,
	// or by the interface, needs no second try.
	case d.confirm != confirmed && d.low != d.hop && d.low != d.local && d.low < maxPacket:
		d.confirm = confirming
		d.high = d.low + 2
		add(d.low + 1)
	}
}

// conclude evaluates the outcome of the round.
func (d *side) conclude() {
	if !d.on {
		return
	}
	before := d.low
	// What passed first, because it overrules what a shorter one seemed to show.
	for _, p := range d.probes {
		if p.state == passed {
			d.low = max(d.low, p.size)
		}
	}
	for _, p := range d.probes {
		if p.state != passed && p.size > d.low {
			d.high = min(d.high, p.size)
			if p.size == maxPacket && d.local == 0 {
				d.local = maxPacket // the interface took it, at least
			}
		}
	}
	switch {
	case d.confirm == confirming && d.low > before: // it had been chance: search on above
		d.confirm = unconfirmed
		d.high = maxPacket + 1
	case d.confirm == confirming:
		d.confirm = confirmed
	}
	if d.local > 0 {
		d.high = min(d.high, max(d.local, d.low)+1)
	}
}

// round tries the sizes of both directions, up to probeTries times those that are not answered.
func (s *search) round(ctx context.Context) {
	for i := range s.up.probes {
		s.id++
		s.up.probes[i].first = s.id
	}
	for i := range s.down.probes {
		s.id++
		s.down.probes[i].first = s.id
	}
	for try := range uint64(probeTries) {
		// All open probes at once, then one wait for all: the time of a round does not grow with
		// its sizes.
		sent, late := time.Now(), 0
		for _, d := range []*side{&s.up, &s.down} {
			for i := range d.probes {
				if d.open(i) {
					s.send(d, &d.probes[i], try)
				}
			}
		}
		for until := sent.Add(s.wait); !s.up.decided() || !s.down.decided(); {
			left := time.Until(until)
			e := s.socket.next(min(max(left, 0), 50*time.Millisecond))
			if left <= 0 {
				// What waits in the socket counts, however late this thread looks: the host may have
				// paused it. A flood does not prolong the search.
				if late++; e.nothing() || late > mostLate {
					break
				}
			}
			if ctx.Err() != nil {
				break
			}
			s.take(e, sent)
		}
		if ctx.Err() != nil || s.up.decided() && s.down.decided() {
			return
		}
	}
}

// open reports whether the outcome of probe i still matters: it is unknown, and no larger size has
// passed.
func (d *side) open(i int) bool {
	p := d.probes[i]
	return p.state == waiting &&
		!slices.ContainsFunc(d.probes, func(q probe) bool { return q.state == passed && q.size > p.size })
}

// decided reports whether nothing of the round matters any more.
func (d *side) decided() bool {
	for i := range d.probes {
		if d.open(i) {
			return false
		}
	}
	return true
}

// send sends one probe.
func (s *search) send(d *side, p *probe, try uint64) {
	id := p.first + try*probeStep
	// Upwards the request itself has the size; downwards it is as short as possible, and names the
	// size that it requests.
	payload := s.packet[:probeHeaderBytes]
	if d.kind == kindHeard {
		payload = s.packet[:p.size-s.headers]
	}
	putProbe(payload, s.token, d.kind, id, p.size-s.headers)
	err := s.socket.send(payload, id)
	// The next call, of any kind, returns the error of an earlier packet once.
	if err != nil && !errors.Is(err, syscall.EMSGSIZE) {
		err = s.socket.send(payload, id)
	}
	if errors.Is(err, syscall.EMSGSIZE) && d.kind == kindHeard {
		p.state = failed // the interface's MTU is in the error queue
	}
}

// take acts on what happened on the socket; sent is when the running try began.
func (s *search) take(e event, sent time.Time) {
	if e.trouble.Count > 0 {
		s.trouble(e)
		return
	}
	a, ok := parseAnswer(e.payload, s.token)
	if !ok {
		// An ICMP echo comes back unchanged.
		sequence, ours := parsePing(e.payload, s.token)
		if !ours || sequence>>56 != kindHeard {
			return
		}
		a = probeAnswer{id: sequence & (1<<56 - 1)}
	}
	if s.trip == 0 {
		s.trip = time.Since(sent)
	}
	if a.hop > 0 {
		s.down.named(a.hop)
	}
	if p := s.up.find(a.id); p != nil {
		p.state = passed
		return
	}
	p := s.down.find(a.id)
	switch {
	case p == nil: // of a round that is over
	case a.status == probeTooBig:
		p.state = failed
		if a.farLocal > 0 {
			s.down.local = a.farLocal
		}
	case a.status == probeCannot:
		s.down.on, s.down.probes = false, nil
	// An answer of another length is not the requested packet: no proof that a packet of that size
	// gets through.
	case len(e.payload) == p.size-s.headers:
		p.state = passed
	}
}

// trouble acts on a report about a packet.
func (s *search) trouble(e event) {
	switch {
	case e.tooBig && e.local:
		s.up.local = e.trouble.MTU
		return // this host's own report, and expected
	case e.tooBig:
		s.up.named(e.trouble.MTU)
		// Routers send back at least 8 bytes behind the IP header (RFC 792), most of them all that
		// fits 576 bytes (RFC 1812 §4.3.2.3).
		if sequence, ok := parsePing(e.payload, s.token); ok {
			if p := s.up.find(sequence & (1<<56 - 1)); p != nil && p.state == waiting {
				p.state = failed
			}
		}
	}
	// Kept for the user, also when it is about an earlier round.
	s.troubles.add(e.trouble)
}

// named records an MTU that the path named. It is a hint, not a fact: any host can send such a
// message.
func (d *side) named(mtu int) {
	if mtu = max(mtu, unnamed); mtu != d.hop {
		d.hop = mtu
		if len(d.hints) < maxHints {
			d.hints = append(d.hints, mtu, mtu+1)
		}
	}
}

// find returns the probe that an id belongs to; nil: none of this round.
func (d *side) find(id uint64) *probe {
	for i := range d.probes {
		if d.probes[i].first == id%probeStep {
			return &d.probes[i]
		}
	}
	return nil
}

func (s *search) result(method string) PathMTU {
	return PathMTU{Method: method, Up: s.up.result(), Down: s.down.result(), RoundTrip: s.trip,
		Troubles: s.troubles.list()}
}

func (d *side) result() PathSide {
	if !d.on {
		return PathSide{}
	}
	r := PathSide{Bytes: d.low, Exact: d.low == d.high-1 || d.low == maxPacket, Interface: d.local}
	if d.hop > unnamed {
		r.Reported = d.hop
	}
	// A hop with a smaller MTU than the one that reported may drop silently as well.
	r.BlackHole = d.low < d.local && (d.hop == 0 || d.low < d.hop)
	return r
}
