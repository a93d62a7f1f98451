package iperf2

import (
	"encoding/binary"
	"math"
	"time"
)

// Flags in word 0 of the settings.
const (
	flagExtended = 0x4000_0000 // words 6 and up are present
	flagWide     = 0x0800_0000 // datagrams: their numbers have 64 bits
	flagUpper    = 0x0400_0000 // word 8 is in use
	flagTests    = 0x2000_0000 // datagrams: the same
	flagConnect  = 0x8000_0000 // the server is to connect back: -d and -r of iperf 1
	flagAtOnce   = 0x0000_0001 // with it: at once, -d
	flagLength   = 0x0001_0000 // the low bits hold twice the length of the settings
	flagBounce   = 0x0080_0000 // --bounceback, a layout of its own
)

// Flags in the upper half of word 8.
const (
	upperTrip    = 0x0010 // --trip-times: the clocks of both ends are synchronized
	upperReverse = 0x0400 // the server sends
	upperDuplex  = 0x0800 // both send
)

// The version that this package reports: 2.1, 8.3, like the program in the captures.
const (
	versionMajor = 0x0002_0001
	versionMinor = 0x0008_0003
)

// settingsBytes is the length of the settings, fifteen words.
const settingsBytes = 60

// settings are what a client requests.
type settings struct {
	extended bool // the client expects a greeting
	connect  bool // the server shall connect back
	atOnce   bool // while it receives (-d), not afterwards (-r)
	bounce   bool // the client requests --bounceback
	reverse  bool // the server shall send
	duplex   bool // the server shall send while it receives
	wide     bool // datagrams have numbers of 64 bits
	trip     bool // the report shall contain one-way delays

	streams     int
	port        int
	writeBytes  int           // of one write or datagram; 0: unknown
	bytes       int64         // to send, per stream; 0: unknown
	duration    time.Duration // of the test; 0: unknown
	rateBitsSec float64       // 0: unlimited
}

// looksLikeSettings reports whether the head of a stream is that of an iperf 2 that sends settings.
// The low 16 bits of the flags hold twice the length of the settings and, with -d, an odd bit.
func looksLikeSettings(head []byte) bool {
	if len(head) < 4 {
		return false
	}
	flags := binary.BigEndian.Uint32(head)
	if flags&flagBounce != 0 && flags&^flagBounce == 0 {
		return true
	}
	if oldSettings(head) {
		return true
	}
	length := int(flags>>1) & 0xff
	return flags&flagExtended != 0 && flags&flagLength != 0 && flags&0x0000_fe00 == 0 && length >= 24 && length%4 == 0
}

// oldBytes is the length of the settings of versions before 2.0.14, the first six words.
const oldBytes = 24

// oldSettings reports whether p begins with those. Their flags have no length, and until 2.0.9 they
// are zero without -d and -r, so that the numbers after them have to be possible.
func oldSettings(p []byte) bool {
	if len(p) < oldBytes {
		return false
	}
	flags := binary.BigEndian.Uint32(p)
	return (flags == 0 || flags&flagConnect != 0 &&
		flags&^(flagConnect|flagExtended|flagTests|flagWide|flagAtOnce) == 0) &&
		binary.BigEndian.Uint32(p[4:])-1 < math.MaxUint16 && binary.BigEndian.Uint32(p[8:])-1 < math.MaxUint16
}

// settingsAt returns where the settings of a datagram begin: its mark has a number of 32 bits until
// 2.0.9.
func settingsAt(p []byte) int {
	if len(p) >= bareMarkBytes && oldSettings(p[bareMarkBytes:]) {
		return bareMarkBytes
	}
	return markBytes
}

// parseSettings parses the settings at the head of p. A head that is too short or no settings
// returns empty settings: iperf before 2.0.10, and everything that is not iperf, begins with
// payload.
func parseSettings(p []byte) settings {
	if !looksLikeSettings(p) {
		return settings{}
	}
	word := func(i int) uint32 {
		if len(p) < 4*i+4 {
			return 0
		}
		return binary.BigEndian.Uint32(p[4*i:])
	}
	flags := word(0)
	old := oldSettings(p)
	s := settings{extended: !old, bounce: flags&flagBounce != 0,
		connect: flags&flagConnect != 0, atOnce: flags&flagAtOnce != 0,
		wide: flags&flagWide != 0}
	if s.bounce || len(p) < settingsBytes && !old {
		return s
	}
	s.streams, s.port = int(word(1)), int(word(2))
	s.writeBytes = int(word(3))
	// One word for both: bytes, or below zero hundredths of a second.
	if amount := int32(word(5)); amount < 0 {
		s.duration = -time.Duration(amount) * 10 * time.Millisecond
	} else {
		s.bytes = int64(amount)
	}
	if old {
		return s
	}
	if flags&(flagUpper|flagTests) != 0 {
		upper := word(8) >> 16
		s.reverse, s.duplex = upper&upperReverse != 0, upper&upperDuplex != 0
		s.trip = upper&upperTrip != 0
	}
	// The lower half comes first, as in marks and unlike in reports.
	s.rateBitsSec = float64(uint64(word(13))<<32 | uint64(word(12)))
	return s
}

