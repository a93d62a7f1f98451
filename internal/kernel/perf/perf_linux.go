package perf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Flags that x/sys does not name, of include/uapi/linux/perf_event.h.
const (
	bitKsymbol   = 1 << 29
	bitBPFEvent  = 1 << 30
	formatLost   = 1 << 4
	softwareNone = 9 // PERF_COUNT_SW_DUMMY: counts nothing and carries records
)

const sampleType = unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_CPU |
	unix.PERF_SAMPLE_PERIOD | unix.PERF_SAMPLE_CALLCHAIN

const formatTimes = unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING

// Sampler samples a set of CPUs. It is for one goroutine at a time.
type Sampler struct {
	event Event
	rings []*ring
	lost  bool // the kernel counts lost samples
	// scratch receives records that wrap around the end of a ring.
	scratch []byte
}

// ring is the event of one CPU and the memory that the kernel writes its records to. A ring without
// an event of its own carries only records about symbols.
type ring struct {
	cpu   int
	fd    int
	mem   []byte
	data  []byte
	head  *uint64
	tail  *uint64
	about bool // carries symbols, no samples
}

// Open makes one event for each CPU, all stopped. The error is ErrNotSupported where the machine
// lacks the event, fs.ErrPermission where this process may not use it, ErrPeriod for a harmful
// period. Close the sampler.
func Open(o Options) (*Sampler, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Sampler{event: o.Event, lost: true}
	for _, cpu := range o.CPUs {
		attr := attrOf(o.Event)
		attr.Sample, attr.Sample_type = o.Period, sampleType
		attr.Bits |= unix.PerfBitUseClockID
		if !o.Programs {
			attr.Bits |= unix.PerfBitExcludeCallchainUser
		}
		attr.Clockid = unix.CLOCK_MONOTONIC
		fd, err := s.open(&attr, cpu)
		if errors.Is(err, unix.ENODEV) {
			continue // the CPU went offline
		}
		if err == nil {
			err = s.add(cpu, fd, o.pages(), false)
		}
		if err != nil {
			s.Close()
			return nil, refused(fmt.Sprintf("sample %s on cpu %d", o.Event.Name, cpu), o.Event, err)
		}
	}
	if len(s.rings) == 0 {
		return nil, fmt.Errorf("sample %s: no cpu is online", o.Event.Name)
	}
	s.addSymbols(o.CPUs[0])
	return s, nil
}

// open falls back to a kernel that does not count lost samples (before 6.0).
func (s *Sampler) open(attr *unix.PerfEventAttr, cpu int) (int, error) {
	attr.Read_format = formatTimes
	if s.lost {
		attr.Read_format |= formatLost
	}
	fd, err := unix.PerfEventOpen(attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if s.lost && errors.Is(err, unix.EINVAL) {
		s.lost = false
		return s.open(attr, cpu)
	}
	return fd, err
}

// addSymbols adds an event that reports BPF programs loaded from now on. A kernel before 5.1 has
// none to report; one event sees all CPUs, because such a record goes to every context that asked.
func (s *Sampler) addSymbols(cpu int) {
	attr := attrOf(Event{Kind: kindSoftware, Config: softwareNone})
	attr.Bits |= bitKsymbol | bitBPFEvent
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return
	}
	_ = s.add(cpu, fd, 8, true) // without it new programs have no name
}

func attrOf(e Event) unix.PerfEventAttr {
	return unix.PerfEventAttr{Type: e.Kind, Config: e.Config, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits: unix.PerfBitDisabled}
}

// add maps the memory of an event. It owns fd afterwards.
func (s *Sampler) add(cpu, fd, pages int, about bool) error {
	page := os.Getpagesize()
	mem, err := unix.Mmap(fd, 0, (1+pages)*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Close(fd)
		return fmt.Errorf("map ring of %d pages: %w", pages, err)
	}
	control := (*unix.PerfEventMmapPage)(unsafe.Pointer(&mem[0]))
	s.rings = append(s.rings, &ring{cpu: cpu, fd: fd, mem: mem, data: mem[page:], head: &control.Data_head,
		tail: &control.Data_tail, about: about})
	return nil
}

// Enable starts all events.
func (s *Sampler) Enable() error { return s.all(unix.PERF_EVENT_IOC_ENABLE, "start") }

// Disable stops all events; what the rings hold stays.
func (s *Sampler) Disable() error { return s.all(unix.PERF_EVENT_IOC_DISABLE, "stop") }

func (s *Sampler) all(request uint, what string) error {
	var errs []error
	for _, r := range s.rings {
		if err := unix.IoctlSetInt(r.fd, request, 0); err != nil {
			errs = append(errs, fmt.Errorf("%s %s on cpu %d: %w", what, s.event.Name, r.cpu, err))
		}
	}
	return errors.Join(errs...)
}

