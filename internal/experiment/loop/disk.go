package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/standstill"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/disks"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/storage"
	"github.com/linerate/linerate/internal/storage/layers"
)

// DiskGoal is what the tune of a disk improves.
type DiskGoal string

// The goals of a disk.
const (
	DiskThroughput DiskGoal = "throughput" // sequential reads through the page cache, as programs do them
	DiskLatency    DiskGoal = "latency"    // single random reads
	DiskOperations DiskGoal = "operations" // random reads with as many in flight as the disk can use
)

// DiskGoals returns all goals of a disk.
func DiskGoals() []DiskGoal { return []DiskGoal{DiskThroughput, DiskLatency, DiskOperations} }

// Unit returns the unit of a goal's figures, in the form of a document key.
func (g DiskGoal) Unit() string {
	if g == DiskThroughput {
		return "bytes_per_second"
	}
	return "operations_per_second"
}

// Disk is an open file or device. Implementations: storage.Session, and a simulated disk.
type Disk interface {
	Run(ctx context.Context, spec storage.Spec, progress func(storage.Sample)) (*storage.Result, error)
	Climb(ctx context.Context, spec storage.Spec, step func(storage.Rung), progress func(storage.Sample)) (*storage.Result,
		error)
}

// The guard-rails of a disk.
const (
	guardOperationP99 = "latency_p99_seconds"
	guardOperationCPU = "cpu_seconds_per_operation"
)

// diskSegment is the default length of a segment. It is some hundred operations of the slowest
// disk.
const diskSegment = time.Second

// TuneDisk is Tune for a disk of this host: it measures, judges, and tries the settings of the
// disk's queue that the findings propose, or that o.Wide names. It uses the options that are not
// about a network. The result has the findings in Before.
func TuneDisk(ctx context.Context, near tune.Host, disk Disk, subject storage.Subject, g DiskGoal,
	o TuneOptions) (*Tuning, error) {
	began := time.Now()
	o.defaults()
	if o.Segment == 0 {
		o.Segment = diskSegment
	}
	p := &diskProber{disk: disk, spec: g.spec(o.Segment)}
	v := &Verdict{}
	var err error
	o.Step("reading this host")
	if v.Near, err = o.Root.Snapshot(ctx); err != nil {
		return nil, fmt.Errorf("read this host: %w", err)
	}
	from := time.Now()
	results, still, err := p.diagnose(ctx, g, o.Step)
	if err != nil {
		return nil, err
	}
	judged := time.Since(from)
	found := disks.Findings(subject, results)
	v.Findings = withHealth(found, subject)
	t := &Tuning{Before: v}
	if whose := notTheDisk(results); whose != "" {
		t.Outcome = nothingToTune(v, "")
		t.Outcome.Reason = fmt.Sprintf("nothing to tune: the figures are those of %s, which no setting of the disk changes",
			whose)
		return t, nil
	}
	candidates := diskCandidates(ctx, subject, v.Findings, near, o)
	if len(candidates) == 0 {
		t.Outcome = nothingToTune(v, "")
		switch {
		case len(found) == 0 && still > mostStill: // a knob that the user named is tried all the same
			v.Findings, t.Outcome.Unreliable = nil, true
			t.Outcome.Reason = fmt.Sprintf("the bench is too disturbed to judge the disk: this machine stopped the test "+
				"for %s of its time", unit.FormatPercent(still))
		case len(o.Wide) > 0:
			t.Outcome.Reason = "nothing to tune: the disk has none of the requested knobs with another level to try " +
				"within --allow"
		}
		return t, nil
	}
	refused := o.refusals(v, near)
	t.Plan = &Plan{Objective: string(g), Segment: o.Segment, each: o.Segment + diskOverhead}
	t.Plan.fill(ctx, o, candidates, refused, map[tune.Side]reader{tune.Near: near})
	o.Planned(t.Plan)
	if o.DryRun || t.Plan.Open() == 0 {
		t.Outcome = t.Plan.nothingTried(o.DryRun)
		return t, nil
	}
	config := o.config(began)
	config.Lookup = knob.Catalogue().Lookup
	// More read-ahead makes a few reads wait for a long one, so only the goals of single operations
	// bound the tail.
	config.Guards = map[string]tune.Guard{guardOperationCPU: {Bound: 1, Floor: 50e-6}}
	if g != DiskThroughput {
		config.Guards[guardOperationP99] = tune.Guard{Bound: 1, Floor: 1e-3}
	}
	config.Refuse = func(c tune.Candidate) string { return refused.of(ctx, c) }
	if o.Checkpoint != nil {
		config.Checkpoint = func(so *tune.Outcome) { o.Checkpoint(&Tuning{Before: v, Plan: t.Plan, Outcome: so}) }
	}
	config.Refill = func(ctx context.Context, _ []tune.Change) ([]tune.Candidate, bool, error) {
		if left, bounded := o.timeToJudge(began, t.Plan); bounded && left < judged {
			o.Step("no time to judge the disk again")
			return nil, false, nil // the waiting candidates can still be tried
		}
		again, _, err := p.diagnose(ctx, g, o.Step)
		if err != nil {
			return nil, false, fmt.Errorf("judge again after a keep: %w", err)
		}
		return diskCandidates(ctx, subject, disks.Findings(subject, again), near, o), false, nil
	}
	t.Outcome, err = tune.Run(ctx, config, p, map[tune.Side]tune.Host{tune.Near: near}, candidates, o.Progress)
	if t.Outcome != nil {
		t.Changes = changesOf(t.Outcome)
	}
	return t, err
}