// put writes s to the first settingsBytes of p, for a stream, or for a datagram after its mark.
func (s settings) put(p []byte, datagram bool) {
	clear(p[:settingsBytes])
	word := func(i int, v uint32) { binary.BigEndian.PutUint32(p[4*i:], v) }
	length := settingsBytes
	flags := uint32(flagExtended | flagLength)
	if datagram {
		// The length is that of mark and settings together.
		length += markBytes
		flags |= flagWide
		if s.reverse || s.duplex {
			flags |= flagTests // without it the program's server does not look at word 8
		}
	}
	var upper uint32
	if s.reverse {
		upper |= upperReverse
	}
	if s.duplex {
		upper |= upperDuplex
	}
	if upper != 0 {
		flags |= flagUpper
	}
	word(0, flags|uint32(length)<<1)
	word(1, uint32(s.streams))
	word(2, uint32(s.port))
	word(3, uint32(s.writeBytes))
	// Amounts that do not fit are left out: the end of the stream marks them anyway.
	switch hundredths := s.duration / (10 * time.Millisecond); {
	case s.bytes > 0 && s.bytes <= math.MaxInt32:
		word(5, uint32(s.bytes))
	case s.bytes == 0 && hundredths <= math.MaxInt32:
		word(5, uint32(-int32(max(1, hundredths))))
	}
	word(8, upper<<16)
	word(9, versionMajor)
	word(10, versionMinor)
	rate := uint64(s.rateBitsSec) // lower half first, as above
	word(12, uint32(rate))
	word(13, uint32(rate>>32))
}

// greetingBytes is the length of a greeting.
const greetingBytes = 28

// greeting returns what a server of 2.1.8 sends after the settings of a client that is going to
// send.
func greeting() []byte {
	p := make([]byte, greetingBytes)
	binary.BigEndian.PutUint32(p[0:], 2) // acknowledges settings
	binary.BigEndian.PutUint32(p[4:], greetingBytes)
	binary.BigEndian.PutUint32(p[12:], versionMajor)
	binary.BigEndian.PutUint32(p[16:], versionMinor)
	return p
}

// Sizes of datagrams.
const (
	markBytes     = 16 // of a mark with a number of 64 bits
	bareMarkBytes = 12 // of one with 32
)

// mark is the beginning of a datagram.
type mark struct {
	id   int64 // from 1 on; negative: the last datagram, whose absolute value is their number
	sent time.Duration
	wide bool
}

// parseMark parses a datagram's mark. wide comes from the settings after it; a number of 32 bits is
// sign-extended.
func parseMark(p []byte) (mark, bool) {
	if len(p) < bareMarkBytes {
		return mark{}, false
	}
	low := binary.BigEndian.Uint32(p)
	seconds, micros := binary.BigEndian.Uint32(p[4:]), binary.BigEndian.Uint32(p[8:])
	m := mark{id: int64(int32(low)), sent: time.Duration(seconds)*time.Second + time.Duration(micros)*time.Microsecond}
	if len(p) >= markBytes+4 && settingsAt(p) == markBytes && looksLikeSettings(p[markBytes:]) &&
		binary.BigEndian.Uint32(p[markBytes:])&flagWide != 0 {
		m.wide = true
		// The upper half follows the time, where older versions have nothing.
		m.id = int64(uint64(binary.BigEndian.Uint32(p[12:]))<<32 | uint64(low))
	}
	return m, true
}

// put writes a mark with a number of 64 bits.
func (m mark) put(p []byte) {
	binary.BigEndian.PutUint32(p, uint32(m.id))
	binary.BigEndian.PutUint32(p[4:], uint32(m.sent/time.Second))
	binary.BigEndian.PutUint32(p[8:], uint32(m.sent%time.Second/time.Microsecond))
	binary.BigEndian.PutUint32(p[12:], uint32(uint64(m.id)>>32))
}

