package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Ready is the line that a work prints, once, when it has begun to matter.
const Ready = "ready"

// ErrNotSupported is answered by Run where there are no practice worlds.
var ErrNotSupported = errors.New("background work needs Linux")

// Kind names what a program does.
type Kind string

// The kinds. Servers come first in a list, because each is awaited before the next is started.
const (
	// CPUHog keeps Count threads busy for Busy of the time on processor CPU, or without one on
	// every processor.
	CPUHog Kind = "cpu-hog"
	// TCPSink accepts every connection at Port and reads, at most Rate bits per second from each,
	// into a buffer of Buffer bytes.
	TCPSink Kind = "tcp-sink"
	// TCPSource keeps Count connections to To:Port and sends in writes of Bytes: as fast as it can,
	// at Rate bits per second each, or Burst bytes every Interval, all connections at the same
	// moment.
	TCPSource Kind = "tcp-source"
	// RPCServer answers every Bytes that it has read at Port by one byte.
	RPCServer Kind = "rpc-server"
	// RPCClient keeps Count connections to To:Port on which it writes Bytes in two halves and waits
	// for the answer, with Nagle's algorithm on.
	RPCClient Kind = "rpc-client"
	// SlowListener listens at Port with a backlog of Count and accepts one connection every
	// Interval.
	SlowListener Kind = "slow-listener"
	// Connector opens Packets connections per second to To:Port and closes each after Interval.
	Connector Kind = "connector"
	// Churn opens and closes connections to To:Port in Count loops, without a pause and without
	// ever using one twice.
	Churn Kind = "churn"
	// UDPSink reads datagrams at Port, at most Packets per second (0: as fast as it can), from a
	// socket with a buffer of Buffer bytes.
	UDPSink Kind = "udp-sink"
	// UDPSource sends Packets datagrams of Bytes per second to To:Port from Count sockets; with an
	// Interval it sends and rests by turns.
	UDPSource Kind = "udp-source"
	// UDPEcho answers datagrams at Count ports from Port on; the other end of UDPFlows, with the
	// same Fill.
	UDPEcho Kind = "udp-echo"
	// UDPFlows makes Count × Count flows to To, from as many ports to as many, and sends on each
	// until connection tracking holds it for assured. With Fill it makes as many as that share of
	// the kernel's table of connections asks for.
	UDPFlows Kind = "udp-flows"
	// Neighbours sends a datagram to each of Count addresses from To on, so that each needs an
	// entry in the neighbour table, every Interval.
	Neighbours Kind = "neighbours"
)

var kinds = []Kind{
	CPUHog, TCPSink, TCPSource, RPCServer, RPCClient, SlowListener, Connector, Churn, UDPSink, UDPSource, UDPEcho,
	UDPFlows, Neighbours,
}

// Work is one background program. Which of the figures count, and what they mean, is said with its
// Kind.
type Work struct {
	Kind     Kind    `json:"kind"`
	Host     string  `json:"host"`                              // on which host of the world it runs
	To       string  `json:"to,omitempty"`                      // the host, or the address, that it talks to
	Port     int     `json:"port,omitempty"`                    // 0: 9000
	Count    int     `json:"count,omitempty"`                   // 0: 1
	Bytes    int     `json:"size_bytes,omitempty"`              // of a write or a datagram; 0: 1000
	Burst    int     `json:"burst_bytes,omitempty"`             // what is sent at a time
	Buffer   int     `json:"buffer_bytes,omitempty"`            // SO_RCVBUF as asked for; 0: the system's
	Rate     float64 `json:"rate_bits_per_second,omitempty"`    // 0: as fast as it goes
	Packets  float64 `json:"rate_packets_per_second,omitempty"` // 0: as fast as it goes
	Interval float64 `json:"interval_seconds,omitempty"`
	CPU      *int    `json:"cpu,omitempty"`        // absent: every one
	Busy     float64 `json:"busy_ratio,omitempty"` // 0: 1
	Fill     float64 `json:"fill_ratio,omitempty"` // up to 1.1; 0: as Count says
}

// maxCount bounds sockets, threads and flows per side: a misspelt figure must not take the machine
// along.
const maxCount = 4096

// Check says what is wrong with a work, or nil.
func (w Work) Check() error {
	switch {
	case !slices.Contains(kinds, w.Kind):
		return fmt.Errorf("work %q: want one of %v", w.Kind, kinds)
	case w.Host == "":
		return fmt.Errorf("work %s: on which host?", w.Kind)
	case w.Port < 0 || w.Port > 65535-maxCount:
		return fmt.Errorf("work %s: port %d: want 0 to %d", w.Kind, w.Port, 65535-maxCount)
	case w.Count < 0 || w.Count > maxCount:
		return fmt.Errorf("work %s: count %d: want 0 to %d", w.Kind, w.Count, maxCount)
	case w.Bytes < 0 || w.Burst < 0 || w.Buffer < 0:
		return fmt.Errorf("work %s: a size is negative", w.Kind)
	case !(w.Rate >= 0) || !(w.Packets >= 0) || !(w.Interval >= 0) || w.Interval > 3600:
		return fmt.Errorf("work %s: a rate or interval is out of range", w.Kind)
	case w.CPU != nil && (*w.CPU < 0 || *w.CPU > 1023):
		return fmt.Errorf("work %s: cpu %d: want 0 to 1023", w.Kind, *w.CPU)
	case !(w.Busy >= 0 && w.Busy <= 1):
		return fmt.Errorf("work %s: busy ratio %v: want 0 to 1", w.Kind, w.Busy)
	case !(w.Fill >= 0 && w.Fill <= 1.1):
		return fmt.Errorf("work %s: fill ratio %v: want 0 to 1.1", w.Kind, w.Fill)
	}
	talks := w.Kind == TCPSource || w.Kind == RPCClient || w.Kind == Connector || w.Kind == Churn ||
		w.Kind == UDPSource || w.Kind == UDPFlows || w.Kind == Neighbours
	if talks != (w.To != "") {
		return fmt.Errorf("work %s: to %q: clients talk to somebody, others to nobody", w.Kind, w.To)
	}
	return nil
}

// filled is the work with its defaults in place.
func (w Work) filled() Work {
	if w.Port == 0 {
		w.Port = 9000
	}
	if w.Busy == 0 {
		w.Busy = 1
	}
	w.Count = max(w.Count, 1)
	if w.Bytes == 0 {
		w.Bytes = 1000
	}
	return w
}

// interval is the Interval as a duration; at least a millisecond where the kind needs one.
func (w Work) interval() time.Duration {
	return max(time.Millisecond, time.Duration(w.Interval*float64(time.Second)))
}

// RunDescribed is Run with the work as JSON: the body of the hidden command "linerate lab-work",
// whose argument that is.
func RunDescribed(ctx context.Context, description string, out io.Writer) error {
	var w Work
	if err := json.Unmarshal([]byte(description), &w); err != nil {
		return fmt.Errorf("read the description of the work: %w", err)
	}
	return Run(ctx, w, out)
}