// diskOverhead is about what a segment takes beside its measured part: to drop the pages of the
// file and to read the counters.
const diskOverhead = 50 * time.Millisecond

// smallRead is what a program asks for at a time in the throughput goal. The kernel reads at least
// what is asked for, so larger reads hide a read-ahead that is too small.
const smallRead = 16 << 10

// spec returns the test of a segment.
func (g DiskGoal) spec(segment time.Duration) storage.Spec {
	s := storage.Spec{Duration: segment, Interval: segment}
	switch g {
	case DiskThroughput:
		s.Test, s.Way, s.BlockBytes = storage.SequentialRead, storage.Dropped, smallRead
	default:
		s.Test, s.Way = storage.RandomRead, storage.Auto
	}
	return s
}

// diskProber measures segments of one test.
type diskProber struct {
	disk Disk
	spec storage.Spec
}

const (
	// mostStill is the share of a test's time in which the test may stand still. A disk that waits for
	// its program looks slow, in every way of reading alike: then no way is found to be the faster.
	mostStill = 0.1
	// stillTries is how often such a test is made again.
	stillTries = 3
	// glance is the time between two looks at the clock. A look that is late by less than that is not
	// counted: it waited for the test's own threads.
	glance = 10 * time.Millisecond
)

// diagnose runs what the rules need for a goal, and returns the largest share of a test in which it
// stood still. For operations it finds the depth of the segments.
func (p *diskProber) diagnose(ctx context.Context, g DiskGoal, step func(string)) (results []storage.Result,
	still float64, err error) {
	specs := []storage.Spec{p.spec}
	if g == DiskThroughput { // read directly as well: what the disk does without read-ahead
		direct := p.spec
		direct.Way, direct.BlockBytes = storage.Auto, 0
		specs = append(specs, direct)
	}
	for _, spec := range specs {
		var r *storage.Result
		var stood float64
		for range stillTries {
			step(fmt.Sprintf("%s, %s", spec.Test, spec.Way))
			if r, stood, err = p.watched(ctx, g, spec); err != nil {
				return nil, 0, err
			}
			if stood <= mostStill {
				break
			}
		}
		results, still = append(results, *r), max(still, stood)
	}
	return results, still, nil
}

