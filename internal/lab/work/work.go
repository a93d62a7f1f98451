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

// Ready is the line that Run prints once, when the work takes effect.
const Ready = "ready"

// ErrNotSupported reports that the operating system has no practice worlds.
var ErrNotSupported = errors.New("background work needs Linux")

// Kind is the kind of a program.
type Kind string

// The kinds. In a list servers come first, because the lab awaits each program before it starts the
// next.
const (
	// CPUHog keeps Count threads busy for Busy of the time on processor CPU, or on every processor
	// if CPU is absent.
	CPUHog Kind = "cpu-hog"
	// TCPSink accepts every connection at Port and reads, at most Rate bits per second from each,
	// into a buffer of Buffer bytes.
	TCPSink Kind = "tcp-sink"
	// TCPSource keeps Count connections to To:Port and sends in writes of Bytes: as fast as it can,
	// at Rate bits per second each, or Burst bytes every Interval, all connections at the same
	// moment.
	TCPSource Kind = "tcp-source"
	// RPCServer answers every Bytes that it has read at Port with one byte.
	RPCServer Kind = "rpc-server"
	// RPCClient keeps Count connections to To:Port on which it writes Bytes in two halves and waits
	// for the answer, with Nagle's algorithm on.
	RPCClient Kind = "rpc-client"
	// SlowListener listens at Port with a backlog of Count and accepts one connection every
	// Interval.
	SlowListener Kind = "slow-listener"
	// Connector opens Packets connections per second to To:Port and closes each after Interval.
	Connector Kind = "connector"
	// Churn opens and closes connections to To:Port in Count loops, at most Packets per second in
	// each, and never uses a connection twice.
	Churn Kind = "churn"
	// UDPSink reads datagrams at Port, at most Packets per second (0: as fast as it can), from a
	// socket with a buffer of Buffer bytes.
	UDPSink Kind = "udp-sink"
	// UDPSource sends Packets datagrams of Bytes per second to To:Port from Count sockets; with an
	// Interval it alternately sends and rests.
	UDPSource Kind = "udp-source"
	// UDPEcho answers datagrams at Count ports from Port on. It is the other end of UDPFlows, with
	// the same Fill.
	UDPEcho Kind = "udp-echo"
	// UDPFlows makes Count × Count flows to To, from Count ports to Count ports, and sends on each
	// until connection tracking treats it as assured. With Fill it makes enough flows to fill that
	// share of the kernel's connection tracking table.
	UDPFlows Kind = "udp-flows"
	// Neighbours sends a datagram to each of Count addresses from To on, every Interval, so that
	// each address needs an entry in the neighbour table.
	Neighbours Kind = "neighbours"
)

var kinds = []Kind{
	CPUHog, TCPSink, TCPSource, RPCServer, RPCClient, SlowListener, Connector, Churn, UDPSink, UDPSource, UDPEcho,
	UDPFlows, Neighbours,
}

// Work is one background program. Its Kind defines which figures count and what they mean.
type Work struct {
	Kind     Kind    `json:"kind"`
	Host     string  `json:"host"`                              // the host of the world on which it runs
	To       string  `json:"to,omitempty"`                      // the host or address that it talks to
	Port     int     `json:"port,omitempty"`                    // 0: 9000
	Count    int     `json:"count,omitempty"`                   // 0: 1
	Bytes    int     `json:"size_bytes,omitempty"`              // of a write or a datagram; 0: 1000
	Burst    int     `json:"burst_bytes,omitempty"`             // sent at a time
	Buffer   int     `json:"buffer_bytes,omitempty"`            // SO_RCVBUF as asked for; 0: the system's
	Rate     float64 `json:"rate_bits_per_second,omitempty"`    // 0: as fast as it goes
	Packets  float64 `json:"rate_packets_per_second,omitempty"` // 0: as fast as it goes
	Interval float64 `json:"interval_seconds,omitempty"`
	CPU      *int    `json:"cpu,omitempty"`        // absent: all
	Busy     float64 `json:"busy_ratio,omitempty"` // 0: 1
	Fill     float64 `json:"fill_ratio,omitempty"` // up to 1.1; 0: as Count says
}

// maxCount bounds sockets, threads and flows per side: a misspelt figure must not exhaust the
// machine.
const maxCount = 4096

// Check returns the first error of a work, or nil.
func (w Work) Check() error {
	switch {
	case !slices.Contains(kinds, w.Kind):
		return fmt.Errorf("work %q: want one of %v", w.Kind, kinds)
	case w.Host == "":
		return fmt.Errorf("work %s: the host is missing", w.Kind)
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
		return fmt.Errorf("work %s: to %q: clients must name a host or address, and other kinds none", w.Kind, w.To)
	}
	return nil
}

// filled returns the work with its defaults.
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

// interval returns Interval as a duration, at least a millisecond.
func (w Work) interval() time.Duration {
	return max(time.Millisecond, time.Duration(w.Interval*float64(time.Second)))
}

// RunDescribed is Run with the work as JSON. It is the body of the hidden command "linerate
// lab-work", whose argument is that JSON.
func RunDescribed(ctx context.Context, description string, out io.Writer) error {
	var w Work
	if err := json.Unmarshal([]byte(description), &w); err != nil {
		return fmt.Errorf("read the description of the work: %w", err)
	}
	return Run(ctx, w, out)
}
