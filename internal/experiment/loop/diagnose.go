package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// Far is the host at the other end as this package needs it: package peer has the real one, package
// reach one that runs another program.
//
// It is as small as a diagnosis needs, so that tests play a far host in a few lines. Run runs a
// whole test, including the half of the near end.
type Far interface {
	// Snapshot returns nil without an error for a host that cannot report one.
	Snapshot(ctx context.Context) (*host.Snapshot, error)
	Run(ctx context.Context, spec traffic.Spec, progress func(traffic.Interval)) (*traffic.Result, error)
}

// Verdict is what limits a path or a host, with the whole case behind it. A document shows the runs
// of the case, a tune compares with its figures, and a user who doubts the verdict can have the
// same case judged again.
type Verdict struct {
	evidence.Case
	Findings []evidence.Finding // most important first; never empty
	Blind    []diagnose.Blind   // gaps in the case
}

// Limit returns the most important finding. There always is one, because diagnose.Examine never
// returns an empty list.
func (v *Verdict) Limit() evidence.Finding { return v.Findings[0] }

// echoes reports whether the path answered pings.
func (v *Verdict) echoes() bool {
	return slices.ContainsFunc(v.Runs, func(r traffic.Result) bool { return r.Test == traffic.Ping })
}

// cards returns the names of the NICs that carry the load, near and far; empty if unknown.
func (v *Verdict) cards() (names [2]string) {
	for i, side := range []tune.Side{tune.Near, tune.Far} {
		if card := v.cardOf(side); card != nil {
			names[i] = card.Name
		}
	}
	return names
}

// Stream returns the loaded run behind the verdict; nil if there was none.
func (v *Verdict) Stream() *traffic.Result {
	for i := range v.Runs {
		if v.Runs[i].Test == traffic.Stream {
			return &v.Runs[i]
		}
	}
	return nil
}

// DiagnoseOptions configure a diagnosis. Zero values are sensible.
type DiagnoseOptions struct {
	Root      host.Root
	Direction traffic.Direction // default up
	Streams   int               // default 1
	Duration  time.Duration     // of the loaded part, default 3 s
	// time for the whole diagnosis: a probe that would end later does not run; default 13.5 s, and
	// more for a longer Duration
	Within   time.Duration
	Progress func(step string)
	// Samplers sample the processors of a side under one more load, where one of them is the limit;
	// nil: none.
	Samplers map[tune.Side]Sampler

	// Known is an earlier verdict on the same path whose idle round trips and transactions still
	// hold: they do not run again, and the warm-up of the load lasts as long as it took then. Nil:
	// everything is measured.
	Known *Verdict
}

// after returns the options for judging again after a keep. If the goal is latency, a kept change
// may have altered the idle path, so everything is measured again; otherwise only the load has
// changed.
func (o DiagnoseOptions) after(v *Verdict, g goal.Goal) DiagnoseOptions {
	if g != goal.Latency {
		o.Known = v
	}
	return o
}

// least returns the shortest time of a further diagnosis, without a slow start and without probes.
func (o DiagnoseOptions) least(v *Verdict) time.Duration {
	o.defaults()
	least := warmUpFor(v) + o.Duration + setUp
	if o.Known == nil {
		least += idleRuns
	}
	return least
}

// idleRuns is the time of the runs before the loaded one.
const idleRuns = 3 * time.Second

// A verdict is promised within fifteen seconds. Connecting takes more than one of them if a round
// trip takes 300 ms. The fixed runs take three seconds besides the loaded one, and as much again if
// the stream is slow to become steady; the rest is for probes.
const (
	within = 13500 * time.Millisecond
	// between the pings beside the load: twenty a second disturb nothing, and sixty suffice for a
	// median
	beside       = 50 * time.Millisecond
	loadDuration = 3 * time.Second
)

