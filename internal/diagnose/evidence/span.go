package evidence

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/watch"
	"github.com/linerate/linerate/internal/traffic"
)

// Run is one test between the two hosts.
type Run = traffic.Result

// Span is one host over a period: while a run loaded it, or during its normal work.
type Span struct {
	Side     string            `json:"side"` // near or far
	Host     *host.Snapshot    `json:"host,omitempty"`
	Seconds  float64           `json:"seconds"`            // length; 0: unknown
	Counters map[string]uint64 `json:"counters,omitempty"` // increase, without zeros; gauges at the end
	CPUs     []host.CPUTimes   `json:"cpus,omitempty"`     // time by class

	// SinceBoot says that the counters cover the time since the host started, Seconds ago, instead
	// of an observation. They include causes of long ago as well as present ones.
	SinceBoot bool `json:"since_boot,omitempty"`

	// Only of a watched host: interrupts of NICs, and sockets. Sockets is nil if they were not
	// read.
	Interrupts []watch.CardInterrupt `json:"interrupts,omitempty"`
	PerCPU     []watch.CPU           `json:"per_cpu,omitempty"` // with the network's share of each CPU's work
	Sockets    *watch.Sockets        `json:"sockets,omitempty"`

	// Profile is what the CPUs did; nil: no processor was the limit, or sampling was not possible.
	Profile *Profile `json:"profile,omitempty"`

	Run *Run `json:"-"` // the test that loaded the host; nil: none
	End *End `json:"-"` // the end of that run
}

// Profile is where a short profile of a host found the time of its CPUs.
type Profile struct {
	Event   string       `json:"event"` // cycles, cpu-clock
	Samples uint64       `json:"busy_samples_total"`
	Stages  []StageShare `json:"stages"` // most time first
	// Work is what the CPUs did for packets, most time first: copy, checksum, memory.
	Work      []StageShare    `json:"work,omitempty"`
	Functions []FunctionShare `json:"functions,omitempty"` // most time first
	Spinning  *StageShare     `json:"spinning,omitempty"`  // a CPU waits for a lock and does nothing else
	// Waits are the places where most time is spent waiting for locks; nil: not counted.
	Waits []LockWait `json:"lock_waits,omitempty"`
}

// Share returns the sum of some stages, with the sums of the ends of their intervals.
func (p *Profile) Share(stages ...string) StageShare { return shares(p.Stages, stages) }

// WorkShare is [Profile.Share] of kinds of work.
func (p *Profile) WorkShare(work ...string) StageShare { return shares(p.Work, work) }

func shares(all []StageShare, names []string) (sum StageShare) {
	for _, s := range all {
		if slices.Contains(names, s.Name) {
			sum.Share, sum.Low, sum.High = sum.Share+s.Share, sum.Low+s.Low, min(1, sum.High+s.High)
		}
	}
	return sum
}

// FunctionShare is a function of the kernel with the stage that it belongs to.
type FunctionShare struct {
	StageShare
	Stage string `json:"stage"`
}

// LockWait is waiting for locks of one kind at one place.
type LockWait struct {
	Kind      string  `json:"kind"`     // spinlock, mutex
	Function  string  `json:"function"` // that waits
	Callers   string  `json:"callers"`  // the nearest first
	Stage     string  `json:"stage"`
	PerSecond float64 `json:"waits_per_second"`
	Ratio     float64 `json:"time_ratio"` // of one CPU's time
}

// StageShare is a stage of the network path, or work outside of it, and its share of the busy time
// with the ends of its 95 % interval.
type StageShare struct {
	Name  string  `json:"name"`
	Share float64 `json:"share_ratio"`
	Low   float64 `json:"share_low_ratio"`
	High  float64 `json:"share_high_ratio"`
}

// Watched returns the span of a host that was observed without a test run.
func Watched(side string, snapshot *host.Snapshot, w *watch.Span) Span {
	s := Span{Side: side, Host: snapshot, Seconds: w.Seconds, Interrupts: w.Interrupts, PerCPU: w.CPUs,
		Sockets: w.Sockets}
	if w.Counters != nil {
		s.Counters = w.Counters.Values
	}
	for _, c := range w.CPUs {
		s.CPUs = append(s.CPUs, c.CPUTimes)
	}
	return s
}

