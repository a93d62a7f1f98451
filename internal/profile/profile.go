package profile

import (
	"errors"
	"fmt"
)

// Profile is what a host did while it was sampled. The builder fills it; slices of time are not
// kept.
type Profile struct {
	// Event is what interrupted the CPUs, as perf names it; Timer reports one that cannot see code
	// with interrupts off.
	Event  string  `json:"event"`
	Timer  bool    `json:"timer,omitempty"`
	Events []Asked `json:"events,omitempty"` // every event and the kernel's answer
	// Source is the file that was read instead of this host, and its format.
	Source string `json:"source,omitempty"`
	Format string `json:"format,omitempty"`

	Duration float64 `json:"duration_seconds,omitempty"`
	// Period is the time, or the number of events, between two samples.
	Period        uint64  `json:"period_total,omitempty"`
	RatePerSecond float64 `json:"samples_per_second,omitempty"` // that the period asks for, for a timer
	CPUs          []int   `json:"cpus,omitempty"`
	Slices        int     `json:"slices_total,omitempty"` // of time, on which the intervals rest

	Samples    uint64 `json:"samples_total"` // idle ones included
	Busy       uint64 `json:"busy_samples_total"`
	Kernel     uint64 `json:"kernel_samples_total"`     // busy
	Moved      uint64 `json:"moved_samples_total"`      // shown under their callers
	Unresolved uint64 `json:"unresolved_samples_total"` // kernel samples whose leaf has no name
	Unclassed  uint64 `json:"unclassed_samples_total"`  // kernel samples that no stage claims
	Lost       uint64 `json:"lost_samples_total"`
	Throttled  uint64 `json:"throttled_total"`

	// RunningRatio is the part of the time that the event counted; below 1 it shared the counters.
	RunningRatio float64 `json:"running_ratio,omitempty"`
	Cost         *Cost   `json:"cost,omitempty"`

	BusySeconds float64  `json:"busy_seconds,omitempty"` // of processor time; absent: the event has no time
	Packets     *Packets `json:"packets,omitempty"`
	// PacketsTotal and BytesTotal are what the figures per packet divide by; absent: not counted.
	PacketsTotal *uint64 `json:"packets_total,omitempty"`
	BytesTotal   *uint64 `json:"bytes_total,omitempty"`

	Stages    []Row     `json:"stages"`   // nearest place of the network path
	Work      []Row     `json:"work"`     // what the leaf does
	Contexts  []Row     `json:"contexts"` // task, softirq, interrupt
	Functions []Row     `json:"functions"`
	Processes []Process `json:"processes,omitempty"`
	Stacks    []Stack   `json:"stacks,omitempty"` // most samples first
	// StacksCut is how many samples are in stacks that were cut to their leaf, to bound the memory.
	StacksCut uint64   `json:"cut_stack_samples_total,omitempty"`
	Exact     *Exact   `json:"exact,omitempty"` // what the kernel counted; nil: it was not asked or refused
	Warnings  []string `json:"warnings,omitempty"`
}

// Asked is an event and whether it can be sampled here.
type Asked struct {
	Event  string `json:"event"`
	Answer string `json:"answer"` // works, not-supported, not-permitted, unknown
	Reason string `json:"reason,omitempty"`
}

// Cost is what the profiler itself took, inside the figures of the profile.
type Cost struct {
	SampleSeconds float64 `json:"sample_seconds"` // processor time of one sample, measured at the start
	CPURatio      float64 `json:"cpu_ratio"`      // of one CPU
	OwnSeconds    float64 `json:"own_seconds"`    // processor time of this program
}

// Packets are what the interfaces counted in the same window.
type Packets struct {
	Interfaces    []string `json:"interfaces"`
	Received      uint64   `json:"received_packets_total"`
	Sent          uint64   `json:"sent_packets_total"`
	Forwarded     uint64   `json:"forwarded_packets_total"` // counted once of the two
	ReceivedBytes uint64   `json:"received_bytes"`
	SentBytes     uint64   `json:"sent_bytes"`
}

