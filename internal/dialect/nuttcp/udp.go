package nuttcp

import (
	"encoding/binary"
	"strings"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/traffic/datagram"
)

const (
	// tagBytes is the length of the marks BOD0 and BOD1, EOD0 to EOD4.
	tagBytes = 4
	// countAt is the offset of the count of bytes sent, in datagrams of tests with intervals.
	countAt    = 24
	countBytes = 8
	// lastTag begins all data: it is that of the mark before them.
	lastTag = "BOD1\x00"
	// beginGap separates the marks of the beginning; the clock of the test starts with the second.
	beginGap = 250 * time.Millisecond
	// endMarks is the number of end marks, endGap apart, in case some are lost.
	endMarks = 5
	endGap   = 100 * time.Millisecond
)

// begins reports whether a datagram is a mark of the beginning.
func begins(p []byte) bool { return len(p) == tagBytes && strings.HasPrefix(string(p), "BOD") }

// ends reports whether it is an end mark.
func ends(p []byte) bool { return len(p) == tagBytes && strings.HasPrefix(string(p), "EOD") }

// header is the front of a datagram: the last mark of the beginning and, where there is room, how
// many bytes were sent up to and including it.
type header struct {
	packetBytes int
	counted     bool
}

func headerOf(p params) header {
	return header{packetBytes: p.blockBytes, counted: p.interval > 0 && p.blockBytes >= countAt+countBytes}
}

// Bytes returns the length of the header.
func (h header) Bytes() int {
	if h.counted {
		return countAt + countBytes
	}
	return len(lastTag)
}

// Put writes a header. Numbers start at 0.
func (h header) Put(p []byte, m datagram.Mark) {
	copy(p, lastTag)
	if h.counted {
		clear(p[len(lastTag):countAt])
		// The count includes this datagram, so the first one contains its own length.
		binary.LittleEndian.PutUint64(p[countAt:], (m.Sequence+1)*uint64(h.packetBytes))
	}
}

// Parse reads a datagram. Without counts all numbers are 0, so that only the first datagram counts
// as new: a receiver without counts must not rely on them.
func (h header) Parse(p []byte) (datagram.Mark, bool) {
	switch {
	case ends(p):
		return datagram.Mark{End: true}, true
	case len(p) <= tagBytes || !strings.HasPrefix(string(p[:tagBytes]), "BOD"):
		return datagram.Mark{}, false
	case !h.counted:
		return datagram.Mark{Measured: true}, true
	case len(p) < countAt+countBytes:
		return datagram.Mark{}, false
	}
	// All datagrams of a test have one length, so the bytes sent determine the number of this one.
	// A remainder shows that it does not belong to the test.
	sent := binary.LittleEndian.Uint64(p[countAt:])
	if sent == 0 || sent%uint64(h.packetBytes) != 0 {
		return datagram.Mark{}, false
	}
	return datagram.Mark{Sequence: sent/uint64(h.packetBytes) - 1, Measured: true}, true
}

// tally is what a server received of one UDP test.
type tally struct {
	mu      sync.Mutex // the port's reader adds datagrams, the session reads the counts
	header  header
	started time.Time     // time of the last mark of the beginning, or of the first data
	last    time.Time     // arrival of a datagram of any kind
	begun   chan struct{} // closed with the first mark
	ended   chan struct{} // closed with the first mark of the end
	isBegun bool
	isEnded bool
	figures
}

func newTally(p params) *tally {
	return &tally{header: headerOf(p), begun: make(chan struct{}), ended: make(chan struct{})}
}

// take counts one datagram that arrived at now.
func (t *tally) take(p []byte, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// End marks are repeated, and data that they overtook would look like those of the next test.
	if t.isEnded {
		return
	}
	if !t.isBegun {
		t.isBegun = true
		close(t.begun)
	}
	t.calls++
	switch {
	// The clock starts with the last mark before the data; a later mark was overtaken.
	case begins(p):
		if t.packets == 0 {
			t.started, t.last = now, now
		}
	case ends(p):
		t.isEnded = true
		t.last = now
		close(t.ended)
	default:
		t.last = now
		t.packets++
		t.bytes += int64(len(p))
		if t.header.counted && len(p) >= countAt+countBytes {
			// The largest count, because datagrams may overtake one another. Bounded, because
			// anyone may have written it.
			if n := binary.LittleEndian.Uint64(p[countAt:]); n < 1<<62 {
				t.sentBytes = max(t.sentBytes, int64(n))
			}
		}
	}
}

// now returns what has arrived so far, and the time of the last datagram, which Elapsed ends with.
func (t *tally) now() (figures, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.figures
	// Not the current time: the rate of a client that is gone would fall for as long as its silence
	// is tolerated.
	f.elapsed = t.last.Sub(t.started)
	return f, t.last
}