// SpansOf returns every host and period of a case: those of the loaded runs first, then those of
// other runs and probes, then those that were watched.
func SpansOf(c *Case) []*Span {
	var loaded, others, watched []*Span
	add := func(r *Run, profiled bool) {
		near, far := c.ends(r)
		into := &others
		if r.Test == traffic.Stream {
			into = &loaded
		}
		for _, e := range []End{near, far} {
			s := &Span{
				Side: e.Name, Host: e.Host, Seconds: r.DurationSeconds, Counters: e.Run.Counters, CPUs: e.Run.CPUs,
				Run: r, End: &e,
			}
			if profiled {
				s.Profile = c.Profiles[e.Name]
			}
			*into = append(*into, s)
		}
	}
	for i := range c.Runs {
		add(&c.Runs[i], c.Runs[i].Test == traffic.Stream)
	}
	for _, p := range sortedProbes(c.Probes) {
		r := c.Probes[p]
		add(&r, false)
	}
	for i := range c.Watched {
		watched = append(watched, &c.Watched[i])
	}
	return append(append(loaded, others...), watched...)
}

// ends returns the two ends of a run, each with its NIC.
func (c *Case) ends(r *Run) (near, far End) {
	near = End{Name: "near", Host: c.Near, Run: r.Ends.Local}
	far = End{Name: "far", Host: c.Far, Run: r.Ends.Remote}
	near.Card, near.Routes = towards(c.Near, c.Far, c.FarAddress)
	far.Card, far.Routes = towards(c.Far, c.Near, c.NearAddress)
	return near, far
}

// Loaded reports whether a stream of a test loaded the host in this span.
func (s *Span) Loaded() bool { return s.Run != nil && s.Run.Test == traffic.Stream }

// mostInOne is the payload of the largest packet inside a host, in bytes: what segmentation and
// aggregation bundle by default (GSO_LEGACY_MAX_SIZE). One that is dropped costs all its segments.
const mostInOne = 65536

// FewFor reports whether that many dropped packets are too few to be why the run of the span
// retransmitted what it did, even if each of them was as large as packets get. Without a run, or
// without its senders' counts, nothing says so.
func (s *Span) FewFor(dropped float64) bool {
	if !s.Loaded() {
		return false
	}
	var again, mss float64
	for _, e := range []traffic.End{s.Run.Ends.Local, s.Run.Ends.Remote} {
		for _, t := range e.TCP {
			if t.Sender {
				again += max(float64(t.RetransSegs)-float64(t.DSACKDups), 0)
				mss = max(mss, float64(t.SndMSSBytes))
			}
		}
	}
	return dropped*InOne(mss) < 0.2*again
}

// InOne returns how many segments of this size the largest packet inside a host holds; of an
// unknown size (0), of the usual one.
//
// Queueing disciplines and backlogs count such a bundle as one drop (qdisc_qstats_drop,
// enqueue_to_backlog), unless they divide it first: tbf if it exceeds the burst (tbf_segment), cake
// and taprio. Behind a tbf that does not, 481 drops cost 19 866 segments on Linux 6.18. NICs count
// frames.
func InOne(mss float64) float64 {
	if mss <= 0 {
		mss = 1448
	}
	return max(math.Floor(mostInOne/mss), 1)
}

// Count returns the increase of one counter; 0 also where the kernel does not have it.
func (s *Span) Count(name string) float64 { return float64(s.Counters[name]) }

// Sum adds up all counters with this prefix and suffix: Sum("nic.", ".rx_missed_errors") covers all
// interfaces.
func (s *Span) Sum(prefix, suffix string) float64 {
	var sum float64
	for name, n := range s.Counters {
		if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) {
			sum += float64(n)
		}
	}
	return sum
}

