package datagram

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// Port is one socket of a test and the direction that it carries.
type Port struct {
	Sender   *Sender   // nil: this end receives on it
	Receiver *Receiver // nil: this end sends on it
}

// Tally is what one sender tells the receiver of its stream when all of it is sent.
type Tally struct {
	Packets    int64 `json:"packets"`     // of the measured window
	AllPackets int64 `json:"all_packets"` // with those of the warm-up
	// The sequence number of the first measured packet, and the one after the last of all; they
	// tell holes at the edges of the window apart.
	FirstMeasured uint64 `json:"first_measured"`
	NextSequence  uint64 `json:"next_sequence"`
}

// ErrOutOfPlace is an account of the other side that cannot be.
var ErrOutOfPlace = errors.New("account of datagrams out of place")

// Exchange follows the datagrams of one side of a test to the end: what its senders sent, and
// whether all that the other side sent has come, or will not. Several streams in both directions
// are one exchange. It belongs to one goroutine.
type Exchange struct {
	ports   []Port
	workers []*engine.Worker

	sent    []Sent     // once all senders are idle
	theirs  []Tally    // what the other side sent; nil: not told yet
	got     []Received // by receiver, at the last close look
	arrived int64      // datagrams of all kinds at the last look
	quietAt time.Duration
}

// drainQuiet is for how long nothing must arrive before what is missing is given up: longer than
// queues of a path are, and than a scheduler stalls.
const drainQuiet = 300 * time.Millisecond

// mostPackets is more than a stream can send in years; sums over the streams of a test stay in
// range below it.
const mostPackets = 1 << 50

// NewExchange follows ports, whose workers are given as well.
func NewExchange(workers []*engine.Worker, ports []Port) *Exchange {
	return &Exchange{ports: ports, workers: workers}
}

// Sends tells whether this side sends anything.
func (x *Exchange) Sends() bool { return x.count(true) > 0 }

// Receives tells whether this side receives anything.
func (x *Exchange) Receives() bool { return x.count(false) > 0 }

func (x *Exchange) count(senders bool) (n int) {
	for _, p := range x.ports {
		if (p.Sender != nil) == senders {
			n++
		}
	}
	return n
}

// Idle tells whether all senders have handed their last packet to the kernel.
func (x *Exchange) Idle() bool {
	for _, p := range x.ports {
		if p.Sender == nil {
			continue
		}
		select {
		case <-p.Sender.Idle():
		default:
			return false
		}
	}
	return true
}

// Tell is what the other side has to hear: one tally for each sender, in the order of the ports.
// The senders must be idle.
func (x *Exchange) Tell() []Tally {
	tallies := []Tally{}
	x.sent = x.sent[:0]
	for _, p := range x.ports {
		if p.Sender != nil {
			sent := p.Sender.Sent()
			x.sent = append(x.sent, sent)
			tallies = append(tallies, Tally{sent.Packets, sent.AllPackets, sent.FirstMeasured, sent.NextSequence})
		}
	}
	return tallies
}

// Hear takes what the other side's Tell said, once; it comes from the network, so what cannot be is
// ErrOutOfPlace.
func (x *Exchange) Hear(theirs []Tally) error {
	if x.theirs != nil || !x.Receives() || len(theirs) != x.count(false) {
		return fmt.Errorf("%w: of %d streams", ErrOutOfPlace, len(theirs))
	}
	for _, t := range theirs {
		if t.Packets < 0 || t.AllPackets < t.Packets || t.AllPackets > mostPackets {
			return fmt.Errorf("%w: %d of %d packets", ErrOutOfPlace, t.Packets, t.AllPackets)
		}
	}
	// Its way was another than that of the datagrams, so some of them may still come: the quiet
	// counts from here.
	x.theirs, x.quietAt = theirs, 0
	return nil
}

// Heard tells whether the other side has told.
func (x *Exchange) Heard() bool { return x.theirs != nil }

// Drained tells at now, by any clock that does not go back, whether everything has come that will:
// all that was measured, or nothing more for 300 ms.
func (x *Exchange) Drained(now time.Duration) bool {
	if !x.Receives() {
		return true
	}
	var arrived, all int64
	for _, w := range x.workers {
		if w.Role == engine.Receiver {
			arrived += w.Packets.Load()
		}
	}
	if arrived != x.arrived || x.quietAt == 0 {
		x.arrived, x.quietAt = arrived, now+drainQuiet
	}
	if x.theirs == nil {
		return false
	}
	for _, t := range x.theirs {
		all += t.AllPackets
	}
	if now >= x.quietAt {
		x.look()
		return true
	}
	// The workers count copies as well, so their counts only say when it is worth looking closely.
	return arrived >= all && x.complete()
}

