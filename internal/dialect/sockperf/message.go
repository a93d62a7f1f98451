package sockperf

import "encoding/binary"

// Bounds of a message.
const (
	HeaderBytes     = 14    // sequence number, flags and length; also the shortest message
	MaxMessageBytes = 65507 // the payload of the largest IPv4 datagram; sockperf applies it over TCP too
)

// flags of a message.
type flags uint16

const (
	fromClient flags = 1 << iota // a request, not an answer
	wantsPong                    // requests an answer
	warmUp                       // sent to warm caches, never answered
)

// header is the start of every message.
type header struct {
	sequence uint64
	flags    flags
	length   uint32 // of the whole message, as the sender claims
}

// parseHeader parses the header of a message. ok is false if p is too short for one, or if no
// message may have the claimed length. The length is not compared with p: over TCP the rest may
// still be in flight.
func parseHeader(p []byte) (h header, ok bool) {
	if len(p) < HeaderBytes {
		return header{}, false
	}
	h = header{
		sequence: binary.BigEndian.Uint64(p),
		flags:    flags(binary.BigEndian.Uint16(p[8:])),
		length:   binary.BigEndian.Uint32(p[10:]),
	}
	// The field has 32 bits, so a stranger could claim 4 GB.
	return h, h.length >= HeaderBytes && h.length <= MaxMessageBytes
}

// put writes a header into the first HeaderBytes of p.
func (h header) put(p []byte) {
	binary.BigEndian.PutUint64(p, h.sequence)
	binary.BigEndian.PutUint16(p[8:], uint16(h.flags))
	binary.BigEndian.PutUint32(p[10:], h.length)
}

// asks reports whether a server answers this message.
func (h header) asks() bool { return h.flags&(fromClient|wantsPong|warmUp) == fromClient|wantsPong }

// answers reports whether this is a server's answer to the message with that sequence number and
// length.
func (h header) answers(sequence uint64, length int) bool {
	return h.sequence == sequence && int(h.length) == length && h.flags&(fromClient|wantsPong) == wantsPong
}

// turn converts a request into its answer, in place.
func turn(p []byte) { p[9] &^= byte(fromClient) }
