package iperf3

import (
	"bytes"
	"encoding/binary"
	"time"
)

// The first datagram of a UDP stream and its answer. Until 3.11 they were the numbers 123456789 and 987654321 in the byte order of the
// machine, so a server takes any 4 bytes for a hello.
var (
	hello = []byte("9876")
	reply = []byte("6789")
)

// legacyReply is what servers until 3.11 answer.
const legacyReply = 987654321

// isReply tells whether a datagram is the answer to a hello.
func isReply(p []byte) bool {
	return len(p) == len(reply) && (bytes.Equal(p, reply) ||
		binary.LittleEndian.Uint32(p) == legacyReply || binary.BigEndian.Uint32(p) == legacyReply)
}

// isHello tells whether a datagram asks for a stream.
func isHello(p []byte) bool { return len(p) == len(hello) }

// header is the front of a datagram: seconds and microseconds of the sender's monotonic clock, and the sequence number.
type header struct {
	wide bool // 8 bytes of sequence number instead of 4
}

// Bytes is the length of the header.
func (h header) Bytes() int {
	if h.wide {
		return 16
	}
	return 12
}

func (h header) put(p []byte, sequence uint64, sent time.Duration) {
	binary.BigEndian.PutUint32(p, uint32(sent/time.Second))
	binary.BigEndian.PutUint32(p[4:], uint32(sent%time.Second/time.Microsecond))
	if h.wide {
		binary.BigEndian.PutUint64(p[8:], sequence)
	} else {
		binary.BigEndian.PutUint32(p[8:], uint32(sequence))
	}
}

func (h header) parse(p []byte) (sequence uint64, sent time.Duration, ok bool) {
	if len(p) < h.Bytes() {
		return 0, 0, false
	}
	sent = time.Duration(binary.BigEndian.Uint32(p))*time.Second + time.Duration(binary.BigEndian.Uint32(p[4:]))*time.Microsecond
	if h.wide {
		sequence = binary.BigEndian.Uint64(p[8:])
	} else {
		sequence = uint64(binary.BigEndian.Uint32(p[8:]))
	}
	// Sequences count from 1; 0 is a datagram of something else.
	return sequence, sent, sequence > 0
}
