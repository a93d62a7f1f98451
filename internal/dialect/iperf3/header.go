package iperf3

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/linerate/linerate/internal/traffic/datagram"
)

// The first datagram of a UDP stream and its answer. Until 3.11 they were the numbers 123456789 and
// 987654321 in the byte order of the machine, so a server accepts any 4 bytes as a hello.
var (
	hello = []byte("9876")
	reply = []byte("6789")
)

// legacyReply is the answer of servers until 3.11.
const legacyReply = 987654321

// isReply reports whether a datagram is the answer to a hello.
func isReply(p []byte) bool {
	return len(p) == len(reply) && (bytes.Equal(p, reply) ||
		binary.LittleEndian.Uint32(p) == legacyReply || binary.BigEndian.Uint32(p) == legacyReply)
}

// isHello reports whether a datagram asks for a stream.
func isHello(p []byte) bool { return len(p) == len(hello) }

// header is the front of a datagram: seconds and microseconds of the sender's monotonic clock, and
// the sequence number. It is a [datagram.Header].
type header struct {
	wide bool // 8 bytes of sequence number instead of 4
}

// Bytes returns the length of the header.
func (h header) Bytes() int {
	if h.wide {
		return 16
	}
	return 12
}

// Put writes a header.
func (h header) Put(p []byte, m datagram.Mark) {
	binary.BigEndian.PutUint32(p, uint32(m.Sent/time.Second))
	binary.BigEndian.PutUint32(p[4:], uint32(m.Sent%time.Second/time.Microsecond))
	if h.wide {
		binary.BigEndian.PutUint64(p[8:], m.Sequence)
	} else {
		binary.BigEndian.PutUint32(p[8:], uint32(m.Sequence))
	}
}

// Parse reads a header. It does not mark the omitted seconds, so every datagram counts as measured.
// Sequence numbers start at 1; a datagram with 0 belongs to something else.
func (h header) Parse(p []byte) (datagram.Mark, bool) {
	if len(p) < h.Bytes() {
		return datagram.Mark{}, false
	}
	m := datagram.Mark{
		Sent: time.Duration(binary.BigEndian.Uint32(p))*time.Second +
			time.Duration(binary.BigEndian.Uint32(p[4:]))*time.Microsecond,
		Measured: true,
	}
	if h.wide {
		m.Sequence = binary.BigEndian.Uint64(p[8:])
	} else {
		m.Sequence = uint64(binary.BigEndian.Uint32(p[8:]))
	}
	return m, m.Sequence > 0
}

// receiving returns the header for one receiver. It restores short sequence numbers, which requires
// memory of the earlier ones.
func (h header) receiving() datagram.Header {
	if h.wide {
		return h
	}
	return &unwrapped{header: h}
}

// unwrapped extends a sequence number of 32 bits, which overflows after 72 minutes at a million
// packets per second.
type unwrapped struct {
	header
	highest uint64
}

// Parse reads a header; the sequence number is the candidate nearest to the highest so far.
func (u *unwrapped) Parse(p []byte) (datagram.Mark, bool) {
	if len(p) < u.Bytes() {
		return datagram.Mark{}, false
	}
	m, _ := u.header.Parse(p) // 0 is valid here, after the first overflow
	ahead := int32(uint32(m.Sequence) - uint32(u.highest))
	switch {
	case ahead < 0 && uint64(-int64(ahead)) > u.highest:
		return datagram.Mark{}, false // before the first
	case ahead > 0:
		u.highest += uint64(ahead)
		m.Sequence = u.highest
	default:
		m.Sequence = u.highest - uint64(-int64(ahead))
	}
	return m, m.Sequence > 0
}