// Drain hands on what the rings hold, CPU by CPU, and makes room for more. Records are decoded in
// the memory of the ring, so v must not keep slices.
func (s *Sampler) Drain(v Visitor) error {
	var errs []error
	for _, r := range s.rings {
		head, tail := atomic.LoadUint64(r.head), atomic.LoadUint64(r.tail)
		if head == tail {
			continue
		}
		size := uint64(len(r.data))
		from, to := tail%size, head%size
		var err error
		if from < to {
			err = Decode(r.data[from:to], v)
		} else {
			s.scratch = append(append(s.scratch[:0], r.data[from:]...), r.data[:to]...)
			err = Decode(s.scratch, v)
		}
		atomic.StoreUint64(r.tail, head)
		if err != nil {
			errs = append(errs, fmt.Errorf("read ring of cpu %d: %w", r.cpu, err))
		}
	}
	return errors.Join(errs...)
}

// Counts reads the events themselves, one for each CPU.
func (s *Sampler) Counts() ([]Count, error) {
	var all []Count
	for _, r := range s.rings {
		if r.about {
			continue
		}
		var b [32]byte // value, enabled, running, lost
		want := 24
		if s.lost {
			want = 32
		}
		n, err := unix.Read(r.fd, b[:want])
		if err != nil || n != want {
			return nil, fmt.Errorf("read %s of cpu %d: %d bytes: %w", s.event.Name, r.cpu, n, errors.Join(err, ErrRecord))
		}
		word := binary.NativeEndian.Uint64
		all = append(all, Count{CPU: r.cpu, Value: word(b[:]), Enabled: time.Duration(word(b[8:])),
			Running: time.Duration(word(b[16:])), Lost: word(b[24:]), LostKnown: s.lost})
	}
	return all, nil
}

// Close ends all events.
func (s *Sampler) Close() {
	for _, r := range s.rings {
		_ = unix.Munmap(r.mem) // its memory is not used any more
		_ = unix.Close(r.fd)
	}
	s.rings = nil
}

// sink keeps the result of work from being optimised away.
var sink atomic.Uint64

// work makes the processor busy with branches and memory.
func work(rounds int) {
	var table [4096]uint64
	x := uint64(rounds) | 1
	for range rounds {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		if x&64 != 0 {
			table[x%4096] += x
		}
	}
	sink.Store(x + table[x%4096])
}

// refused names the kind of a refusal. ENOENT is also the answer to an event that does not exist
// anywhere; for a counter of the processor it means that the processor shows none.
func refused(what string, e Event, err error) error { return refusal(what, e, err, hasPMU) }

// refusal is refused for a machine that may show counters or not.
func refusal(what string, e Event, err error, counters func() bool) error {
	if what != "" {
		what += ": "
	}
	switch {
	case errors.Is(err, unix.ENOENT) && e.Kind == kindHardware && !counters():
		return fmt.Errorf("%sthe processor shows no counters: %w", what, ErrNotSupported)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("%s%w: %w", what, err, ErrNotSupported)
	}
	return fmt.Errorf("%s%w", what, err)
}

// hasPMU reports whether the kernel drives counters of the processor.
func hasPMU() bool {
	for _, pattern := range []string{"cpu", "cpu_core", "cpu_atom", "armv8*", "armv7*", "arm*_cortex*"} {
		if found, _ := filepath.Glob("/sys/bus/event_source/devices/" + pattern); len(found) > 0 {
			return true
		}
	}
	return false
}

// SampleCost measures what one sample takes, in CPU time of the sampled thread: the same loop with
// and without a timer on this thread, in nine short pairs of which the middle counts. It returns 0
// where the difference is within the noise, and takes about 12 ms.
func SampleCost() (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := attrOf(CPUClock())
	attr.Sample, attr.Sample_type = uint64(ShortestTimer)+83, sampleType
	attr.Bits |= unix.PerfBitExcludeCallchainUser
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return 0, refused("measure the cost of a sample", CPUClock(), err)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	page := os.Getpagesize()
	mem, err := unix.Mmap(fd, 0, 9*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return 0, fmt.Errorf("measure the cost of a sample: %w", err)
	}
	defer func() { _ = unix.Munmap(mem) }() // not used any more
	control := (*unix.PerfEventMmapPage)(unsafe.Pointer(&mem[0]))
	const rounds = 1 << 17
	var costs []time.Duration
	for range 9 {
		quiet := threadTime(func() { work(rounds) })
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return 0, fmt.Errorf("measure the cost of a sample: %w", err)
		}
		atomic.StoreUint64(&control.Data_tail, atomic.LoadUint64(&control.Data_head))
		before := atomic.LoadUint64(&control.Data_head)
		sampled := threadTime(func() { work(rounds) })
		after := atomic.LoadUint64(&control.Data_head)
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_DISABLE, 0); err != nil {
			return 0, fmt.Errorf("measure the cost of a sample: %w", err)
		}
		// The chain of a sample in this loop is empty but for its marks: the record has a known size,
		// and those of other kinds do not occur.
		if n := (after - before) / (headerBytes + fixedSampleBytes); n > 0 {
			costs = append(costs, (sampled-quiet)/time.Duration(n))
		}
	}
	return max(0, middle(costs)), nil
}

// middle returns the median; 0 of none.
func middle(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[len(d)/2]
}

func threadTime(f func()) time.Duration {
	before := threadClock()
	f()
	return threadClock() - before
}

func threadClock() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // exists since Linux 2.6.12
	return time.Duration(t.Nano())
}

// Now returns CLOCK_MONOTONIC, the clock of [Sample.Nanos].
func Now() uint64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail
	return uint64(t.Nano())
}
