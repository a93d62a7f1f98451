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

// Far is the host at the other end as this package needs it; package peer has the real one, and
// package reach the one that runs another program.
//
// It is as small as a diagnosis needs, so that tests of the loop play a far host in a few lines.
// Run means a whole test: the near end does its half by itself.
type Far interface {
	// Snapshot is nil without an error for a host that cannot be asked.
	Snapshot(ctx context.Context) (*host.Snapshot, error)
	Run(ctx context.Context, spec traffic.Spec, progress func(traffic.Interval)) (*traffic.Result, error)
}

// Verdict is what limits a path or a host, with the whole case that it rests on.
//
// The case is kept beside the findings: a document shows the runs, a tune takes its figures before
// from them, and who does not believe the verdict can have the same case judged again.
type Verdict struct {
	evidence.Case
	Findings []evidence.Finding // most important first; never empty
	Blind    []diagnose.Blind   // what could not be seen
}

// Limit is the most important finding.
//
// There always is one, because diagnose.Examine never answers with nothing.
func (v *Verdict) Limit() evidence.Finding { return v.Findings[0] }

// echoes tells whether the path answered pings.
func (v *Verdict) echoes() bool {
	return slices.ContainsFunc(v.Runs, func(r traffic.Result) bool { return r.Test == traffic.Ping })
}

// cards are the names of those that carry the load, near and far; empty: not known.
func (v *Verdict) cards() (names [2]string) {
	for i, side := range []tune.Side{tune.Near, tune.Far} {
		if card := v.cardOf(side); card != nil {
			names[i] = card.Name
		}
	}
	return names
}

// Stream is the loaded run the verdict rests on.
func (v *Verdict) Stream() *traffic.Result {
	for i := range v.Runs {
		if v.Runs[i].Test == traffic.Stream {
			return &v.Runs[i]
		}
	}
	return nil
}

// DiagnoseOptions say how to load the path. Zero values are sensible.
type DiagnoseOptions struct {
	Root      host.Root
	Direction traffic.Direction // default up
	Streams   int               // default 1
	Duration  time.Duration     // of the loaded part, default 3 s
	// of the whole verdict: a probe that would end later is not begun; default 13.5 s, and more for
	// a longer Duration
	Within   time.Duration
	Progress func(step string)

	// Known is an earlier verdict on the same path, whose idle round trips and transactions still
	// hold: they are not made again, and the load begins after as long as it took to become steady
	// then. Nil: everything is measured.
	Known *Verdict
}

// after are the options for judging again, once a change was kept that the goal is improved by.
// Where the goal is what waits between packets, none of it is known any more; else the idle path is
// the same, and only the load has changed.
func (o DiagnoseOptions) after(v *Verdict, g goal.Goal) DiagnoseOptions {
	if g != goal.Latency {
		o.Known = v
	}
	return o
}

// least is what judging again takes at least, where nothing is slow to begin and no rule asks for
// more.
func (o DiagnoseOptions) least(v *Verdict) time.Duration {
	o.defaults()
	least := warmUpFor(v) + o.Duration + setUp
	if o.Known == nil {
		least += idleRuns
	}
	return least
}

// idleRuns is what the runs take that a verdict has before the loaded one.
const idleRuns = 3 * time.Second

// A verdict is promised within fifteen seconds. The connection that it is made over takes more than
// one of them where a round trip takes 300 ms. The runs that it always has take three seconds
// beside the loaded one, and as long again where the stream is slow to find its steady state; what
// is left is for probes.
const (
	within = 13500 * time.Millisecond
	// between the pings that run beside the load: twenty a second disturb nothing, and sixty are
	// enough for a median
	beside       = 50 * time.Millisecond
	loadDuration = 3 * time.Second
)

// Three seconds are six interim rates of half a second, enough for the rules that look at how flat
// a rate is (four at least), and some tens of round trips even across an ocean.
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

