package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/kernel/perf"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/profile/program"
)

// Options select what is sampled.
type Options struct {
	Duration time.Duration
	Event    string // as [Events] names it; empty: cycles, or cpu-clock where the processor shows no counters
	CPUs     []int  // empty: all that are online
	// Interfaces are those whose packets count; empty: all that stand on no other, and lo only if it
	// alone carried packets.
	Interfaces []string
	// Rate is the number of samples per second and CPU of a timer; 0: follows the cost of a sample.
	Rate int
	// Programs names the functions of programs and their callers, as far as frame pointers reach.
	Programs bool
	// Anonymous leaves out what another host need not know: names of processes, and addresses.
	Anonymous bool
}

// ErrNoEvent reports an event that linerate does not know.
var ErrNoEvent = errors.New("no such event")

// Events returns the names of the events that Run accepts.
func Events() []string {
	var names []string
	for _, e := range perf.Events() {
		names = append(names, e.Name)
	}
	return names
}

// Bounds of a run: how often rings are emptied, and how many slices of time the intervals rest on.
const (
	drainEvery  = 250 * time.Millisecond // a ring of 512 KiB holds this of 2000 samples a second, 127 frames deep
	sliceTime   = 250 * time.Millisecond
	leastSlices = 20
	mostSlices  = 60
)

// slicesOf returns the number of slices of a run: a quarter of a second each, because bursts last
// about that long, and at least leastSlices for narrow quantiles.
func slicesOf(d time.Duration) int { return min(mostSlices, max(leastSlices, int(d/sliceTime))) }

// Rates of a timer, in samples per second and CPU, each with the longest sample that it suits:
// samples and the program together stay below 1 % of a CPU on a machine of two.
var timerRates = []struct {
	rate    int
	longest time.Duration
}{
	{997, 4 * time.Microsecond}, {499, 10 * time.Microsecond}, {199, 35 * time.Microsecond},
	{97, 80 * time.Microsecond}, {49, time.Hour},
}

// periodOf returns the period of an event at a rate, or at one that suits the cost of a sample. It
// is a prime, so that it stays out of step with other timers.
func periodOf(e perf.Event, rate int, cost time.Duration) uint64 {
	if !e.Timer {
		return e.Period
	}
	for _, r := range timerRates {
		if rate <= 0 && cost <= r.longest {
			rate = r.rate
		}
	}
	return nextPrime(uint64(time.Second) / uint64(max(rate, 1)))
}

// nextPrime returns the smallest prime that is at least n.
func nextPrime(n uint64) uint64 {
	for n = max(n, 2); ; n++ {
		prime := true
		for d := uint64(2); d*d <= n && prime; d++ {
			prime = n%d != 0
		}
		if prime {
			return n
		}
	}
}

// Ask returns the kernel's answer about every event.
func Ask(cpu int) []perf.Probed {
	var all []perf.Probed
	for _, e := range perf.Events() {
		all = append(all, perf.Probe(e, cpu))
	}
	return all
}

// choose returns the event to sample: the named one, or the first of cycles and cpu-clock that
// works. An error says why none does, as the kernel does.
func choose(answers []perf.Probed, name string) (perf.Event, error) {
	wanted := []string{name}
	if name == "" {
		wanted = []string{"cycles", perf.CPUClock().Name}
	}
	var err error
	for _, w := range wanted {
		i := slices.IndexFunc(answers, func(p perf.Probed) bool { return p.Event.Name == w })
		if i < 0 {
			return perf.Event{}, fmt.Errorf("sample %s: %w; choose from %s", w, ErrNoEvent, strings.Join(Events(), ", "))
		}
		switch a := answers[i]; a.Answer {
		case perf.Works:
			return a.Event, nil
		case perf.NotPermitted:
			err = &RefusedError{Subject: "sample " + w, Reason: a.Reason, kind: fs.ErrPermission}
		case perf.NotSupported:
			err = &RefusedError{Subject: "sample " + w, Reason: a.Reason, kind: perf.ErrNotSupported}
		default:
			err = fmt.Errorf("sample %s: %s", w, a.Reason)
		}
	}
	return perf.Event{}, err
}

