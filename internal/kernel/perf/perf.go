package perf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Event is something that a CPU counts, and that can therefore interrupt it once per period.
type Event struct {
	Name string // as perf(1) names it
	// Kind and Config are the first two numbers of perf_event_attr.
	Kind   uint32
	Config uint64
	// Timer reports a clock of the kernel instead of a counter of the processor: it cannot interrupt
	// code that runs with interrupts off.
	Timer bool
	// Period is the number of events between two samples at the default rate: a prime, so that it
	// stays out of step with the clocks of what it watches. 0 for a timer, whose period is a time.
	Period uint64
}

// Kinds of events in include/uapi/linux/perf_event.h.
const (
	kindHardware = 0
	kindSoftware = 1
)

// Events returns the events that linerate can sample, the most useful first. All but the last need
// the counters of a processor, which many virtual machines hide.
func Events() []Event {
	return []Event{
		{Name: "cycles", Kind: kindHardware, Config: 0, Period: 2_500_009},
		{Name: "instructions", Kind: kindHardware, Config: 1, Period: 2_500_009},
		{Name: "cache-misses", Kind: kindHardware, Config: 3, Period: 10_007},
		{Name: "branch-misses", Kind: kindHardware, Config: 5, Period: 50_021},
		{Name: "stalled-cycles-frontend", Kind: kindHardware, Config: 7, Period: 1_000_003},
		{Name: "stalled-cycles-backend", Kind: kindHardware, Config: 8, Period: 1_000_003},
		CPUClock(),
	}
}

// CPUClock returns the event that every Linux has: the time that a CPU runs.
func CPUClock() Event { return Event{Name: "cpu-clock", Kind: kindSoftware, Config: 0, Timer: true} }

// Answer is what the kernel said about an event.
type Answer string

// The answers. Unknown is no refusal: another user holds the counters, or the event opened and did
// not count.
const (
	Works        Answer = "works"
	NotSupported Answer = "not-supported"
	NotPermitted Answer = "not-permitted"
	Unknown      Answer = "unknown"
)

// Probed is the answer about one event, with the kernel's reason where there is one.
type Probed struct {
	Event  Event
	Answer Answer
	Reason string
}

// Errors of [Open].
var (
	// ErrNotSupported reports that this machine, or this system, does not have the event.
	ErrNotSupported = errors.New("not supported here")
	// ErrPeriod reports a period that would leave the machine no time for anything else.
	ErrPeriod = errors.New("period too short")
)

// ShortestTimer is the shortest period of a timer that Open accepts. A sample takes up to 30 µs in
// a virtual machine, and nothing in the kernel slows a timer that takes all time.
const ShortestTimer = 200 * time.Microsecond

// Options select what a [Sampler] watches.
type Options struct {
	Event  Event
	Period uint64 // nanoseconds for a timer, otherwise events; a fixed number
	CPUs   []int  // one ring each
	// Pages is the size of each ring in pages of memory, a power of two; 0: chosen by the number of
	// CPUs.
	Pages int
	// Programs asks for the chains of programs as well, as far as their frame pointers reach.
	Programs bool
}

// ringMemory bounds what all rings together may take, in pages of 4 KiB: 64 MiB.
const ringMemory = 1 << 14

// pages returns the size of one ring: as asked, or 512 KiB unless there are very many CPUs.
func (o Options) pages() int {
	if o.Pages > 0 {
		return o.Pages
	}
	n := 128
	for n > 8 && n*len(o.CPUs) > ringMemory {
		n /= 2
	}
	return n
}

// check refuses options that would hang the machine or watch nothing.
func (o Options) check() error {
	if len(o.CPUs) == 0 {
		return errors.New("no cpu to sample")
	}
	if o.Period == 0 || o.Event.Timer && o.Period < uint64(ShortestTimer) {
		return fmt.Errorf("sample %s every %d: %w", o.Event.Name, o.Period, ErrPeriod)
	}
	return nil
}

// Mode is where a CPU was when it was sampled.
type Mode uint8

// The modes, numbered as in the misc field of a record.
const (
	ModeUnknown    Mode = 0
	ModeKernel     Mode = 1
	ModeUser       Mode = 2
	ModeHypervisor Mode = 3
	ModeGuest      Mode = 4 // kernel or programs of a virtual machine on this host
)

// Sample is one interruption of a CPU.
type Sample struct {
	CPU      int
	PID, TID int // 0 for the idle task
	Mode     Mode
	Nanos    uint64   // CLOCK_MONOTONIC
	Period   uint64   // what this sample stands for, in units of the event
	IP       uint64   // the interrupted instruction
	Chain    []uint64 // kernel addresses, leaf first; shared with the next sample, so copy what stays
	Program  []uint64 // addresses of the program, leaf first, if they were asked for; shared as well
}

// Symbol is a function that the kernel loaded or removed while it was sampled: a BPF program, a
// trampoline.
type Symbol struct {
	Address uint64
	Length  uint32
	Removed bool
	Name    string
}