// look asks every receiver what it has. Each takes some milliseconds, so they are asked together.
func (x *Exchange) look() {
	got := make([]Received, len(x.ports))
	var wg sync.WaitGroup
	for i, p := range x.ports {
		if p.Receiver != nil {
			wg.Go(func() { got[i] = p.Receiver.Received() })
		}
	}
	wg.Wait()
	x.got = x.got[:0]
	for i, p := range x.ports {
		if p.Receiver != nil {
			x.got = append(x.got, got[i])
		}
	}
}

// complete tells whether every measured datagram is here.
func (x *Exchange) complete() bool {
	x.look()
	for i, got := range x.got {
		if got.Packets < x.theirs[i].Packets {
			return false
		}
	}
	return true
}

// Missing is [Receiver.Missing] of all streams together.
func (x *Exchange) Missing() int64 {
	var n int64
	for _, p := range x.ports {
		if p.Receiver != nil {
			n += p.Receiver.Missing()
		}
	}
	return n
}

// SentTotals is what the senders of one side did in the window, all streams together.
type SentTotals struct {
	Packets, Bytes int64
	SocketErrors   int64           // of Packets: the kernel took and dropped them
	Gaps           stats.Latencies // of the stream whose gaps vary most
	Pacing         string
	Batch          Batch
}

// ReceivedTotals is what the receivers of one side counted in the window, all streams together.
type ReceivedTotals struct {
	Sent, Packets, Lost, Duplicates, Reordered int64
	Bytes                                      int64
	Time                                       time.Duration   // from the first to the last arrival
	JitterSeconds                              float64         // mean over the streams
	DelayVariation                             stats.Latencies // of the stream whose delays vary most
	SocketDrops                                int64           // packets that found no room in the sockets' buffers
	Batch                                      Batch
}

// Totals adds up what has come of it, after Drained; nil where this side does not send, or not
// receive.
func (x *Exchange) Totals() (*SentTotals, *ReceivedTotals) {
	var sent *SentTotals
	for _, s := range x.sent {
		if sent == nil {
			sent = &SentTotals{Batch: s.Batch, Pacing: s.Pacing}
		}
		sent.Packets += s.Packets
		sent.Bytes += s.Bytes
		sent.SocketErrors += s.MeasuredSocketErrors
		sent.Gaps = wider(sent.Gaps, s.Gaps)
	}
	var received *ReceivedTotals
	var first, last time.Duration
	for i, g := range x.got {
		if received == nil {
			received = &ReceivedTotals{Batch: g.Batch}
		}
		received.add(g, x.theirs[i])
		received.JitterSeconds += g.JitterSeconds / float64(len(x.got))
		if g.Packets > 0 {
			if first == 0 || g.FirstAt < first {
				first = g.FirstAt
			}
			last = max(last, g.LastAt)
		}
	}
	if received != nil {
		received.Time = last - first
	}
	return sent, received
}

// add counts one stream, of which the other side sent what theirs says.
func (r *ReceivedTotals) add(g Received, theirs Tally) {
	sent := theirs.Packets
	r.Sent += sent
	r.Packets += g.Packets
	// A packet so late that nobody can tell it from a copy was not lost.
	lost := max(0, sent-g.Packets-g.Late)
	r.Lost += lost
	r.Duplicates += g.Duplicates
	r.Reordered += g.Reordered
	r.Bytes += g.Bytes
	r.DelayVariation = wider(r.DelayVariation, g.DelayVariation)
	// What theirs says comes from the network; with numbers that cannot be, the socket is still not
	// to blame for more than was lost.
	r.SocketDrops += min(max(0, g.MeasuredLostAtSocket(theirs.FirstMeasured, theirs.NextSequence)), lost)
}

// wider is the distribution with the longer tail. Those of several streams cannot be merged, and
// the worst one is what a user asks for.
func wider(a, b stats.Latencies) stats.Latencies {
	if a.Count > 0 && (b.Count == 0 || a.P99 >= b.P99) {
		return a
	}
	return b
}