// RefusedError reports that the kernel does not let this process sample an event, or does not have
// it. It is fs.ErrPermission or perf.ErrNotSupported.
type RefusedError struct {
	Subject, Reason string
	kind            error
}

func (e *RefusedError) Error() string { return e.Subject + ": " + e.Reason }

func (e *RefusedError) Unwrap() error { return e.kind }

// Hint returns what the user can do next.
func (e *RefusedError) Hint() string { return e.hint(os.Geteuid() == 0) }

func (e *RefusedError) hint(root bool) string {
	switch clock := perf.CPUClock().Name; {
	case errors.Is(e.kind, perf.ErrNotSupported) && e.Subject == "sample "+clock:
		return "use a kernel with CONFIG_PERF_EVENTS, or run it on the host if this is a container"
	case errors.Is(e.kind, perf.ErrNotSupported):
		return "--event " + clock + " works on every Linux"
	case root:
		return "run it on the host, or give the container CAP_PERFMON and CAP_SYSLOG and a filter that passes perf_event_open"
	}
	return "run it as root, or give the program what it needs: setcap cap_perfmon,cap_syslog+ep"
}

// Recorder samples this host, once or several times, with one event, one rate and one way to name
// functions. It is for one goroutine at a time.
type Recorder struct {
	o       Options
	cpus    []int
	answers []perf.Probed
	event   perf.Event
	cost    time.Duration
	period  uint64
	asks    bool             // for single functions, without a list
	reading chan symbolsRead // while the list is being read
	symbols *profile.Symbols // nil: not read, or not needed
}

// Open asks the kernel for the event and measures what a sample costs. The error is a RefusedError
// where the kernel refuses. Nothing is held until [Recorder.Run].
func Open(o Options) (*Recorder, error) {
	r := &Recorder{o: o, cpus: o.CPUs}
	if len(r.cpus) == 0 {
		var err error
		if r.cpus, err = sys.OnlineCPUs(); err != nil {
			return nil, refusedSystem(err)
		}
	}
	r.answers = Ask(r.cpus[0])
	var err error
	if r.event, err = choose(r.answers, o.Event); err != nil {
		return nil, err
	}
	if r.asks = answers(); !r.asks {
		r.reading = make(chan symbolsRead, 1)
		go func() { r.reading <- readSymbols() }()
	}
	if r.cost, err = perf.SampleCost(); err != nil {
		return nil, err
	}
	r.period = periodOf(r.event, o.Rate, r.cost)
	return r, nil
}

// Named waits until functions have names. The error is profile.ErrHidden where they have no
// addresses for this process.
func (r *Recorder) Named() error {
	if r.asks {
		return nil
	}
	_, err := r.list()
	return err
}

// functions returns what names functions for one run, and the processor time that preparing it took
// beside the caller.
func (r *Recorder) functions() (f *functions, took time.Duration, err error) {
	if r.asks {
		f, err = asked()
		return f, 0, err
	}
	if took, err = r.list(); err != nil {
		return nil, 0, err
	}
	return &functions{listed: r.symbols, close: func() {}}, took, nil
}

// list waits for the list of symbols and returns the processor time that reading it took just now.
func (r *Recorder) list() (took time.Duration, err error) {
	if r.symbols != nil {
		return 0, nil
	}
	read := <-r.reading
	if read.err != nil {
		r.reading <- read // the next call gets the same answer
		return 0, read.err
	}
	r.symbols = read.table
	return read.took, nil
}

// Run samples this host until the duration has passed or ctx ends; an early end returns the profile
// so far. The error is profile.ErrHidden where functions have no addresses for this process.
func (r *Recorder) Run(ctx context.Context, d time.Duration) (*profile.Profile, error) {
	one := &recording{o: r.o, event: r.event, period: r.period, builder: profile.NewBuilder(r.event.Name, r.event.Timer),
		names: map[int]string{0: withoutID(os.Readlink)}, cache: make(map[uint64]place)}
	one.o.Duration = d
	p, err := one.run(ctx, r.cpus, r)
	if err != nil {
		return nil, err
	}
	for _, a := range r.answers {
		p.Events = append(p.Events, profile.Asked{Event: a.Event.Name, Answer: string(a.Answer), Reason: a.Reason})
	}
	if p.Duration > 0 {
		p.Cost = &profile.Cost{SampleSeconds: r.cost.Seconds(), OwnSeconds: one.own.Seconds(),
			CPURatio: (r.cost.Seconds()*float64(p.Samples)/float64(len(r.cpus)) + one.own.Seconds()) / p.Duration}
	}
	return p, nil
}

