package flows

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/traffic"
)

const (
	// shortRTT separates paths on which a loss-based control needs a few round trips to fill a link
	// from those on which it needs minutes. Below it, bbr is the suspect.
	shortRTT = 0.005
	// filledWindow is the part of the congestion window that must at least be in flight for the
	// window to limit the flow.
	filledWindow = 0.5
	// betterRate is how many times faster the other control must be. Two runs of one control on a
	// noisy bench differ by a quarter, and one of them had a queue to itself.
	betterRate = 1.5
	// soon is the time in seconds in which a loss-based control may catch up with the other: after
	// a loss it needs a while on any path, and a run of three seconds sees only that while. If it
	// needs minutes it never catches up, because the next loss comes first.
	soon = 10
)

// congestionControlMismatch finds that another algorithm is much faster on the same path at the
// same time.
//
// The rule needs a suspicion before it asks for a probe: the congestion window limits the flow, and
// no buffer, queue or host does. One stream with another control, which the sender sets for that
// socket alone, is then the proof. The rule compares a loss-based control on a long path with bbr,
// and bbr on a short path with cubic.
//
// The look-alikes have the same immediate remedy but another cause: a path that loses packets, a
// policer, reordering. Each of them mutes this finding.
func congestionControlMismatch(f *evidence.Flow) *evidence.Finding {
	if f.Streams == 0 || f.RateBitsPerSec <= 0 || f.Base() <= 0 || f.Congestion == "" {
		return nil
	}
	other := otherControl(f)
	if other == "" || f.Queued() || windowHeld(f) || f.CwndBytes <= 0 || f.InFlight() < filledWindow*f.CwndBytes ||
		smallSegments(f) > 0 {
		return nil
	}
	if _, repaired := f.TrueLoss(); droppedHere(f, repaired) {
		return nil
	}
	tried := probed(f, evidence.ProbeCongestion(other))
	if tried == nil || tried.Congestion != other {
		return nil
	}
	gain := tried.RateBitsPerSec / f.RateBitsPerSec
	wait := catchUp(f, tried.RateBitsPerSec/8*f.Base())
	if gain < betterRate || !f.ModelBased() && wait < soon {
		return nil
	}
	p, _ := f.TrueLoss()
	x := &evidence.Finding{
		Code: evidence.CongestionControlMismatch, Severity: evidence.Warning, Where: f.Sender.Name,
		Title: fmt.Sprintf("With %s the path carries %s; with %s, the control of the %s host, "+
			"it carries %s on a round trip of %s.",
			other, evidence.Rate(tried.RateBitsPerSec), f.Congestion, f.Sender.Name, evidence.Rate(f.RateBitsPerSec),
			evidence.Seconds(f.Loaded())),
		Evidence: append(f.Common(),
			evidence.Evidence{Name: "throughput with " + other, Value: tried.RateBitsPerSec, Unit: "bits_per_second",
				Source: "probe congestion:" + other},
			evidence.Evidence{Name: "round trip with " + other, Value: tried.Loaded(), Unit: "seconds",
				Source: "probe congestion:" + other + ", tcpi_rtt"},
			evidence.Evidence{Name: "congestion window, mean", Value: f.CwndBytes, Unit: "bytes",
				Source: f.TCPInfo("tcpi_snd_cwnd")},
			lossEvidence(f, p)),
		Rejected: append([]string{
			f.NotReceiveWindow(), f.NotSendBuffer(), f.NotQueue(),
			fmt.Sprintf("Not a slower link: with %s it carried %s times as much.", other, ratio(gain)),
		}, f.NotProcessor()...),
		Confidence: evidence.Combine(0.6, evidence.When(gain >= 2, 0.5), evidence.When(p < evidence.MinLoss, 0.3),
			evidence.When(f.Intervals >= 3, 0.2)),
	}
	if !f.ModelBased() {
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not an early stage of the start: %s needs %s more to open its window, even without a loss.",
				f.Congestion, evidence.Seconds(wait)))
	}
	x.Remedy.Text = fmt.Sprintf(
		"Use %s at the %s host (the sender), for all connections or for one route (congctl). "+
			"Before you use it across the Internet, check that the loss it causes is acceptable to other traffic.",
		other, f.Sender.Name)
	x.Remedy.Add(evidence.Candidate{Knob: evidence.TCPCongestionControl, Side: f.Sender.Name,
		Levels: []knob.Value{knob.Value(other)},
		Why:    "the sender decides, and new connections start with it"})
	x.Remedy.Proof = fmt.Sprintf(
		"Open new connections with %s and with %s alternately: the rates must differ, "+
			"and on a path of less than a millisecond they must not.",
		other, f.Congestion)
	return x
}

// catchUp returns how many seconds a loss-based window needs to grow to want bytes without a loss.
// reno adds one segment per round trip; cubic needs the cube root of the missing segments over 0.4
// (RFC 9438 §4.2). If the run shows faster growth, as in slow start, that growth counts.
func catchUp(f *evidence.Flow, want float64) float64 {
	var first, last traffic.Interval
	for _, i := range f.Run.Intervals {
		switch {
		case i.Omitted || i.CwndBytes <= 0:
		case first.CwndBytes == 0:
			first, last = i, i
		default:
			last = i
		}
	}
	now := cmp.Or(last.CwndBytes, f.CwndBytes)
	if f.MSSBytes <= 0 || now >= want {
		return 0
	}
	missing := (want - now) / f.MSSBytes / float64(f.Streams)
	wait := missing * f.Base()
	if f.Congestion == "cubic" {
		wait = min(wait, math.Cbrt(missing/0.4))
	}
	if grown, time := last.CwndBytes-first.CwndBytes, last.EndSeconds-first.EndSeconds; grown > 0 && time > 0 {
		wait = min(wait, (want-now)/(grown/time))
	}
	return wait
}

// otherControl returns the algorithm to compare with; empty if the kernel offers no promising one.
func otherControl(f *evidence.Flow) string {
	available := f.Sender.CongestionControls()
	has := func(name string) bool { return slices.Contains(available, name) }
	switch {
	case f.ModelBased() && f.Base() < shortRTT && has("cubic"):
		return "cubic"
	case f.ModelBased() || f.Base() < shortRTT:
		return ""
	case has("bbr"):
		return "bbr"
	case f.Congestion != "cubic" && has("cubic"):
		return "cubic"
	}
	return ""
}
