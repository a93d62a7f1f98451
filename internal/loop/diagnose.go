package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// Far is the host at the other end as this package needs it; package peer has the real one.
//
// It is as small as a diagnosis needs, so that tests of the loop play a far host in a few lines. Run means a whole
// test: the near end does its half by itself.
type Far interface {
	Snapshot(ctx context.Context) (*host.Snapshot, error)
	Run(ctx context.Context, spec traffic.Spec, progress func(traffic.Interval)) (*traffic.Result, error)
}

// Verdict is what limits the path between two hosts, with everything the verdict rests on.
//
// Snapshots and runs are kept beside the findings: a document shows the runs, and a tune takes its figures before
// from them.
type Verdict struct {
	Near, Far *host.Snapshot
	Runs      []traffic.Result
	Findings  []diagnose.Finding
}

// Limit is the most important finding.
//
// There always is one, because diagnose.Judge never answers with nothing.
func (v *Verdict) Limit() diagnose.Finding { return v.Findings[0] }

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
	Progress  func(step string)
}

// Three seconds are six interim rates of half a second, enough for the rules that look at how flat a rate is (four at
// least), and some tens of round trips even across an ocean.
func (o *DiagnoseOptions) defaults() {
	if o.Direction == "" {
		o.Direction = traffic.Up
	}
	if o.Streams == 0 {
		o.Streams = 1
	}
	if o.Duration == 0 {
		o.Duration = 3 * time.Second
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// Diagnose loads the path once and judges what limits it. It changes nothing on either host.
//
// The order matters. Snapshots come first, because a load changes some of what they show; the idle round trip comes
// before the load, since queues on the path take time to empty; and the loaded run comes last, so that nothing is
// between it and the verdict.
func Diagnose(ctx context.Context, far Far, o DiagnoseOptions) (*Verdict, error) {
	o.defaults()
	o.Progress("reading both hosts")
	v := &Verdict{}
	var err error
	if v.Near, err = o.Root.Snapshot(ctx); err != nil {
		return nil, fmt.Errorf("read this host: %w", err)
	}
	if v.Far, err = far.Snapshot(ctx); err != nil {
		return nil, fmt.Errorf("read the far host: %w", err)
	}
	o.Progress("idle round trip")
	idle, err := far.Run(ctx, traffic.Spec{
		// Twenty round trips in a second, with the 56 bytes of payload that ping(8) sends: the smallest of them is
		// what the rules use, so that a few suffice.
		Test: traffic.Ping, Direction: traffic.Up, Streams: 1,
		Duration: time.Second, Interval: time.Second, Gap: 50 * time.Millisecond, RequestBytes: 56,
	}, nil)
	switch {
	case err == nil:
		v.Runs = append(v.Runs, *idle)
	case ctx.Err() != nil:
		return nil, err
	default:
		// The idle round trip sharpens the verdict but is not needed for one: a firewall that drops echoes is no reason to stop.
		v.Near.Warnings = append(v.Near.Warnings, "idle round trip: "+err.Error())
	}
	o.Progress(fmt.Sprintf("loading the path for %v", o.Duration))
	loaded, err := far.Run(ctx, traffic.Spec{
		Test: traffic.Stream, Direction: o.Direction, Streams: o.Streams,
		// A negative warm-up lets the engine find the steady part by itself.
		Duration: o.Duration, WarmUp: -1, Interval: 500 * time.Millisecond,
		// What programs get: nearly all of them copy every byte. Without the copies a host looks faster than anything that runs on it.
		SendMethod: engine.SendCopy, ReceiveMethod: engine.ReceiveCopy,
	}, nil)
	if err != nil {
		return nil, err
	}
	v.Runs = append(v.Runs, *loaded)
	v.Findings = diagnose.Judge(diagnose.Case{
		Near: v.Near, Far: v.Far, Runs: v.Runs, NearAddress: loaded.LocalAddress, FarAddress: loaded.RemoteAddress,
	})
	return v, nil
}