// Visitor receives what a ring holds. A nil function skips its records.
type Visitor struct {
	Sample   func(Sample)
	Symbol   func(Symbol)
	Lost     func(records uint64) // the ring was full; Counts is exact where the kernel has it
	Throttle func()               // the kernel stopped the event for the rest of a tick
}

// Numbers of records and marks inside a chain, of include/uapi/linux/perf_event.h.
const (
	recordLost       = 2
	recordThrottle   = 5
	recordSample     = 9
	recordKsymbol    = 17
	ksymbolRemoved   = 1
	contextKernel    = ^uint64(0) - 128 + 1
	contextUser      = ^uint64(0) - 512 + 1
	contextMax       = ^uint64(0) - 4095 + 1
	headerBytes      = 8
	modeMask         = 7
	fixedSampleBytes = 8 + 8 + 8 + 8 + 8 + 8 // ip, pid and tid, time, cpu, period, length of the chain
)

// ErrRecord reports bytes that are no record of a ring.
var ErrRecord = errors.New("malformed perf record")

// Decode hands the records in b to v, in their order. It expects samples with the fields that Open
// asks for: IP, TID, TIME, CPU, PERIOD, CALLCHAIN. It returns ErrRecord where a length is
// impossible; records before it have been handed on.
func Decode(b []byte, v Visitor) error {
	var chain []uint64
	for len(b) > 0 {
		if len(b) < headerBytes {
			return fmt.Errorf("%w: %d bytes left", ErrRecord, len(b))
		}
		kind, misc := binary.NativeEndian.Uint32(b), binary.NativeEndian.Uint16(b[4:])
		size := int(binary.NativeEndian.Uint16(b[6:]))
		if size < headerBytes || size > len(b) {
			return fmt.Errorf("%w: type %d of %d bytes, %d left", ErrRecord, kind, size, len(b))
		}
		body := b[headerBytes:size]
		b = b[size:]
		switch kind {
		case recordSample:
			s, c, err := decodeSample(body, chain[:0])
			if err != nil {
				return err
			}
			chain = c
			s.Mode = Mode(misc & modeMask)
			if s.Mode > ModeGuest {
				s.Mode = ModeGuest
			}
			if v.Sample != nil {
				v.Sample(s)
			}
		case recordLost:
			if len(body) < 16 {
				return fmt.Errorf("%w: lost record of %d bytes", ErrRecord, size)
			}
			if v.Lost != nil {
				v.Lost(binary.NativeEndian.Uint64(body[8:]))
			}
		case recordThrottle:
			if v.Throttle != nil {
				v.Throttle()
			}
		case recordKsymbol:
			if len(body) < 16 {
				return fmt.Errorf("%w: symbol record of %d bytes", ErrRecord, size)
			}
			if v.Symbol != nil {
				v.Symbol(Symbol{Address: binary.NativeEndian.Uint64(body), Length: binary.NativeEndian.Uint32(body[8:]),
					Removed: binary.NativeEndian.Uint16(body[14:])&ksymbolRemoved != 0, Name: cString(body[16:])})
			}
		}
	}
	return nil
}

// decodeSample reads the fields in the order of their bits in sample_type.
func decodeSample(b []byte, chain []uint64) (Sample, []uint64, error) {
	if len(b) < fixedSampleBytes {
		return Sample{}, nil, fmt.Errorf("%w: sample of %d bytes", ErrRecord, len(b))
	}
	word := binary.NativeEndian.Uint64
	s := Sample{
		IP:  word(b),
		PID: int(int32(binary.NativeEndian.Uint32(b[8:]))), TID: int(int32(binary.NativeEndian.Uint32(b[12:]))),
		Nanos: word(b[16:]), CPU: int(binary.NativeEndian.Uint32(b[24:])), Period: word(b[32:]),
	}
	n := word(b[40:])
	b = b[fixedSampleBytes:]
	if n > uint64(len(b)/8) {
		return Sample{}, nil, fmt.Errorf("%w: chain of %d in %d bytes", ErrRecord, n, len(b))
	}
	kernel, program := false, -1
	for i := range int(n) {
		switch at := word(b[8*i:]); {
		case at == contextKernel:
			kernel = true
		case at >= contextMax: // contextUser and those of guests
			kernel = false
			if at == contextUser && program < 0 {
				program = len(chain) // the kernel's part comes first
			}
		case kernel && program < 0, program >= 0:
			chain = append(chain, at)
		}
	}
	s.Chain = chain
	if program >= 0 {
		s.Chain, s.Program = chain[:program], chain[program:]
	}
	return s, chain, nil
}

func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// Count is what one event counted, and how much of the time.
type Count struct {
	CPU              int
	Value            uint64 // in units of the event
	Enabled, Running time.Duration
	Lost             uint64 // samples that found no room in the ring
	LostKnown        bool   // the kernel counts them (Linux 6.0)
}
