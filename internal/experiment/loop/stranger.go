package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/dialect/icmp"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

// Stranger is a far host that runs the server of another program, or nothing but its kernel, which
// answers echo requests. What is known of a flow is what this end of it knows: its TCP_INFO where
// it sends, and its counters.
type Stranger struct {
	Host   string                         // name or address, to which echo requests go
	Speak  Runner                         // runs a test in the dialect of its program; nil: it runs none
	Sample func() (*host.Counters, error) // of this host
	Name   string                         // of this host
}

// Snapshot knows nothing of a stranger.
func (s Stranger) Snapshot(context.Context) (*host.Snapshot, error) { return nil, nil }

// Run runs what the far program has words for, and echoes without it. Anything else is
// traffic.ErrBadSpec, with a sentence that says why.
func (s Stranger) Run(ctx context.Context, spec traffic.Spec,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	switch {
	case spec.Test == traffic.Ping || spec.Test == traffic.MTU:
		r, err := icmp.Run(ctx, s.Host, spec, s.echoOptions())
		if err == nil || spec.Test == traffic.MTU || s.Speak == nil || ctx.Err() != nil {
			return r, err
		}
		// Programs of its own answer where kernels must not.
		spoken, spokenErr := s.speak(ctx, spec, progress)
		if spokenErr == nil {
			return spoken, nil
		}
		return nil, err
	case s.Speak == nil:
		return nil, fmt.Errorf("%w: %s has answered nothing but echo requests, so nothing can be sent through it",
			traffic.ErrBadSpec, s.Host)
	case spec.Test == traffic.Stream && spec.ProbeGap > 0:
		return s.loaded(ctx, spec, progress)
	}
	return s.speak(ctx, spec, progress)
}

func (s Stranger) echoOptions() icmp.ClientOptions {
	return icmp.ClientOptions{Sample: s.Sample, HostName: s.Name}
}

// speak leaves to the far program what a Spec of ours has beyond its words: how bytes are copied,
// and how long the start is that is cut off.
func (s Stranger) speak(ctx context.Context, spec traffic.Spec,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	spec.SendMethod, spec.ReceiveMethod, spec.ProbeGap = "", "", 0
	if spec.WarmUp > 0 {
		spec.WarmUp = -1
	}
	return s.Speak(ctx, spec, progress)
}

// loaded runs a stream with echoes beside it: the program has none, but the kernel that it runs on
// does. They begin when programs that cut off their start have done so, and end while those that do
// not still send, so that none of them finds the path idle.
func (s Stranger) loaded(ctx context.Context, spec traffic.Spec,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	long := spec.Duration - strangerWarmUp
	if long < spec.ProbeGap {
		return s.speak(ctx, spec, progress)
	}
	beside, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan *traffic.Result, 1)
	begin := time.AfterFunc(strangerWarmUp, func() {
		echoes := traffic.Spec{Test: traffic.Ping, Duration: long, Interval: long, Gap: spec.ProbeGap, RequestBytes: 56}
		r, err := icmp.Run(beside, s.Host, echoes, icmp.ClientOptions{HostName: s.Name})
		if err != nil {
			r = nil // the stream is what counts; that round trips under load are missing shows in its result
		}
		answered <- r
	})
	r, err := s.speak(ctx, spec, progress)
	if err != nil {
		cancel()
	}
	// What has not begun by now would ping an idle path.
	if begin.Stop() {
		return r, err
	}
	if echo := <-answered; err == nil && echo != nil {
		r.RTT = echo.RTT
	}
	return r, err
}

// strangerWarmUp is what other programs cut off their start, if they do.
const strangerWarmUp = time.Second
