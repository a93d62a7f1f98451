package stamp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/linerate/linerate/internal/traffic/admission"
)

// Bounds of a reflector's memory. admission.LimitLines bounds how much a flood from forged sources
// can write to a log.
const (
	maxSessions  = 1024
	sessionQuiet = 60 * time.Second // silence after which a session ends; its sender then starts at zero
	sweepEvery   = time.Second
)

// why is the reason why a packet was not reflected.
type why int

const (
	reflected why = iota
	tooShort
	unauthenticated
	wouldGrow
	reservedPort
	looksReflected
	overAllowance
	reasons // how many there are
)

// reasonTexts are for the log.
var reasonTexts = [reasons]string{
	tooShort:        "too short for STAMP",
	unauthenticated: "without the right HMAC",
	wouldGrow:       "shorter than any answer, from sources that are not trusted",
	reservedPort:    "from ports of other services",
	looksReflected:  "were reflected packets themselves",
	overAllowance:   "over this host's limits of packets and bytes",
}

// sessionKey identifies a session (RFC 8972 §3).
type sessionKey struct {
	from netip.AddrPort
	ssid uint16
}

// session is what a stateful reflector knows about one sender.
type session struct {
	began, seen time.Duration
	count       uint32 // packets reflected, which is the next sequence number
	first, high uint32 // sender's sequence numbers
	bytes       int64
}

// reflector decides about packets and creates their answers. One goroutine owns it.
type reflector struct {
	gate      *admission.Gate
	log       func(string)
	auth      *authenticator
	clock     clock
	trusted   []netip.Prefix
	stateless bool
	port      uint16 // this server's

	// sequence numbers as HMACs cover them; in the struct, because a hash is an interface and would
	// move them to the heap
	sent, answered [4]byte

	sessions map[sessionKey]*session
	lastKey  sessionKey // of last: most packets come in runs
	last     *session
	swept    time.Duration
	refused  [reasons]int64
	unkept   int64 // packets reflected without a session, because there was no room
	lastLog  time.Duration
}

// answer turns the packet in p[:n] into its answer and returns the length, or 0 for no answer; p
// has room for baseBytes. The time of departure and the HMAC are still missing: see leave.
func (r *reflector) answer(p []byte, n int, a arrival, now time.Duration) int {
	length, reason := r.judge(p, n, a, now)
	r.refused[reason]++
	return length
}

func (r *reflector) judge(p []byte, n int, a arrival, now time.Duration) (int, why) {
	l := r.auth.layout()
	switch {
	case n < shortRequest || r.auth != nil && n < authBytes:
		return 0, tooShort
	case a.from.Port() < 1024 && a.from.Port() != DefaultPort:
		// An answer would hit a DNS or NTP server, which may answer it in turn.
		return 0, reservedPort
	case r.auth != nil && !r.auth.verifies(p[:n]):
		return 0, unauthenticated
	case n >= l.received+8 && !allZero(p[l.received:l.received+8]) &&
		(a.from.Port() == DefaultPort || a.from.Port() == r.port || momentApart(p, l)):
		// Forged packets could make two reflectors answer each other for ever. A STAMP sender has
		// zeros where a reflector writes T2. A TWAMP Light sender may have random padding there, so
		// from other ports, where a reflector may be too, the field has to look like a T2.
		return 0, looksReflected
	}
	length := n
	if n < l.bytes {
		switch {
		case r.trusts(a.from.Addr()):
			length = l.bytes // RFC 8762 §4.6
		case n < shortReply:
			return 0, wouldGrow
		}
	}
	if !r.gate.Allow(a.from.Addr(), 1, length) {
		return 0, overAllowance
	}
	req := parseRequest(p[:n], l)
	sequence := req.sequence
	if s := r.session(sessionKey{a.from, req.ssid}, now); s != nil {
		sequence = s.next(req.sequence, length, now)
	}
	binary.BigEndian.PutUint32(r.sent[:], req.sequence)
	binary.BigEndian.PutUint32(r.answered[:], sequence)
	// In the sender's format, which is the one that it can read.
	f := parseEstimate(req.estimate).format
	state := r.clock.now()
	var received [8]byte
	putTimestamp(received[:], a.at, f, state.taiOffset)
	putReply(p[:length], l, &req, sequence, state.estimate(f).bits(), received[:], a.ttl)
	if n > l.bytes {
		reflectTLVs(p[l.bytes:n], r.auth, r.sent[:], r.answered[:])
	}
	return length, reflected
}