// PerSecond returns n as a rate over the span; 0 if the length of the span is unknown.
func (s *Span) PerSecond(n float64) float64 {
	if s.Seconds <= 0 {
		return 0
	}
	return n / s.Seconds
}

// Bytes returns what the host moved in the span: the payload of the run, or without a run the bytes
// of its physical interfaces in both directions.
//
// Interfaces stacked on top of others count the same bytes again, so virtual ones count only on a
// host without physical ones.
func (s *Span) Bytes() float64 {
	if s.Run != nil {
		return float64(s.Run.Bytes)
	}
	if s.Host == nil {
		return s.Sum("nic.", ".rx_bytes") + s.Sum("nic.", ".tx_bytes")
	}
	var physical, virtual float64
	for i := range s.Host.Interfaces {
		x := &s.Host.Interfaces[i]
		n := s.Count("nic."+x.Name+".rx_bytes") + s.Count("nic."+x.Name+".tx_bytes")
		switch {
		case x.Kind == "loopback":
		case x.Virtual:
			virtual += n
		default:
			physical += n
		}
	}
	if physical > 0 {
		return physical
	}
	return virtual
}

// PerGigabyte returns n per 10⁹ bytes that the host moved, the measure for comparing losses; 0 if
// nothing moved.
func (s *Span) PerGigabyte(n float64) float64 {
	if b := s.Bytes(); b > 0 {
		return n / (b / 1e9)
	}
	return 0
}

// Source returns a counter of this span as the source of a piece of evidence.
func (s *Span) Source(counter string) string { return counter + " (" + s.Side + ")" }

// Setting returns one value of the host's snapshot.
func (s *Span) Setting(name string) (string, bool) { return End{Host: s.Host}.Setting(name) }

// Number returns a setting, or the given field of a setting with several, as a number.
func (s *Span) Number(name string, field int) (float64, bool) {
	return End{Host: s.Host}.Number(name, field)
}

// When returns the period of the span for use in a sentence: "during the test", "in 3.0 s", "since
// boot 41 d ago".
func (s *Span) When() string {
	switch {
	case s.SinceBoot && s.Seconds > 0:
		return "since boot " + Seconds(s.Seconds) + " ago"
	case s.SinceBoot:
		return "since boot"
	case s.Run != nil:
		return "during the test"
	case s.Seconds > 0:
		return "in " + Seconds(s.Seconds)
	}
	return "while watched"
}

// ClassRatios are the parts of one CPU's time in the span. Known is false if nothing was counted.
type ClassRatios struct {
	CPU                                     int
	User, System, IRQ, SoftIRQ, Steal, Idle float64
	Nice                                    float64 // of User: programs of a lower priority
	Known                                   bool
}

// Busy returns the part of the time in which the CPU was not idle. Time that the hypervisor took
// away counts as busy.
func (c ClassRatios) Busy() float64 { return 1 - c.Idle }

// Classes returns every CPU's time by class, in the order of the kernel. It leaves out the sum over
// all CPUs (CPU −1).
func (s *Span) Classes() []ClassRatios {
	var all []ClassRatios
	for _, t := range s.CPUs {
		total := t.Total()
		if t.CPU < 0 || total <= 0 {
			continue
		}
		all = append(all, ClassRatios{
			CPU: t.CPU, User: t.User / total, Nice: t.Nice / total, System: t.System / total, IRQ: t.IRQ / total,
			SoftIRQ: t.SoftIRQ / total, Steal: t.Steal / total,
			Idle: t.Idle / total, Known: true,
		})
	}
	return all
}

// BusiestBy returns the CPU for which part is largest; Known is false if the span has none.
func (s *Span) BusiestBy(part func(ClassRatios) float64) ClassRatios {
	var worst ClassRatios
	for _, c := range s.Classes() {
		if !worst.Known || part(c) > part(worst) {
			worst = c
		}
	}
	return worst
}

// sortedProbes returns the names of the probes in sorted order, so that a verdict does not depend
// on the order of a map.
func sortedProbes(m map[Probe]Run) []Probe { return slices.Sorted(maps.Keys(m)) }