// Row is a function, or a group of them, and what it costs.
type Row struct {
	Name   string `json:"name"`
	Stage  string `json:"stage,omitempty"` // of a function
	Module string `json:"module,omitempty"`

	Samples   uint64 `json:"samples_total"`
	Moved     uint64 `json:"moved_samples_total,omitempty"`
	Inclusive uint64 `json:"inclusive_samples_total,omitempty"` // with what it calls; functions only

	Share     float64 `json:"share_ratio"` // of the busy samples
	ShareLow  float64 `json:"share_low_ratio"`
	ShareHigh float64 `json:"share_high_ratio"`

	Seconds *float64 `json:"seconds,omitempty"` // of processor time
	// Nanoseconds of processor time for each packet, and its interval; absent without packets or
	// time.
	PerPacket     *float64 `json:"nanoseconds_per_packet,omitempty"`
	PerPacketLow  *float64 `json:"low_nanoseconds_per_packet,omitempty"`
	PerPacketHigh *float64 `json:"high_nanoseconds_per_packet,omitempty"`
	PerByte       *float64 `json:"nanoseconds_per_byte,omitempty"`
	// EventsPerPacket is for events that are no time: instructions, misses.
	EventsPerPacket *float64 `json:"events_per_packet,omitempty"`
	// Dispersion is the variance between slices over that of independent samples.
	Dispersion float64 `json:"dispersion_ratio,omitempty"`
}

// Process is a program and the processor time on its account: its own, and what interrupts
// borrowed.
type Process struct {
	Name     string  `json:"name"`
	Own      uint64  `json:"own_samples_total"`
	Borrowed uint64  `json:"borrowed_samples_total"`
	OwnS     float64 `json:"own_seconds,omitempty"`
	BorrowS  float64 `json:"borrowed_seconds,omitempty"`
}

// Stack is a chain of calls and how often it was seen.
type Stack struct {
	Functions []int  `json:"functions"` // indices into Functions, the leaf first
	Context   string `json:"context"`
	Stage     string `json:"stage"`
	Work      string `json:"work"`
	Moved     bool   `json:"moved,omitempty"`
	Samples   uint64 `json:"samples_total"`
}

// Contexts of a sample.
const (
	ContextTask      = "task"
	ContextSoftIRQ   = "softirq"
	ContextThread    = "softirq thread" // ksoftirqd, threaded NAPI
	ContextInterrupt = "interrupt"
	ContextUser      = "user"
)

// Check returns an error for a profile that no builder made, as another host or a file may have it:
// a stack that names no function, a share that is none, a figure per packet without its interval,
// counts over no time.
func (p *Profile) Check() error {
	for _, rows := range [][]Row{p.Stages, p.Work, p.Contexts, p.Functions} {
		for _, r := range rows {
			if !(r.Share >= 0 && r.Share <= 1) {
				return fmt.Errorf("%q has a share of %v", r.Name, r.Share)
			}
			if r.PerPacket != nil && (r.PerPacketLow == nil || r.PerPacketHigh == nil) {
				return fmt.Errorf("%q has a time per packet without an interval", r.Name)
			}
		}
	}
	if p.Exact != nil && !(p.Exact.Duration > 0) {
		return fmt.Errorf("softirqs were counted for %v seconds", p.Exact.Duration)
	}
	for _, s := range p.Stacks {
		if len(s.Functions) == 0 {
			return errors.New("a stack has no function")
		}
		for _, f := range s.Functions {
			if f < 0 || f >= len(p.Functions) {
				return fmt.Errorf("a stack has function %d of %d", f, len(p.Functions))
			}
		}
	}
	return nil
}

// Trim keeps the most frequent stacks, and counts the samples of the others as cut.
func (p *Profile) Trim(most int) {
	if len(p.Stacks) <= most {
		return
	}
	for _, s := range p.Stacks[most:] {
		p.StacksCut += s.Samples
	}
	p.Stacks = p.Stacks[:most]
}

// find returns the row with the given name; nil: there is none.
func find(rows []Row, name string) *Row {
	for i := range rows {
		if rows[i].Name == name {
			return &rows[i]
		}
	}
	return nil
}

// StageRow returns the row of a stage; nil: no sample was there.
func (p *Profile) StageRow(name string) *Row { return find(p.Stages, name) }

// WorkRow returns the row of a kind of work; nil: no sample did it.
func (p *Profile) WorkRow(name string) *Row { return find(p.Work, name) }

// Handled is the number of packets that the host worked on: received and sent ones, and forwarded
// ones once.
func (p *Packets) Handled() uint64 { return p.Received + p.Sent - min(p.Forwarded, p.Received+p.Sent) }