// defaults fills in the zero values. Three seconds give six interim rates of half a second, enough
// for the rules that judge how flat a rate is (at least four), and tens of round trips even across
// an ocean.
func (o *DiagnoseOptions) defaults() {
	if o.Direction == "" {
		o.Direction = traffic.Up
	}
	if o.Streams == 0 {
		o.Streams = 1
	}
	if o.Duration == 0 {
		o.Duration = loadDuration
	}
	if o.Within == 0 {
		o.Within = within + max(0, o.Duration-loadDuration)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// Diagnose loads the path, judges what limits it, and runs the probes that rules ask for. It
// changes nothing on either host.
//
// The order matters. Snapshots come first, because a load changes some of what they show. The idle
// round trip and the transactions come before the load, because queues on the path take time to
// empty. The loaded run is the last fixed one. Probes follow one after the other, in at most two
// rounds.
func Diagnose(ctx context.Context, far Far, o DiagnoseOptions) (*Verdict, error) {
	o.defaults()
	v := &Verdict{}
	d := &diagnosis{far: far, o: o, v: v, until: time.Now().Add(o.Within)}
	o.Progress("reading both hosts")
	var err error
	if v.Near, err = o.Root.Snapshot(ctx); err != nil {
		return nil, fmt.Errorf("read this host: %w", err)
	}
	if v.Far, err = far.Snapshot(ctx); err != nil {
		return nil, fmt.Errorf("read the far host: %w", err)
	}
	if o.Known != nil {
		return v, d.again(ctx)
	}
	o.Progress("idle round trip")
	echoes, err := d.light(ctx, runPing, traffic.Spec{
		// Twenty round trips in a second, with the 56 bytes of payload of ping(8). The rules use
		// the smallest, so a few suffice.
		Test: traffic.Ping, Direction: traffic.Up, Streams: 1,
		Duration: time.Second, Interval: time.Second, Gap: beside, RequestBytes: 56,
	})
	if err != nil {
		return nil, err
	}
	if err := d.transactions(ctx); err != nil {
		return nil, err
	}
	o.Progress(fmt.Sprintf("loading the path for %v", o.Duration))
	load := d.stream()
	// A negative warm-up lets the engine find the steady part itself.
	load.Duration, load.WarmUp, load.Streams = o.Duration, -1, o.Streams
	if echoes {
		// The kernel's round trip of the flow includes the wait of its own segments at the
		// receiver; an echo beside it measures only the queues of the path.
		load.ProbeGap = beside
	}
	if err := d.load(ctx, load); err != nil {
		return nil, err
	}
	return v, d.verdict(ctx)
}

// again reuses what is known of the idle path and loads it again. The length of the warm-up is
// fixed instead of searched, because it is known for this path as well.
func (d *diagnosis) again(ctx context.Context) error {
	d.v.Refused = maps.Clone(d.o.Known.Refused)
	maps.DeleteFunc(d.v.Refused, func(p evidence.Probe, _ string) bool { return p != runPing && p != runTransactions })
	for _, r := range d.o.Known.Runs {
		if r.Test != traffic.Stream {
			d.v.Runs = append(d.v.Runs, r)
		}
	}
	d.o.Progress(fmt.Sprintf("loading the path for %v", d.o.Duration))
	load := d.stream()
	load.Duration, load.WarmUp, load.Streams = d.o.Duration, warmUpFor(d.o.Known), d.o.Streams
	if d.o.Known.echoes() {
		load.ProbeGap = beside
	}
	if err := d.load(ctx, load); err != nil {
		return err
	}
	return d.verdict(ctx)
}

// verdict judges the runs so far.
func (d *diagnosis) verdict(ctx context.Context) error {
	last := d.v.Runs[len(d.v.Runs)-1]
	d.v.NearAddress, d.v.FarAddress = last.LocalAddress, last.RemoteAddress
	return d.examine(ctx)
}

// longPath is a round trip, in seconds, that hides every timer of a host: moderation takes at most
// some milliseconds, and a delayed acknowledgement forty. Each run costs such a path several round
// trips, and the time of a diagnosis is limited.
const longPath = 0.1

// transactions runs requests and responses of one byte: with nothing else in flight, they show what
// waits for a timer.
func (d *diagnosis) transactions(ctx context.Context) error {
	if rtt := roundTrip(d.v); rtt.Seconds() >= longPath {
		d.refuse(runTransactions, fmt.Sprintf("not tried: a round trip of %v hides every timer that this could show",
			rtt.Round(time.Millisecond)))
		return nil
	}
	d.o.Progress("requests and responses of one byte")
	_, err := d.light(ctx, runTransactions, traffic.Spec{
		Test: traffic.RR, Direction: traffic.Up, Streams: 1, Duration: time.Second, WarmUp: 100 * time.Millisecond,
		Interval:     time.Second,
		RequestBytes: 1, ResponseBytes: 1,
	})
	return err
}

// load runs the stream. If the far end cannot be loaded at all, its other answers are judged; if it
// answers nothing, there is no verdict.
func (d *diagnosis) load(ctx context.Context, spec traffic.Spec) error {
	r, err := d.far.Run(ctx, spec, nil)
	switch {
	case err == nil:
		d.v.Runs = append(d.v.Runs, *r)
		return nil
	case d.v.Far != nil || !errors.Is(err, traffic.ErrBadSpec):
		return err
	case spec.Direction != traffic.Up || spec.Streams > 1:
		return err // the user asked for it explicitly
	case len(d.v.Runs) == 0:
		return d.silence
	}
	d.refuse(runStream, err.Error())
	// No rule can ask for this probe, because its evidence is missing, and the path MTU is all that
	// echoes show beside round trips.
	return d.probe(ctx, evidence.ProbeMTU)
}

// The fixed runs beside the loaded one, by their names in [evidence.Case.Refused].
const (
	runPing         evidence.Probe = "ping"
	runTransactions evidence.Probe = "rr"
	runStream       evidence.Probe = "stream"
	runProfile      evidence.Probe = "profile"
)

// diagnosis is one diagnosis in progress.
type diagnosis struct {
	far   Far
	o     DiagnoseOptions
	v     *Verdict
	until time.Time // deadline of the verdict

	silence error // error of the first failed run
}

// light runs a test that sharpens a verdict but is not required: a firewall that drops echoes does
// not stop the diagnosis, and the gap is recorded.
func (d *diagnosis) light(ctx context.Context, name evidence.Probe, spec traffic.Spec) (made bool, err error) {
	r, err := d.far.Run(ctx, spec, nil)
	switch {
	case err == nil:
		d.v.Runs = append(d.v.Runs, *r)
		return true, nil
	case ctx.Err() != nil:
		return false, err
	}
	d.refuse(name, err.Error())
	if d.silence == nil {
		d.silence = err
	}
	return false, nil
}

// refuse records why a run could not be made.
func (d *diagnosis) refuse(name evidence.Probe, why string) {
	// The prefix is for errors.Is; the reader needs only the reason.
	why = strings.TrimPrefix(why, traffic.ErrBadSpec.Error()+": ")
	if d.v.Refused == nil {
		d.v.Refused = make(map[evidence.Probe]string)
	}
	d.v.Refused[name] = why
}

// stream returns the specification that all streams of a diagnosis share.
func (d *diagnosis) stream() traffic.Spec {
	return traffic.Spec{
		Test: traffic.Stream, Direction: d.o.Direction, Streams: 1, Interval: 500 * time.Millisecond,
		// Nearly all programs copy every byte. Without the copies a host looks faster than any
		// program on it.
		SendMethod: engine.SendCopy, ReceiveMethod: engine.ReceiveCopy,
	}
}