// Run opens a [Recorder] and runs it once.
func Run(ctx context.Context, o Options) (*profile.Profile, error) {
	r, err := Open(o)
	if err != nil {
		return nil, err
	}
	return r.Run(ctx, o.Duration)
}

// refusedSystem is the answer of a system without CPUs in /sys.
func refusedSystem(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, sys.ErrNotSupported) {
		return &RefusedError{Subject: "sample this host", Reason: err.Error(), kind: perf.ErrNotSupported}
	}
	return err
}

// place is a resolved address.
type place struct {
	frame  int
	offset int64
}

// recording is one run.
type recording struct {
	o       Options
	event   perf.Event
	period  uint64
	builder *profile.Builder
	kernel  *functions
	names   map[int]string // of processes
	files   program.Files
	running map[int]*running // processes whose functions are named
	cache   map[uint64]place
	chain   []int
	bounds  []uint64 // ends of slices, CLOCK_MONOTONIC
	ended   bool     // the last slice is complete
	late    uint64   // samples lost by the records alone
	stopped uint64   // throttled
	own     time.Duration
}

// run opens the events, samples, and bills.
func (r *recording) run(ctx context.Context, cpus []int, from *Recorder) (*profile.Profile, error) {
	sampler, err := perf.Open(perf.Options{Event: r.event, Period: r.period, CPUs: cpus, Programs: r.o.Programs})
	if err != nil {
		return nil, err
	}
	defer sampler.Close()
	first, err := readCounters(true)
	if err != nil {
		return nil, err
	}
	// A thread of its own, so that its processor time is that of the profiler and not of a test
	// beside.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, _ := sys.ThreadTime(sys.ThreadID())
	started := perf.Now()
	if err := sampler.Enable(); err != nil {
		return nil, err
	}
	readings := []*counters{first}
	sliceNanos := uint64(r.o.Duration) / uint64(slicesOf(r.o.Duration))
	visit := perf.Visitor{Sample: r.sample, Symbol: r.loaded, Lost: func(n uint64) { r.late += n },
		Throttle: func() { r.stopped++ }}
	var problems []error
	tick := time.NewTicker(min(drainEvery, max(time.Millisecond, time.Duration(sliceNanos))))
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		ended = ended || perf.Now() >= started+uint64(r.o.Duration)
		if ended {
			problems = append(problems, sampler.Disable())
		}
		if perf.Now() >= started+uint64(len(r.bounds)+1)*sliceNanos || ended {
			c, err := readCounters(ended)
			if err != nil {
				return nil, err
			}
			readings = append(readings, c)
			r.bounds, r.ended = append(r.bounds, perf.Now()), ended
		}
		if r.kernel == nil {
			if r.kernel, r.own, err = from.functions(); err != nil {
				return nil, err
			}
			defer r.kernel.close()
		}
		problems = append(problems, sampler.Drain(visit))
	}
	took := time.Duration(r.bounds[len(r.bounds)-1] - started)
	counts, err := sampler.Counts()
	if err != nil {
		return nil, err
	}
	w := profile.Window{Slices: len(r.bounds)}
	if r.event.Timer {
		w.SampleSeconds = float64(r.period) / 1e9
	} else {
		w.EventsPerSample = float64(r.period)
		if r.event.Name == "cycles" {
			w.BusySeconds = busySeconds(readings[0], readings[len(readings)-1], cpus)
		}
	}
	packets := r.packets(readings, &w)
	p := r.builder.Finish(w)
	if now, known := sys.ThreadTime(sys.ThreadID()); known {
		r.own += now - before
	}
	p.Duration, p.Period, p.CPUs = took.Seconds(), r.period, cpus
	if r.event.Timer {
		p.RatePerSecond = 1e9 / float64(r.period)
	}
	p.Throttled = r.stopped
	r.health(p, counts)
	if packets != nil {
		p.Packets = packets
		handled, bytes := packets.Handled(), packets.ReceivedBytes+packets.SentBytes
		p.PacketsTotal, p.BytesTotal = &handled, &bytes
	}
	if err := errors.Join(append(problems, r.kernel.err)...); err != nil {
		p.Warnings = append(p.Warnings, err.Error())
	}
	p.Warnings = append(p.Warnings, steal(readings[0], readings[len(readings)-1])...)
	return p, nil
}