// momentApart reports whether T3 and T2 of a possible reflector's packet lie within two seconds, as
// they do when one clock wrote both. Random bytes do so five times in 2^32. The seconds come first
// in either format of timestamps.
func momentApart(p []byte, l *layout) bool {
	apart := int32(binary.BigEndian.Uint32(p[l.timestamp:]) - binary.BigEndian.Uint32(p[l.received:]))
	return apart >= -2 && apart <= 2
}

// leave writes the time of departure and the HMAC into an answer. It must be the last step before
// the packet is sent.
func (r *reflector) leave(p []byte) {
	l := r.auth.layout()
	putTimestamp(p[l.timestamp:], unixNanos(), parseEstimate(binary.BigEndian.Uint16(p[l.estimate:])).format,
		r.clock.state.taiOffset)
	if r.auth != nil {
		r.auth.sign(p)
	}
}

// trusts reports whether a source may receive more than it sent. This host always may: no other
// host can send from its loopback addresses.
func (r *reflector) trusts(from netip.Addr) bool {
	return from.IsLoopback() || slices.ContainsFunc(r.trusted, func(p netip.Prefix) bool { return p.Contains(from) })
}

// session finds or begins a session; nil if the reflector keeps none, or has no room for one more.
func (r *reflector) session(key sessionKey, now time.Duration) *session {
	if r.stateless {
		return nil
	}
	if r.last != nil && r.lastKey == key {
		return r.last
	}
	s := r.sessions[key]
	if s == nil {
		if len(r.sessions) >= maxSessions {
			r.unkept++
			return nil
		}
		s = &session{began: now}
		r.sessions[key] = s
	}
	r.last, r.lastKey = s, key
	return s
}

// next counts a packet and returns the sequence number of its answer.
func (s *session) next(sent uint32, bytes int, now time.Duration) uint32 {
	if s.count == 0 {
		s.first, s.high = sent, sent
	}
	// Sequence numbers wrap; a number less than half of them ahead is later.
	if int32(sent-s.high) > 0 {
		s.high = sent
	}
	s.seen = now
	s.bytes += int64(bytes)
	s.count++
	return s.count - 1
}

// sweep ends and logs the sessions that have been silent; all of them when the server ends.
func (r *reflector) sweep(now time.Duration, end bool) {
	if !end && now-r.swept < sweepEvery {
		return
	}
	r.swept = now
	for key, s := range r.sessions {
		if end || now-s.seen > sessionQuiet {
			r.log(s.sentence(key))
			delete(r.sessions, key)
			r.last = nil
		}
	}
	if !end && now-r.lastLog < sessionQuiet {
		return
	}
	r.lastLog = now
	for reason, n := range r.refused {
		if n > 0 && why(reason) != reflected {
			r.log(fmt.Sprintf("stamp: %d packets not reflected: %s", n, reasonTexts[reason]))
		}
	}
	r.refused = [reasons]int64{}
	if r.unkept > 0 {
		r.log(fmt.Sprintf("stamp: %d packets reflected without counting them: all %d sessions are in use", r.unkept,
			maxSessions))
		r.unkept = 0
	}
}

// sentence describes what a sender did.
func (s *session) sentence(key sessionKey) string {
	text := fmt.Sprintf("stamp %s", key.from)
	if key.ssid != 0 {
		text += fmt.Sprintf(" session %d", key.ssid)
	}
	text += fmt.Sprintf(": %d packets reflected, %d bytes in %.1f s", s.count, s.bytes, (s.seen - s.began).Seconds())
	if lost := int64(s.high-s.first) + 1 - int64(s.count); lost > 0 {
		text += fmt.Sprintf(", %d missing on the way here", lost)
	}
	return text
}
