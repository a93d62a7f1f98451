package traffic

import (
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// shortestPart keeps a rounding remainder of an interval from being reported as one.
const shortestPart = 5 * time.Millisecond

// sampler reads what the workers of one end count and what the kernels report about their
// connections and hosts, and cuts it into intervals. It sends no messages and starts no workers.
type sampler struct {
	cast
	phase        *engine.Phase
	transactions bool                           // the series counts answered requests instead of bytes received
	sample       func() (*host.Counters, error) // of this host; nil: none
	onPart       func(part)                     // takes every finished interval

	base     time.Time
	first    reading        // before anything moved
	last     reading        // at the edge of the running interval
	binEdge  reading        // at the edge of the running bin
	series   []float64      // rate per bin in bytes or transactions per second, of the running phase
	flows    []tcpinfo.Flow // by worker
	parts    []part
	index    int // of the running interval
	passed   int // edges that ended no part, because the one before was late
	window   window
	warnings []string
}

// reading is what the workers had counted at one moment.
type reading struct {
	at           time.Duration
	bytes        int64 // received
	sent         int64
	packets      int64 // received
	missing      int64 // datagrams not received so far
	verified     int64
	transactions int64
	rttNanos     int64
	probes       int64 // transactions and their round trips, of the pings beside the test
	probeNanos   int64
}

// window is the measured part of a test.
type window struct {
	open, shut reading
	asked      time.Duration // when this end asked the other one to open it, else when it was opened
	// CPU time that the test's own threads had used, by their numbers
	openThreads, shutThreads map[int]time.Duration
	before                   *host.Counters
	after                    *host.Counters
}

func (s *sampler) now() time.Duration { return time.Since(s.base) }

func (s *sampler) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// begin starts the clock. What the kernel counted before, such as the first bytes of a data
// connection, which name it, is in no interval.
func (s *sampler) begin() {
	s.base = time.Now()
	s.first = s.read()
	s.last, s.binEdge = s.first, s.first
}

// counters reads the host's counters. A test without them still has a result, so a failure is a
// warning.
func (s *sampler) counters() *host.Counters {
	if s.sample == nil {
		return nil
	}
	counters, err := s.sample()
	if err != nil {
		s.warn("host counters not read: %v", err)
		return nil
	}
	return counters
}

// read takes a reading of every connection and sums the tallies at this moment.
func (s *sampler) read() reading {
	// The tallies are read one after the other while they grow. With one reading per 50 ms or more,
	// the microseconds between the first and the last tally are less than the noise of the clock.
	r := reading{at: s.now()}
	inWindow := s.phase.Is() == engine.Measured
	for i, w := range s.workers {
		if w.Conn != nil {
			// A connection that cannot be read keeps its last reading; its worker reports the error.
			if info, err := w.Conn.Info(); err == nil {
				s.flows[i].Add(info, inWindow)
			}
		}
		switch w.Role {
		case engine.Receiver:
			r.bytes += s.received(i)
			r.packets += w.Packets.Load()
			r.verified += w.Verified.Load()
		case engine.Sender:
			r.sent += w.Bytes.Load()
		}
		if w == s.beside {
			r.probes += w.Transactions.Load()
			r.probeNanos += w.RTTNanos.Load()
			continue
		}
		r.transactions += w.Transactions.Load()
		r.rttNanos += w.RTTNanos.Load()
	}
	if s.missing != nil {
		r.missing = s.missing()
	}
	return r
}

// received returns the payload in bytes that worker i has received. The kernel's count is the
// better one, because it includes data that has arrived but is not read yet. Of an amount, however,
// every byte that is read counts, and the kernel began to count earlier.
func (s *sampler) received(i int) int64 {
	if f := &s.flows[i]; !s.amount && f.TellsReceived() {
		return int64(f.Last.BytesReceived)
	}
	return s.workers[i].Bytes.Load()
}

// arrived returns the payload in bytes that this end received inside its window.
func (s *sampler) arrived() int64 {
	if s.amount {
		return s.window.shut.bytes - s.first.bytes
	}
	counted := s.window.shut.bytes - s.window.open.bytes
	var exact int64
	for i, w := range s.workers {
		if w.Role != engine.Receiver {
			continue
		}
		n, ok := s.flows[i].ReceivedBytes()
		if !ok {
			return counted
		}
		exact += n
	}
	return exact
}

// bin ends one step of the series at r.
func (s *sampler) bin(r reading) {
	// Divided by the time that really passed: on a busy machine the conductor wakes late, and a bin
	// of 80 ms is no peak.
	elapsed := (r.at - s.binEdge.at).Seconds()
	if elapsed <= 0 {
		return
	}
	work := r.bytes - s.binEdge.bytes
	if s.transactions {
		work = r.transactions - s.binEdge.transactions
	}
	s.series = append(s.series, float64(work)/elapsed)
	s.binEdge = r
}

// cut ends the running interval at r, when a number of edges have passed; measured reports whether
// it belongs to the window.
func (s *sampler) cut(r reading, measured bool, edges int) {
	if r.at-s.last.at < shortestPart {
		s.passed += edges
		return
	}
	edges, s.passed = edges+s.passed, 0
	p := part{
		Measured: measured, Index: s.index, Skipped: edges - 1,
		Start: s.last.at.Seconds(), End: r.at.Seconds(),
		Bytes:        r.bytes - s.last.bytes,
		Transactions: r.transactions - s.last.transactions,
		RTTSum:       float64(r.rttNanos-s.last.rttNanos) / 1e9,
		Packets:      r.packets - s.last.packets,
		Missing:      r.missing - s.last.missing,
		Probes:       r.probes - s.last.probes,
		ProbeSum:     float64(r.probeNanos-s.last.probeNanos) / 1e9,
	}
	var flows float64
	for i, w := range s.workers {
		f, ok := s.flows[i].Cut()
		if !ok || w.Role != engine.Sender {
			continue
		}
		flows++
		p.RTT += f.RTTSeconds
		p.RTTVar += f.RTTVarSeconds
		p.Cwnd += f.CwndBytes
		p.Ssthresh += f.SsthreshBytes
		p.DeliveryRate += f.DeliveryRateBitsPerSec
		p.RwndLimited += f.RwndLimitedSeconds
		p.SndbufLimited += f.SndbufLimitedSeconds
		p.Retransmits += f.RetransmittedSegments
	}
	if flows > 0 {
		p.RTT, p.RTTVar = p.RTT/flows, p.RTTVar/flows
		p.RwndLimited, p.SndbufLimited = p.RwndLimited/flows, p.SndbufLimited/flows
	}
	s.index += edges
	s.last = r
	s.parts = append(s.parts, p)
	s.onPart(p)
}

// open begins the measured window. The host's counters were read before and the tallies come last,
// so that the counters cover at least the window.
func (s *sampler) open() {
	s.cut(s.read(), false, 1)
	s.index, s.passed, s.series = 0, 0, s.series[:0]
	// From the change of the phase on, requesters and pingers record into their histograms and
	// senders flag their datagrams; microseconds pass between it and the reading.
	s.phase.Set(engine.Measured)
	s.window.open, s.window.openThreads = s.read(), s.threads()
	if s.window.asked == 0 {
		s.window.asked = s.window.open.at
	}
	for i := range s.flows {
		s.flows[i].Open()
	}
	s.last, s.binEdge = s.window.open, s.window.open
}

// shut ends the measured window at r, in the opposite order.
func (s *sampler) shut(r reading) {
	s.window.shut, s.window.shutThreads = r, s.threads()
	s.phase.Set(engine.Tail)
	for i, w := range s.workers {
		if w.Conn != nil {
			s.flows[i].Shut(w.Conn.Buffers())
		}
	}
	s.cut(r, true, 1)
}

// threads returns the CPU time that each of the test's threads has used so far. The pings beside a
// test belong to it. A thread that has not begun has used nothing; on a system without such figures
// the result is empty.
func (s *sampler) threads() map[int]time.Duration {
	all := make(map[int]time.Duration, len(s.workers))
	for _, w := range s.workers {
		if id, used, ok := w.ThreadTime(); ok {
			all[id] = used
		}
	}
	return all
}
