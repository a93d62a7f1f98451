package iperf2

import (
	"encoding/binary"
	"time"
)

// A client with --trip-times and -R or --full-duplex gets settings, and then bursts: each begins
// with its number, its length and the wall clock at its write. The client shows how long it took
// from there until the whole burst was read.

const (
	// tripBytes is the length of the settings with the wall clock at the start of the test.
	tripBytes = 80
	// burstBytes is the length of the head of a burst, which is part of it.
	burstBytes = 84
	// mostBurstBytes bounds a burst: the test does not end within one.
	mostBurstBytes = 1 << 20
)

// bursts cuts what a server sends.
type bursts struct {
	asked  settings
	start  time.Time // of the data
	number uint32
	sent   uint64
}

// newBursts returns nil for a client that does not ask for trip times.
func newBursts(asked settings, start time.Time) *bursts {
	if !asked.trip {
		return nil
	}
	return &bursts{asked: asked, start: start}
}

// next returns the length of the next burst, of the bytes that are left to send; 0 or less: without
// bound.
func (b *bursts) next(left int64) int {
	size := callBytes
	if b.asked.writeBytes > 0 {
		size = b.asked.writeBytes
	}
	// The length comes from the client, and a burst is not left half sent at the end of a time.
	size = min(max(size, burstBytes), mostBurstBytes)
	if left > 0 && left < int64(size+burstBytes) {
		return int(left) // the rest would be too short for a head
	}
	return size
}

// settings returns what precedes the bursts.
func (b *bursts) settings() []byte {
	p := make([]byte, tripBytes)
	b.common(p)
	binary.BigEndian.PutUint32(p[4*3:], uint32(b.asked.writeBytes))
	putClock(p[4*16:], b.start)
	return p
}

// head returns the head of a burst of size bytes.
func (b *bursts) head(size int, now time.Time) []byte {
	b.number++
	b.sent += uint64(size)
	p := make([]byte, burstBytes)
	b.common(p)
	putClock(p[4*3:], b.start)
	putClock(p[4*5:], now)
	word := func(i int, v uint32) { binary.BigEndian.PutUint32(p[4*i:], v) }
	word(11, b.number)
	word(12, uint32(size))
	word(13, uint32(b.sent))
	word(14, uint32(b.sent>>32))
	putClock(p[4*16:], b.start)
	return p[:min(size, burstBytes)]
}

// common fills in what settings and heads have in common.
func (b *bursts) common(p []byte) {
	word := func(i int, v uint32) { binary.BigEndian.PutUint32(p[4*i:], v) }
	flags, upper := uint32(flagExtended|flagLength|2*tripBytes), uint32(upperTrip)
	if b.asked.duplex {
		flags, upper = flags|flagUpper, upper|upperDuplex
	}
	word(0, flags)
	word(1, uint32(b.asked.streams))
	word(2, uint32(b.asked.port))
	word(8, upper<<16)
	word(9, versionMajor)
	word(10, versionMinor)
}

// putClock writes a time as seconds and microseconds.
func putClock(p []byte, t time.Time) {
	binary.BigEndian.PutUint32(p, uint32(t.Unix()))
	binary.BigEndian.PutUint32(p[4:], uint32(t.Nanosecond()/1000))
}
