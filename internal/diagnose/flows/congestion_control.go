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
	// shortRTT parts the paths on which a loss-based control needs a few round trips to fill a link
	// from those on which it needs minutes; below it bbr is the one to doubt.
	shortRTT = 0.005
	// filledWindow is the least part of the congestion window that must be in flight for the window
	// to be what holds the flow.
	filledWindow = 0.5
	// betterRate is how much more the other control must get. Two runs of one control on a noisy
	// bench differ by a fourth, and one of them had a queue to itself.
	betterRate = 1.5
	// soon, seconds, is how long a loss-based control may need to get where the other is: after a
	// loss it takes a while on any path, and a run of three seconds sees no more than that while.
	// What it takes minutes for it never gets, as the next loss comes first.
	soon = 10
)

// congestionControlMismatch: another algorithm gets much more from the same path at the same time.
//
// A suspicion is what is needed to ask: the congestion window holds the flow, and neither a buffer,
// nor a queue, nor a host does. Then one stream with another control is the proof by itself: the
// sender sets it for that socket alone. A loss-based control on a long path is compared with bbr,
// bbr on a short one with cubic.
//
// The look-alikes have the same remedy for the moment and another cause: a path that loses, a
// policer, reordering. Where one of them is found it mutes this.
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
		Title: fmt.Sprintf("With %s the path carries %s, with %s, which the %s host uses, %s on a round trip of %s.",
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
			fmt.Sprintf("Not a start that was seen too early: %s needs %s more to open its window, if nothing is lost meanwhile.",
				f.Congestion, evidence.Seconds(wait)))
	}
	x.Remedy.Text = fmt.Sprintf(
		"Use %s at the %s host (the sender), for all connections or on the route alone (congctl). Where it is to go over the Internet, "+
			"see first that its loss is one that you may cause others.",
		other, f.Sender.Name)
	x.Remedy.Add(evidence.Candidate{Knob: evidence.TCPCongestionControl, Side: f.Sender.Name,
		Levels: []knob.Value{knob.Value(other)},
		Why:    "the sender decides, and new connections begin with it"})
	x.Remedy.Proof = fmt.Sprintf(
		"New connections with %s and with %s by turns: the rates must differ, and on a path of less than a millisecond they must not.",
		other, f.Congestion)
	return x
}

// catchUp is how long a loss-based window takes to become as large as wanted when nothing is lost,
// seconds: reno adds a segment in a round trip, cubic is there after the third root of what is
// missing over 0.4 (RFC 9438 §4.2). A window that was seen to grow faster, as in slow start, is
// taken at its word.
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

// otherControl is what to compare with, empty where nothing promising is loaded.
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