// health adds what the events lost and how long they counted.
func (r *recording) health(p *profile.Profile, counts []perf.Count) {
	var enabled, running time.Duration
	p.Lost = r.late
	exact := uint64(0)
	known := len(counts) > 0
	for _, c := range counts {
		enabled, running = enabled+c.Enabled, running+c.Running
		exact += c.Lost
		known = known && c.LostKnown
	}
	if known {
		p.Lost = exact
	}
	if enabled > 0 {
		p.RunningRatio = min(1, running.Seconds()/enabled.Seconds())
	}
}

// sample counts one sample.
func (r *recording) sample(s perf.Sample) {
	slice := len(r.bounds)
	for i := len(r.bounds) - 1; i >= 0 && s.Nanos < r.bounds[i]; i-- {
		slice = i
	}
	if r.ended {
		slice = min(slice, len(r.bounds)-1)
	}
	r.chain = r.chain[:0]
	leaf := int64(-1)
	switch s.Mode {
	case perf.ModeUser:
		if r.o.Programs {
			r.program(s)
		}
		r.chain = append(r.chain, r.builder.Frame(profile.Frame{Name: r.process(s.PID), Kind: profile.UserFrame}))
	case perf.ModeGuest, perf.ModeHypervisor:
		r.chain = append(r.chain, r.builder.Frame(profile.Frame{Name: "virtual machine", Kind: profile.GuestFrame}))
	default:
		for i, address := range s.Chain {
			if i > 0 {
				address-- // a return address may be the start of the next function
			}
			at := r.place(address)
			if i == 0 {
				leaf = at.offset
			}
			r.chain = append(r.chain, at.frame)
		}
		if len(r.chain) == 0 {
			at := r.place(s.IP)
			r.chain, leaf = append(r.chain, at.frame), at.offset
		}
	}
	r.builder.Add(profile.Seen{Frames: r.chain, Offset: leaf, Slice: slice, Process: r.process(s.PID), Count: 1})
}

// place resolves an address, from memory where it was seen before.
func (r *recording) place(address uint64) place {
	if at, known := r.cache[address]; known {
		return at
	}
	at := place{offset: -1}
	if name, module, offset, ok := r.kernel.resolve(address); ok {
		at = place{r.builder.Frame(profile.Frame{Name: name, Module: module}), int64(offset)}
	} else {
		name := "0x" + strconv.FormatUint(address&^0xfff, 16)
		if r.o.Anonymous {
			name = "unnamed"
		}
		at.frame = r.builder.Frame(profile.Frame{Name: name, Kind: profile.NamelessFrame})
	}
	if len(r.cache) < 1<<20 {
		r.cache[address] = at
	}
	return at
}

// loaded adds a function that the kernel loaded meanwhile; what was resolved before may be it.
func (r *recording) loaded(s perf.Symbol) {
	if !s.Removed {
		r.kernel.listed.Add(s.Address, s.Length, s.Name)
		clear(r.cache)
	}
}

// process returns the name of a process, read when it is first seen.
func (r *recording) process(pid int) string {
	if name, known := r.names[pid]; known {
		return name
	}
	if r.o.Anonymous {
		return "a program"
	}
	name := "ended process"
	if b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm"); err == nil {
		name = strings.TrimSpace(string(b))
	}
	if len(r.names) < 1<<16 {
		r.names[pid] = name
	}
	return name
}

// withoutID is the name of what has no process number: the idle task of each CPU. To a reader in a
// PID namespace of its own, such as a container, every process outside has none either
// (perf_event_pid in kernel/events/core.c).
func withoutID(readlink func(string) (string, error)) string {
	const initial = "pid:[4026531836]" // PROC_PID_INIT_INO of include/linux/proc_ns.h
	if own, err := readlink("/proc/self/ns/pid"); err == nil && own != initial {
		return "idle or outside this container"
	}
	return "idle"
}