// reportBytes is the length of the shortest report that iperf 2.1.8 accepts: a mark and ten words.
const reportBytes = 56

// report is what a UDP server sends at the end.
type report struct {
	bytes      int64
	duration   time.Duration // from the first to the last datagram, microseconds
	lost       int64
	reordered  int64
	datagrams  int64 // received and lost
	jitter     time.Duration
	longCounts bool   // lost, reordered and datagrams were sent with their upper halves
	trips      *trips // one-way delays; nil: the client did not ask for them
	old        bool   // for a client until 2.0.9, see cut
}

// trips are the one-way delays of a test whose clocks are synchronized.
type trips struct {
	count          int64
	min, max, mean time.Duration
	squares        float64 // sum of the squared differences from the mean, microseconds²
	perSecond      int64   // datagrams
}

// put writes a report that fills p: the short one, or the long one with room for it.
func (r report) put(p []byte) {
	clear(p)
	word := func(i int, v uint32) { binary.BigEndian.PutUint32(p[markBytes+4*i:], v) }
	span := func(i int, d time.Duration) {
		word(i, uint32(int32(d/time.Second)))
		word(i+1, uint32(int32(d%time.Second/time.Microsecond)))
	}
	flags := uint32(flagConnect | flagWide) // a report has the flag of iperf 1's header
	word(1, uint32(uint64(r.bytes)>>32))
	word(2, uint32(r.bytes))
	span(3, r.duration)
	word(5, uint32(max(r.lost, 0)))
	word(6, uint32(r.reordered))
	word(7, uint32(r.datagrams))
	span(8, r.jitter)
	if len(p) >= longReportBytes {
		word(lostHigh, uint32(uint64(max(r.lost, 0))>>32))
		word(reorderedHigh, uint32(uint64(r.reordered)>>32))
		word(datagramsHigh, uint32(uint64(r.datagrams)>>32))
		if t := r.trips; t != nil {
			flags |= flagExtended
			span(10, t.min)
			span(12, t.max)
			span(14, time.Duration(t.count)*t.mean)
			span(16, t.mean)
			whole, part := math.Modf(t.squares)
			word(18, uint32(min(whole, math.MaxUint32)))
			word(19, uint32(part*1e6))
			word(22, uint32(t.count))
			word(23, uint32(t.perSecond))
			word(24, 1) // second
		}
	}
	word(0, flags)
}

// The words of the long report of 2.1.8 after the ten of the short one: the shortest, longest,
// summed and mean one-way delay, the squares of their differences, two of their change, their
// number, the datagrams in a time and that time, and the upper halves of counts. Its client always
// reads all of them: after a short report it shows what its memory had there.
const (
	lostHigh        = 25
	reorderedHigh   = 26
	datagramsHigh   = 27
	longReportBytes = markBytes + 4*28
)

// parseReport parses a report. It returns false for other data and for impossible counts.
func parseReport(p []byte) (report, bool) {
	if len(p) < reportBytes {
		return report{}, false
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(p[markBytes+4*i:]) }
	if word(0)&flagConnect == 0 {
		return report{}, false
	}
	r := report{
		bytes:     int64(uint64(word(1))<<32 | uint64(word(2))),
		duration:  time.Duration(word(3))*time.Second + time.Duration(word(4))*time.Microsecond,
		lost:      int64(word(5)),
		reordered: int64(word(6)),
		datagrams: int64(word(7)),
		jitter:    time.Duration(word(8))*time.Second + time.Duration(word(9))*time.Microsecond,
	}
	if len(p) >= longReportBytes {
		r.longCounts = true
		r.lost |= int64(word(lostHigh)) << 32
		r.reordered |= int64(word(reorderedHigh)) << 32
		r.datagrams |= int64(word(datagramsHigh)) << 32
	}
	if r.bytes < 0 || r.lost < 0 || r.reordered < 0 || r.datagrams < 0 || r.lost > r.datagrams {
		return report{}, false
	}
	return r, true
}

// cut makes a report one of a version until 2.0.9: the same ten words after a shorter mark.
func cut(p []byte) []byte { return append(p[:bareMarkBytes], p[markBytes:reportBytes]...) }

// LooksLike reports whether the head of a TCP stream is that of a client of this dialect. 24 bytes
// are enough.
func LooksLike(head []byte) bool { return looksLikeSettings(head) }

// LooksLikeDatagram reports whether a datagram is the first one of a UDP test of this dialect.
func LooksLikeDatagram(p []byte) bool {
	return len(p) >= markBytes+4 && looksLikeSettings(p[settingsAt(p):])
}