// watched runs one test, and returns the share of its time in which this process stood still.
func (p *diskProber) watched(ctx context.Context, g DiskGoal, spec storage.Spec) (r *storage.Result, still float64,
	err error) {
	var stood time.Duration
	began := time.Now()
	end := standstill.Watch(glance, func(took time.Duration) { stood += max(took-2*glance, 0) })
	if g == DiskOperations {
		spec.Depth = 0
		if r, err = p.disk.Climb(ctx, spec, nil, nil); err == nil {
			p.spec.Depth = r.Knee
		}
	} else {
		r, err = p.disk.Run(ctx, spec, nil)
	}
	end() // the longest does not matter
	return r, stood.Seconds() / time.Since(began).Seconds(), err
}

// mostOfOthers is the share of other programs at the device beside which a segment shows nothing.
const mostOfOthers = 0.5

// Measure runs one segment.
func (p *diskProber) Measure(ctx context.Context) (tune.Observation, error) {
	r, err := p.disk.Run(ctx, p.spec, nil)
	if err != nil {
		return tune.Observation{}, err
	}
	o := tune.Observation{Objective: r.OperationsPerSec, Label: string(r.Test),
		Guards: map[string]float64{guardOperationCPU: r.CPUSecondsPerOp}}
	if p.spec.Test == storage.SequentialRead {
		o.Objective = r.ThroughputBytesPerSec
	}
	if r.Latency != nil {
		o.Guards[guardOperationP99] = r.Latency.P99
	}
	switch whose := notTheDisk([]storage.Result{*r}); {
	case whose != "":
		o.Discard = fmt.Sprintf("the figure is that of %s", whose)
	case r.OthersRatio > mostOfOthers:
		o.Discard = "other programs used the disk"
	}
	return o, nil
}

// notTheDisk returns whose figures results are if no setting of the disk's queue can change them,
// or nothing.
func notTheDisk(results []storage.Result) storage.Whose {
	for _, r := range results {
		if r.Whose != storage.Device && r.Whose != storage.ReadAhead {
			return r.Whose
		}
	}
	return ""
}

// withHealth adds the finding of a sound disk where there is no other.
func withHealth(findings []evidence.Finding, subject storage.Subject) []evidence.Finding {
	if len(findings) > 0 {
		return findings
	}
	return []evidence.Finding{{Code: evidence.Healthy, Severity: evidence.Info, Where: "near", Confidence: 0.6,
		Title: fmt.Sprintf("No setting of the disk below %s is a limit of these reads.", subject.Path)}}
}

// diskCandidates returns what findings propose, notices included: a finding about a disk rests on
// two measurements of this run. Then come the knobs that the user named, of the first layer with a
// queue.
func diskCandidates(ctx context.Context, subject storage.Subject, findings []evidence.Finding, near reader,
	o TuneOptions) []tune.Candidate {
	all := candidatesOf(findings, func(id knob.ID) bool { return o.Knobs == nil || o.Knobs(id) })
	i := slices.IndexFunc(subject.Stack.Layers, func(l layers.Layer) bool { return l.Queue != nil })
	if i < 0 {
		return all
	}
	for _, d := range o.Wide {
		if d.Advise || d.Disturbance > o.Allow || d.Pattern.Kind() != knob.KindBlock {
			continue
		}
		id := knob.ID(strings.Replace(string(d.Pattern), "*", subject.Stack.Layers[i].Name, 1))
		if o.Knobs != nil && !o.Knobs(id) ||
			slices.ContainsFunc(all, func(c tune.Candidate) bool { return c.Knob == id }) {
			continue
		}
		present, err := near.Read(ctx, id)
		if err != nil {
			continue // the disk does not have the knob
		}
		if levels := d.Levels(present); len(levels) > 0 {
			all = append(all, tune.Candidate{Knob: id, Side: tune.Near, Levels: levels, Why: "asked for by name"})
		}
	}
	return all
}
