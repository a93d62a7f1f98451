package flows

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// policedLoss is the least loss that is worth asking about a policer: below it the sender stays near its rate.
	policedLoss = 5e-4
	// policedGain is how much more eight streams may get than one. One loss-based stream keeps three quarters of a rate that drops without a queue, eight keep
	// nearly all; beyond 1.6 it is not the rate that is bounded.
	policedGain = 1.6
	// policedGrowth is how much more must be lost of eight streams than of one: windows of an eighth of the size meet a fixed rate eight times as often, and a
	// path that loses by chance does not care.
	policedGrowth = 3
)

// policer: the path drops what is over a fixed rate and queues nothing, so that the sender sees loss without delay.
//
// Loss and rate of one stream fit the bound of Mathis as well as those of a lossy path do: that bound is what a loss-based sender makes of any loss. So more
// streams are asked for. By chance a path loses the same part of them and all together get several times the rate; over a policer they get the same
// rate and lose a larger part. A full queue at a slower link does that as well, and shows itself by the delay that eight streams keep in it.
//
// A queue of a few packets at a fast link cannot be told from a policer by what hosts see: then the confidence is less. Remedies are the same.
func policer(f *evidence.Flow) *evidence.Finding {
	p, repaired := f.TrueLoss()
	if f.Streams == 0 || p < policedLoss || repaired < minRetransmits || f.Base() <= 0 || f.RateBitsPerSec <= 0 || f.MSSBytes <= 0 {
		return nil
	}
	if queued(f) || lossEvents(f) == 1 || windowHeld(f) || droppedHere(f, repaired) || overtaken(f, repaired) || smallSegments(f) > 0 {
		return nil
	}
	many := probed(f, evidence.ProbeStreams)
	if many == nil {
		return nil
	}
	gain, lost := gainOf(f, many), many.Loss()
	queue := added(many)
	if gain > policedGain || gain < 0.5 || lost < policedGrowth*p || queue >= shortQueue(f) || droppedHere(many, many.Retransmits) {
		return nil
	}
	rate := max(many.RateBitsPerSec, f.RateBitsPerSec)
	x := &evidence.Finding{
		Code: evidence.Policer, Severity: evidence.Warning, Where: "path",
		Title: fmt.Sprintf("The path drops what is over about %s without queueing it: %s of the segments of one stream were lost, and %s of eight.",
			evidence.Rate(rate), evidence.Percent(p), evidence.Percent(lost)),
		Evidence: append(f.Common(), lossEvidence(f, p),
			evidence.Evidence{Name: "eight streams together", Value: many.RateBitsPerSec, Unit: "bits_per_second", Source: "probe streams"},
			evidence.Evidence{Name: "segments sent again with eight streams", Value: lost, Unit: "ratio", Source: "probe streams, tcpi_total_retrans / tcpi_segs_out"},
			evidence.Evidence{Name: "round trip with eight streams", Value: many.Loaded(), Unit: "seconds", Source: "probe streams, tcpi_rtt"}),
		Rejected: []string{
			fmt.Sprintf("Not a path that loses by chance: eight streams together got %s times the rate of one, and lost %s of their segments instead of %s.",
				ratio(gain), evidence.Percent(lost), evidence.Percent(p)),
			fmt.Sprintf("Not a full queue at a slower link: eight streams add %s to the round trip of %s.", evidence.Seconds(queue), evidence.Seconds(f.Base())),
			f.NotReceiveWindow(), f.NotSendBuffer(), notLocalDrops(f, repaired),
		},
		Confidence: evidence.Combine(0.6, evidence.When(gain <= 1.35, 0.4), evidence.When(lost >= 10*p || lost >= 0.05, 0.3), evidence.When(queue < 0.1*f.Base(), 0.3)),
	}
	// As many bytes in a queue as a short one holds: sixteen full frames.
	if queue*rate/8 > 16*1500 {
		x.Confidence *= 0.8
	}
	policerRemedy(f, x, rate)
	return x
}

// overtaken: segments that were merely late explain what was sent again.
func overtaken(f *evidence.Flow, repaired float64) bool {
	events, _ := reorderings(f)
	return events >= repaired && events >= 10
}

// gainOf is how many times the rate of a flow another one reached.
func gainOf(f, other *evidence.Flow) float64 { return other.RateBitsPerSec / f.RateBitsPerSec }

// shortQueue is the delay from which on a queue shows: a fourth of the round trip, within 2 ms, which is what a busy host adds, and 5 ms, which no short
// queue in front of a slow link stays below.
func shortQueue(f *evidence.Flow) float64 { return min(max(0.25*f.Base(), 0.002), 0.005) }

// ratio prints a factor.
func ratio(x float64) string { return fmt.Sprintf("%.1f", x) }

// policerRemedy names who can lift the rate, and how to live with it: a shaper of one's own in front, or a control that does not answer each loss.
func policerRemedy(f *evidence.Flow, x *evidence.Finding, rate float64) {
	x.Remedy.Text = fmt.Sprintf("Ask whoever runs the path for the contracted rate and burst, or for shaping in place of policing. Shaped to a little below %s at the %s host, flows lose nothing and get nearly all of it.",
		evidence.Rate(rate), f.Sender.Name)
	x.Remedy.Proof = "Pace one stream to nine tenths of that rate, and by turns do not: paced, nothing is lost and the rate is higher. A change of buffers must make no difference."
	candidateBBR(f, x, "bbr follows the delivered rate and answers a policer's losses by pacing below it")
}
