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

// Tally is what one sender reports to the receiver of its stream when everything is sent.
type Tally struct {
	Packets    int64 `json:"packets"`     // of the measured window
	AllPackets int64 `json:"all_packets"` // with those of the warm-up
	// The sequence number of the first measured packet, and the one after the last of all; with
	// them the receiver finds losses at the edges of the window.
	FirstMeasured uint64 `json:"first_measured"`
	NextSequence  uint64 `json:"next_sequence"`
}

// ErrOutOfPlace reports an impossible tally of the other end.
var ErrOutOfPlace = errors.New("impossible counts of datagrams")

// Exchange follows the datagrams of one end of a test to the end: what its senders sent, and
// whether everything that the other end sent has arrived, or will not. Several streams in both
// directions are one exchange. It belongs to one goroutine.
type Exchange struct {
	ports   []Port
	workers []*engine.Worker

	sent    []Sent     // once all senders are idle
	theirs  []Tally    // what the other end sent; nil: not reported yet
	got     []Received // by receiver, at the last close look
	arrived int64      // datagrams of all kinds at the last look
	looked  time.Duration
	quiet   time.Duration // without a datagram, as far as this end looked
	looking bool
}

const (
	// drainQuiet is the quiet time after which missing datagrams are given up: longer than the queues
	// of a path, and than a stall of the scheduler.
	drainQuiet = 300 * time.Millisecond
	// longestLook is how much quiet one look can show. This end looks every ten milliseconds. After a
	// longer pause of the process, or of its machine, datagrams wait in sockets whose threads have not
	// run yet.
	longestLook = 50 * time.Millisecond
)

// mostPackets is more than a stream can send in years; sums over the streams of a test stay in
// range below it.
const mostPackets = 1 << 50

// NewExchange follows ports and their workers.
func NewExchange(workers []*engine.Worker, ports []Port) *Exchange {
	return &Exchange{ports: ports, workers: workers}
}

// Sends reports whether this end sends anything.
func (x *Exchange) Sends() bool { return x.count(true) > 0 }

// Receives reports whether this end receives anything.
func (x *Exchange) Receives() bool { return x.count(false) > 0 }

func (x *Exchange) count(senders bool) (n int) {
	for _, p := range x.ports {
		if (p.Sender != nil) == senders {
			n++
		}
	}
	return n
}

// Idle reports whether all senders have handed their last packet to the kernel.
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

// Tallies returns what the other end needs: one tally for each sender, in the order of the ports.
// The senders must be idle.
func (x *Exchange) Tallies() []Tally {
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

// Hear takes what the other end's Tallies returned, once. It comes from the network, so impossible
// values are ErrOutOfPlace.
func (x *Exchange) Hear(theirs []Tally) error {
	if x.theirs != nil || !x.Receives() || len(theirs) != x.count(false) {
		return fmt.Errorf("%w: of %d streams", ErrOutOfPlace, len(theirs))
	}
	for _, t := range theirs {
		if t.Packets < 0 || t.AllPackets < t.Packets || t.AllPackets > mostPackets {
			return fmt.Errorf("%w: %d of %d packets", ErrOutOfPlace, t.Packets, t.AllPackets)
		}
	}
	// The tallies took another way than the datagrams, some of which may still arrive, so the quiet
	// time counts from here.
	x.theirs, x.looking = theirs, false
	return nil
}

// Heard reports whether the other end's tallies have arrived.
func (x *Exchange) Heard() bool { return x.theirs != nil }

// Drained reports at now, by any clock that does not go back, whether everything has arrived that
// will: all measured datagrams, or none for 300 ms. A look shows at most 50 ms of quiet, so that a
// pause of this process is not mistaken for one of the path.
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
	if arrived != x.arrived || !x.looking {
		x.arrived, x.quiet, x.looking = arrived, 0, true
	} else {
		x.quiet += min(now-x.looked, longestLook)
	}
	x.looked = now
	if x.theirs == nil {
		return false
	}
	for _, t := range x.theirs {
		all += t.AllPackets
	}
	if x.quiet >= drainQuiet {
		x.look()
		return true
	}
	// The workers count duplicates as well, so their counts only show when a closer look is
	// worthwhile.
	return arrived >= all && x.complete()
}

// look asks every receiver for its counts. Each takes some milliseconds, so it asks all at once.
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

// complete reports whether every measured datagram has arrived.
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

// SentTotals is what the senders of one end did in the window, all streams together.
type SentTotals struct {
	Packets, Bytes int64
	SocketErrors   int64           // of Packets: the kernel took and dropped them
	Gaps           stats.Latencies // of the stream whose gaps vary most
	Pacing         string
	Batch          Batch
}

// ReceivedTotals is what the receivers of one end counted in the window, all streams together.
type ReceivedTotals struct {
	Sent, Packets, Lost, Duplicates, Reordered int64
	Bytes                                      int64
	Time                                       time.Duration   // from the first to the last arrival
	JitterSeconds                              float64         // mean over the streams
	DelayVariation                             stats.Latencies // of the stream whose delays vary most
	SocketDrops                                int64           // packets that found the sockets' buffers full
	Implausible                                int64           // datagrams that the sender cannot have sent
	Batch                                      Batch
}

// Totals adds up the result, after Drained; nil where this end does not send, or not receive.
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

// add counts one stream, of which the other end sent what theirs says.
func (r *ReceivedTotals) add(g Received, theirs Tally) {
	sent := theirs.Packets
	r.Sent += sent
	r.Packets += g.Packets
	// Other strays may be hellos that were repeated on a long path.
	r.Implausible += g.Implausible + max(0, g.UniquePackets-theirs.AllPackets)
	// A packet too late to distinguish from a duplicate was not lost.
	lost := max(0, sent-g.Packets-g.Late)
	r.Lost += lost
	r.Duplicates += g.Duplicates
	r.Reordered += g.Reordered
	r.Bytes += g.Bytes
	r.DelayVariation = wider(r.DelayVariation, g.DelayVariation)
	// Theirs comes from the network; even with impossible numbers the socket is not to blame for
	// more than was lost.
	r.SocketDrops += min(max(0, g.MeasuredLostAtSocket(theirs.FirstMeasured, theirs.NextSequence)), lost)
}

// wider returns the distribution with the longer tail. Distributions of several streams cannot be
// merged, and a user asks for the worst one.
func wider(a, b stats.Latencies) stats.Latencies {
	if a.Count > 0 && (b.Count == 0 || a.P99 >= b.P99) {
		return a
	}
	return b
}
