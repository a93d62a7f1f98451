package stamp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Sizes of packets.
const (
	baseBytes      = 44  // unauthenticated, both ways
	authBytes      = 112 // authenticated, both ways
	authCovered    = 96  // of which the HMAC is made
	hmacBytes      = 16
	shortRequest   = 14 // TWAMP Light's sender without padding
	shortReply     = 38 // TWAMP Light's reflector without TTL
	ttlReply       = 41 // and with it
	maxPacketBytes = 65507
)

// authenticator makes and checks HMACs. It is for one goroutine. A nil one is the unauthenticated
// mode.
type authenticator struct {
	mac hash.Hash
	sum [sha256.Size]byte
}

// newAuthenticator makes one for a key; nil without.
func newAuthenticator(key []byte) *authenticator {
	if len(key) == 0 {
		return nil
	}
	return &authenticator{mac: hmac.New(sha256.New, key)}
}

// of is the HMAC over the parts, valid until the next call.
func (a *authenticator) of(parts ...[]byte) []byte {
	a.mac.Reset()
	for _, p := range parts {
		_, _ = a.mac.Write(p) // a hash takes everything
	}
	return a.mac.Sum(a.sum[:0])[:hmacBytes]
}

// sign writes the HMAC of an authenticated packet, the last thing that is written into it.
func (a *authenticator) sign(p []byte) { copy(p[authCovered:authBytes], a.of(p[:authCovered])) }

// verifies tells whether a packet has the right HMAC, in constant time.
func (a *authenticator) verifies(p []byte) bool {
	return len(p) >= authBytes && hmac.Equal(p[authCovered:authBytes], a.of(p[:authCovered]))
}

// layout is where the fields are.
type layout struct {
	bytes                                       int
	timestamp, estimate, ssid                   int // both ways
	received, sequence, sent, sentEstimate, ttl int // the reflector's, of the sender's packet
}

var (
	openLayout = layout{bytes: baseBytes, timestamp: 4, estimate: 12, ssid: 14, received: 16, sequence: 24, sent: 28,
		sentEstimate: 36, ttl: 40}
	authLayout = layout{bytes: authBytes, timestamp: 16, estimate: 24, ssid: 26, received: 32, sequence: 48, sent: 64,
		sentEstimate: 72, ttl: 80}
)

// layoutOf is the layout of a mode.
func (a *authenticator) layout() *layout {
	if a == nil {
		return &openLayout
	}
	return &authLayout
}

// request is what a sender says.
type request struct {
	sequence  uint32
	timestamp [8]byte // as it came: its format is the sender's own affair until it comes back
	estimate  uint16
	ssid      uint16
}

// put writes a request into p, but for the HMAC.
func (r *request) put(p []byte, l *layout) {
	clear(p[:l.bytes])
	binary.BigEndian.PutUint32(p, r.sequence)
	copy(p[l.timestamp:], r.timestamp[:])
	binary.BigEndian.PutUint16(p[l.estimate:], r.estimate)
	binary.BigEndian.PutUint16(p[l.ssid:], r.ssid)
}

// parseRequest reads a request of shortRequest bytes at least; what is not there is zero (RFC 8762
// §4.6). The caller has checked the length and, of an authenticated one, the HMAC.
func parseRequest(p []byte, l *layout) request {
	r := request{sequence: binary.BigEndian.Uint32(p), timestamp: [8]byte(p[l.timestamp:]),
		estimate: binary.BigEndian.Uint16(p[l.estimate:])}
	if len(p) >= l.ssid+2 {
		r.ssid = binary.BigEndian.Uint16(p[l.ssid:])
	}
	return r
}

// putReply turns a request in p into its reply, but for the time it leaves and the HMAC. p may end
// anywhere from shortReply on; what is behind the base packet stays.
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

// reply is what a reflector says.
type reply struct {
	sequence       uint32
	left, received []byte // T3 and T2, in the format of estimate
	estimate       errorEstimate
	ssid           uint16
	sent           request // the copy of ours
	ttl            uint8
	hasTTL         bool
}

// parseReply reads a reply; ok is false for what is too short, or has the wrong HMAC. The
// timestamps point into p.
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
