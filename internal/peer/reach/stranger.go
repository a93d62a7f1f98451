package reach

import (
	"context"
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/dialect/icmp"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

// Stranger is a far host that runs the server of another program, or only a kernel that answers
// echo requests. All that is known of a flow is what the near end knows: its TCP_INFO where it
// sends, and its counters.
//
// A Stranger can be diagnosed like a host that runs linerate: it has the same two methods.
type Stranger struct {
	Host   string                         // name or address to which echo requests go
	Speak  traffic.Runner                 // runs a test in the program's dialect; nil: the host runs none
	Sample func() (*host.Counters, error) // of this host
	Name   string                         // of this host
}

// Snapshot returns nil: a Stranger does not report its configuration.
func (s Stranger) Snapshot(context.Context) (*host.Snapshot, error) { return nil, nil }

// Run runs pings and path MTU searches with echo requests, and every other test in the program's
// dialect. A test that neither can carry returns traffic.ErrBadSpec with the reason.
func (s Stranger) Run(ctx context.Context, spec traffic.Spec,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	switch {
	case spec.Test == traffic.Ping || spec.Test == traffic.MTU:
		r, err := icmp.Run(ctx, s.Host, spec, s.echoOptions())
		if err == nil || spec.Test == traffic.MTU || s.Speak == nil || ctx.Err() != nil {
			return r, err
		}
		// A program such as sockperf answers where a filter drops echo requests.
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

// speak runs a test in the program's dialect. It clears what no other program's protocol can
// express: how bytes are copied, and the length of the warm-up.
func (s Stranger) speak(ctx context.Context, spec traffic.Spec,
	progress func(traffic.Interval)) (*traffic.Result, error) {
	spec.SendMethod, spec.ReceiveMethod, spec.ProbeGap = "", "", 0
	if spec.WarmUp > 0 {
		spec.WarmUp = -1
	}
	return s.Speak(ctx, spec, progress)
}

// strangerWarmUp is the warm-up that other programs omit from their results, if they have one.
const strangerWarmUp = time.Second

// loaded runs a stream and sends echo requests beside it, because the program sends none but its
// kernel answers them. The requests begin after the warm-up and end before the stream does, so that
// none of them finds the path idle.
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
			r = nil // the stream is the test; its result shows that it has no round trips under load
		}
		answered <- r
	})
	r, err := s.speak(ctx, spec, progress)
	if err != nil {
		cancel()
	}
	// Requests that have not begun by now would measure an idle path.
	if begin.Stop() {
		return r, err
	}
	if echo := <-answered; err == nil && echo != nil {
		r.RTT = echo.RTT
	}
	return r, err
}
