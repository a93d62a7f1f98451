package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/diagnose"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/traffic"
)

// rounds is how often probes run and the case is judged again: an answer may raise one more
// question, and a third round would only serve undecided rules.
const rounds = 2

const (
	// probeDuration is the measured time of a probe: three interim rates.
	probeDuration = 1500 * time.Millisecond
	// setUp is the time to open and close a run besides its own, without the round trips of the
	// path.
	setUp = 200 * time.Millisecond
	// objectBytes and objectPause make slow start after idle visible: the pause outlasts the
	// retransmission timer, at least 200 ms (TCP_RTO_MIN of Linux), and an object is many times the
	// initial window of ten segments.
	objectBytes = 256 << 10
	objectPause = 250 * time.Millisecond
	// mtuTime is the time of a search for the path MTU if the path silently drops large packets;
	// otherwise it takes some round trips.
	mtuTime = 2 * time.Second
)

// examine judges the case, runs the probes that rules want, and judges again.
func (d *diagnosis) examine(ctx context.Context) error {
	for round := 0; ; round++ {
		judged := diagnose.Examine(d.v.Case)
		d.v.Findings, d.v.Blind = judged.Findings, judged.Blind
		if len(judged.Wanted) == 0 || round == rounds {
			return d.sample(ctx)
		}
		for _, p := range judged.Wanted {
			if err := d.probe(ctx, p); err != nil {
				return err
			}
		}
	}
}

// probe runs one probe. It refuses a probe that does not fit into the remaining time, or that
// fails, with the reason; its error is only that of ctx.
func (d *diagnosis) probe(ctx context.Context, p evidence.Probe) error {
	spec, why, err := d.specOf(p)
	if err != nil {
		d.refuse(p, err.Error())
		return nil
	}
	left := time.Until(d.until)
	if needs := d.timeOf(spec); needs > left {
		d.refuse(p, fmt.Sprintf("no time: it takes about %.1f s, and %.1f s of the verdict's %v were left",
			needs.Seconds(), max(left, 0).Seconds(), d.o.Within))
		return nil
	}
	d.o.Progress(fmt.Sprintf("probing %s: %s", p, why))
	// A probe that takes far too long must not delay the verdict.
	inner, cancel := context.WithDeadline(ctx, d.until)
	defer cancel()
	r, err := d.far.Run(inner, spec, nil)
	switch {
	case err == nil:
		if d.v.Probes == nil {
			d.v.Probes = make(map[evidence.Probe]traffic.Result)
		}
		d.v.Probes[p] = *r
	case ctx.Err() != nil:
		return err
	case errors.Is(err, context.DeadlineExceeded):
		d.refuse(p, fmt.Sprintf("it had not ended when the verdict's %v were over", d.o.Within))
	default:
		d.refuse(p, err.Error())
	}
	return nil
}

// specOf returns the test of a probe and its purpose in words, for progress. All probes use the
// direction of the slowest flow, because that one is in question.
func (d *diagnosis) specOf(p evidence.Probe) (spec traffic.Spec, why string, err error) {
	stream := d.stream()
	stream.Duration, stream.WarmUp = probeDuration, d.warmUp()
	var rate float64
	if flows := evidence.FlowsOf(&d.v.Case); len(flows) > 0 {
		stream.Direction, rate = flows[0].Direction, flows[0].RateBitsPerSec
	}
	datagrams := traffic.Spec{Test: traffic.UDP, Direction: stream.Direction, Streams: 1, Duration: probeDuration,
		Interval: probeDuration}
	small := traffic.Spec{Direction: traffic.Up, Streams: 1, Duration: probeDuration, WarmUp: 100 * time.Millisecond,
		Interval: probeDuration}
	switch p {
	case evidence.ProbeMTU:
		return traffic.Spec{Test: traffic.MTU, Direction: traffic.Up, Streams: 1},
			"which packets pass unfragmented?", nil
	case evidence.ProbeStreams:
		stream.Streams = 8
		return stream, "does the path carry more with eight streams?", nil
	case evidence.ProbeUDP, evidence.ProbePaced:
		if rate <= 0 {
			return spec, "", errors.New("no reference rate: the loaded run moved nothing")
		}
		if p == evidence.ProbeUDP {
			datagrams.RateBitsPerSec = 0.5 * rate
			return datagrams, "does the path lose datagrams at half the rate?", nil
		}
		stream.RateBitsPerSec = 0.8 * rate
		return stream, "does the path lose segments below the rate?", nil
	case evidence.ProbeReverse:
		stream.Direction = map[traffic.Direction]traffic.Direction{traffic.Up: traffic.Down,
			traffic.Down: traffic.Up}[stream.Direction]
		return stream, "is the other direction the same?", nil
	case evidence.ProbeConnect:
		small.Test, small.RequestBytes, small.ResponseBytes = traffic.CRR, 1, 1
		return small, "do successive connections succeed?", nil
	case evidence.ProbeObjects:
		small.Test, small.RequestBytes, small.ResponseBytes, small.Gap = traffic.RR, 1, objectBytes, objectPause
		return small, "does a connection restart slowly after a pause?", nil
	}
	if name, ok := strings.CutPrefix(string(p), "congestion:"); ok && name != "" {
		stream.Congestion = name
		return stream, "does " + name + " carry more?", nil
	}
	return spec, "", fmt.Errorf("this version knows no probe %q", p)
}

// warmUp returns how long a stream of a probe may take to leave slow start, bounded because a probe
// takes two seconds at most.
func (d *diagnosis) warmUp() time.Duration {
	return clamp(warmUpRoundTrips*roundTrip(d.v), 200*time.Millisecond, 500*time.Millisecond)
}

// timeOf estimates the time of a run: its own times, and the round trips to open and close it (five
// of the control protocol, one of TCP).
func (d *diagnosis) timeOf(spec traffic.Spec) time.Duration {
	t := setUp + 6*roundTrip(d.v)
	if spec.Test == traffic.MTU {
		return t + mtuTime
	}
	if d.v.Far == nil {
		// Other programs measure whole seconds, and omit one at the start.
		return t + (spec.Duration + time.Second - 1).Truncate(time.Second) + time.Second
	}
	return t + spec.Duration + max(spec.WarmUp, 0)
}