// Diagnose loads the path, judges what limits it, and runs the probes that rules ask for before
// they answer. It changes nothing on either host.
//
// The order matters. Snapshots come first, because a load changes some of what they show; the idle
// round trip and the transactions come before the load, since queues on the path take time to
// empty; and the loaded run comes last of those that every verdict has. What rules want beyond that
// is run after it, one after the other, in at most two rounds.
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
		// Twenty round trips in a second, with the 56 bytes of payload that ping(8) sends: the
		// smallest of them is what the rules use, so that a few suffice.
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
	// A negative warm-up lets the engine find the steady part by itself.
	load.Duration, load.WarmUp, load.Streams = o.Duration, -1, o.Streams
	if echoes {
		// The kernel's round trip of the flow itself holds its own segments' wait at the receiver;
		// an echo beside it holds the path's queues alone.
		load.ProbeGap = beside
	}
	if err := d.load(ctx, load); err != nil {
		return nil, err
	}
	return v, d.verdict(ctx)
}

// again takes over what is known of the idle path, and loads it anew. The start is cut off by its
// length and not by a search, since how long a flow of this path needs is known as well.
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

// verdict judges what was run.
func (d *diagnosis) verdict(ctx context.Context) error {
	last := d.v.Runs[len(d.v.Runs)-1]
	d.v.NearAddress, d.v.FarAddress = last.LocalAddress, last.RemoteAddress
	return d.examine(ctx)
}

// longPath is a round trip beside which no timer of a host can be seen: moderation has at most some
// milliseconds, and a delayed acknowledgement forty. Each run costs such a path several round
// trips, and the verdict is promised within a time.
const longPath = 0.1

// transactions are requests and responses of one byte: what waits for a timer shows where nothing
// else is under way.
func (d *diagnosis) transactions(ctx context.Context) error {
	if rtt := roundTrip(d.v); rtt.Seconds() >= longPath {
		d.refuse(runTransactions, fmt.Sprintf("not tried: a round trip of %v hides every timer that it could show",
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

// load runs the stream. A far end that cannot be loaded at all is judged by what it answers; one
// that answers nothing is not judged.
func (d *diagnosis) load(ctx context.Context, spec traffic.Spec) error {
	r, err := d.far.Run(ctx, spec, nil)
	switch {
	case err == nil:
		d.v.Runs = append(d.v.Runs, *r)
		return nil
	case d.v.Far != nil || !errors.Is(err, traffic.ErrBadSpec):
		return err
	case spec.Direction != traffic.Up || spec.Streams > 1:
		return err // asked for in so many words
	case len(d.v.Runs) == 0:
		return d.silence
	}
	d.refuse(runStream, err.Error())
	// Nothing that a rule could look at asks for it, and it is the one thing beside round trips
	// that echoes tell.
	return d.probe(ctx, evidence.ProbeMTU)
}

// The runs that every verdict has beside the loaded one, as [evidence.Case.Refused] names them
// where they could not be made.
const (
	runPing         evidence.Probe = "ping"
	runTransactions evidence.Probe = "rr"
	runStream       evidence.Probe = "stream"
)

// diagnosis is one verdict under way.
type diagnosis struct {
	far   Far
	o     DiagnoseOptions
	v     *Verdict
	until time.Time // the verdict is promised

	silence error // of the first run, if it could not be made
}

// light runs what sharpens a verdict and is not needed for one: a firewall that drops echoes is no
// reason to stop, and no reason to keep silent about it.
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

// refuse notes why a run could not be made.
func (d *diagnosis) refuse(name evidence.Probe, why string) {
	// The mark of a test that makes no sense is for errors.Is; who reads it needs the reason alone.
	why = strings.TrimPrefix(why, traffic.ErrBadSpec.Error()+": ")
	if d.v.Refused == nil {
		d.v.Refused = make(map[evidence.Probe]string)
	}
	d.v.Refused[name] = why
}

// stream is a loaded run as every stream of a verdict is made.
func (d *diagnosis) stream() traffic.Spec {
	return traffic.Spec{
		Test: traffic.Stream, Direction: d.o.Direction, Streams: 1, Interval: 500 * time.Millisecond,
		// What programs get: nearly all of them copy every byte. Without the copies a host looks
		// faster than anything that runs on it.
		SendMethod: engine.SendCopy, ReceiveMethod: engine.ReceiveCopy,
	}
}
