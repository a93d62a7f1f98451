package stamp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Sizes of packets.
const (
	baseBytes      = 44  // unauthenticated, both directions
	authBytes      = 112 // authenticated, both directions
	authCovered    = 96  // the bytes that the HMAC covers
	hmacBytes      = 16
	shortRequest   = 14 // TWAMP Light's sender without padding
	shortReply     = 38 // TWAMP Light's reflector without TTL
	ttlReply       = 41 // and with TTL
	maxPacketBytes = 65507
)

// authenticator computes and checks HMACs. It is for one goroutine. A nil authenticator is the
// unauthenticated mode.
type authenticator struct {
	mac hash.Hash
	sum [sha256.Size]byte
}

// newAuthenticator returns an authenticator for a key; nil for an empty one.
func newAuthenticator(key []byte) *authenticator {
	if len(key) == 0 {
		return nil
	}
	return &authenticator{mac: hmac.New(sha256.New, key)}
}

// of returns the HMAC over the parts, valid until the next call.
func (a *authenticator) of(parts ...[]byte) []byte {
	a.mac.Reset()
	for _, p := range parts {
		_, _ = a.mac.Write(p) // a write to a hash cannot fail
	}
	return a.mac.Sum(a.sum[:0])[:hmacBytes]
}

// sign writes the HMAC of an authenticated packet, which must be complete.
func (a *authenticator) sign(p []byte) { copy(p[authCovered:authBytes], a.of(p[:authCovered])) }

// verifies reports whether a packet has the right HMAC, in constant time.
func (a *authenticator) verifies(p []byte) bool {
	return len(p) >= authBytes && hmac.Equal(p[authCovered:authBytes], a.of(p[:authCovered]))
}

// layout holds the offsets of the fields.
type layout struct {
	bytes                                       int
	timestamp, estimate, ssid                   int // both directions
	received, sequence, sent, sentEstimate, ttl int // in the reflector's packets, about the sender's
}

var (
	openLayout = layout{bytes: baseBytes, timestamp: 4, estimate: 12, ssid: 14, received: 16, sequence: 24, sent: 28,
		sentEstimate: 36, ttl: 40}
	authLayout = layout{bytes: authBytes, timestamp: 16, estimate: 24, ssid: 26, received: 32, sequence: 48, sent: 64,
		sentEstimate: 72, ttl: 80}
)

// layout returns the layout of a mode.
func (a *authenticator) layout() *layout {
	if a == nil {
		return &openLayout
	}
	return &authLayout
}

// request is the content of a sender's packet.
type request struct {
	sequence  uint32
	timestamp [8]byte // as it arrived; only the sender interprets its format
	estimate  uint16
	ssid      uint16
}

// put writes a request into p, without the HMAC.
func (r *request) put(p []byte, l *layout) {
	clear(p[:l.bytes])
	binary.BigEndian.PutUint32(p, r.sequence)
	copy(p[l.timestamp:], r.timestamp[:])
	binary.BigEndian.PutUint16(p[l.estimate:], r.estimate)
	binary.BigEndian.PutUint16(p[l.ssid:], r.ssid)
}

// parseRequest parses a request of at least shortRequest bytes; missing fields are zero (RFC 8762
// §4.6). The caller has checked the length and, if authenticated, the HMAC.
func parseRequest(p []byte, l *layout) request {
	r := request{sequence: binary.BigEndian.Uint32(p), timestamp: [8]byte(p[l.timestamp:]),
		estimate: binary.BigEndian.Uint16(p[l.estimate:])}
	if len(p) >= l.ssid+2 {
		r.ssid = binary.BigEndian.Uint16(p[l.ssid:])
	}
	return r
}

// putReply turns a request in p into its reply, without the time of departure and the HMAC. p may
// end anywhere from shortReply on; bytes after the base packet stay.
func putReply(p []byte, l *layout, r *request, sequence uint32, estimate uint16, received []byte, ttl uint8) {
	clear(p[:min(len(p), l.bytes)])
	binary.BigEndian.PutUint32(p, sequence)
	binary.BigEndian.PutUint16(p[l.estimate:], estimate)
	binary.BigEndian.PutUint16(p[l.ssid:], r.ssid)
	copy(p[l.received:], received[:8])
	binary.BigEndian.PutUint32(p[l.sequence:], r.sequence)
	copy(p[l.sent:], r.timestamp[:])
	binary.BigEndian.PutUint16(p[l.sentEstimate:], r.estimate)
	if len(p) > l.ttl {
		p[l.ttl] = ttl
	}
}

// reply is the content of a reflector's packet.
type reply struct {
	sequence       uint32
	left, received []byte // T3 and T2, in the format of estimate
	estimate       errorEstimate
	ssid           uint16
	sent           request // the copy of ours
	ttl            uint8
	hasTTL         bool
}

// parseReply parses a reply; ok is false if it is too short or has a wrong HMAC. The timestamps
// point into p.
func parseReply(p []byte, a *authenticator) (r reply, ok bool) {
	l := a.layout()
	if len(p) < shortReply || a != nil && !a.verifies(p) {
		return reply{}, false
	}
	r = reply{
		sequence: binary.BigEndian.Uint32(p), left: p[l.timestamp:][:8], received: p[l.received:][:8],
		estimate: parseEstimate(binary.BigEndian.Uint16(p[l.estimate:])), ssid: binary.BigEndian.Uint16(p[l.ssid:]),
		sent: request{
			sequence: binary.BigEndian.Uint32(p[l.sequence:]), timestamp: [8]byte(p[l.sent:]),
			estimate: binary.BigEndian.Uint16(p[l.sentEstimate:]),
		},
	}
	if r.hasTTL = len(p) > l.ttl; r.hasTTL {
		r.ttl = p[l.ttl]
	}
	return r, true
}
