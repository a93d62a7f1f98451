package flows

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// policedLoss is the least loss that is worth asking about a policer: below it the sender stays
	// near its rate.
	policedLoss = 5e-4
	// policedEvents is how often a bound must have been met to be asked about: at 50 Mb/s and 20 ms
	// a loss-based sender meets it each second and a half, and a run has three. policedExcess is
	// how far over the bound of Mathis the rate of a saw may be: cubic, whose teeth are flatter
	// than reno's, is a third over it.
	policedEvents, policedExcess = 2, 2.5
	// policedGain is how much more eight streams may get than one. One loss-based stream keeps
	// three quarters of a rate that drops without a queue, eight keep nearly all; beyond 1.6 it is
	// not the rate that is bounded.
	policedGain = 1.6
	// policedGrowth is how much more must be lost of eight streams than of one: windows of an
	// eighth of the size meet a fixed rate eight times as often, and a path that loses by chance
	// does not care.
	policedGrowth = 3
	// One stream on a busy host may be far below the bound. Then a flood of losses is what shows
	// it: floodLoss and floodGrowth times those of one stream, in every interim result, so that it
	// is no start of eight at once. By chance a path loses the same part of many.
	floodGain, floodGrowth, floodLoss = 4, 10, 0.02
	// pacedShare of a rate must arrive of a stream that is paced to eight tenths of it, and
	// pacedLoss of the loss may be left, for the rate to be what was bounded.
	pacedShare, pacedLoss = 0.7, 0.2
	// fewStreams are so few that eight tell more.
	fewStreams = 2
)

// policer: the path drops what is over a fixed rate and queues nothing, so that the sender sees
// loss without delay.
//
// Loss and rate of one stream fit the bound of Mathis as well as those of a lossy path do: that
// bound is what a loss-based sender makes of any loss. So another run tells ([boundedRate]). A full
// queue at a slower link bounds a rate as well, and shows itself by the delay that many streams
// keep in it.
//
// A queue of a few packets at a fast link cannot be told from a policer by what hosts see: then the
// confidence is less. Remedies are the same.
func policer(f *evidence.Flow) *evidence.Finding {
	p, repaired := f.TrueLoss()
	if f.Streams == 0 || p < policedLoss || lossEvents(f, repaired) < policedEvents || f.Base() <= 0 ||
		f.RateBitsPerSec <= 0 || f.MSSBytes <= 0 {
		return nil
	}
	// A bound that is met again and again makes a saw, whose mean is the bound of Mathis; far over
	// it a window was merely too large once or twice.
	if !f.ModelBased() && f.RateBitsPerSec > policedExcess*f.MathisRate(lossEvents(f, repaired)/f.Segments) {
		return nil
	}
	if f.Queued() || oneOvershoot(f) || windowHeld(f) || droppedHere(f, repaired) || overtaken(f, repaired) ||
		smallSegments(f) > 0 {
		return nil
	}
	bound := boundedRate(f, p)
	if bound == nil || !bound.bounded {
		return nil
	}
	crowd := f // in which a queue would show
	if bound.probe == evidence.ProbeStreams {
		crowd = bound.run
	}
	queue := crowd.Added()
	if queue >= shortQueue(f) || droppedHere(crowd, crowd.Retransmits) {
		return nil
	}
	rate := max(crowd.RateBitsPerSec, f.RateBitsPerSec)
	x := &evidence.Finding{
		Code: evidence.Policer, Severity: evidence.Warning, Where: "path",
		Title: fmt.Sprintf("The path drops what is over about %s without queueing it: %s of the segments were lost, and the round trip stayed at %s.",
			evidence.Rate(rate), evidence.Percent(max(p, crowd.Loss())), evidence.Seconds(crowd.Loaded())),
		Evidence: append(append(f.Common(), lossEvidence(f, p)), bound.evidence()...),
		Rejected: []string{
			"Not a path that loses by chance: " + bound.says,
			fmt.Sprintf("Not a full queue at a slower link: under %s the round trip grows by %s from %s.",
				streamsOf(crowd.Streams), evidence.Seconds(queue), evidence.Seconds(f.Base())),
			f.NotReceiveWindow(), f.NotSendBuffer(), notLocalDrops(f, repaired),
		},
		Confidence: evidence.Combine(0.6, evidence.When(bound.clear, 0.5), evidence.When(queue < 0.1*f.Base(), 0.3)),
	}
	// As many bytes in a queue as a short one holds: sixteen full frames.
	if queue*rate/8 > 16*1500 {
		x.Confidence *= 0.8
	}
	policerRemedy(f, x, rate)
	return x
}

// trial is a further run that tells a bounded rate from a path that loses by chance.
type trial struct {
	probe    evidence.Probe
	run      *evidence.Flow
	gain     float64 // its rate, of the flow's
	bounded  bool    // the rate is what is bounded
	clear    bool    // by a wide margin
	harmless bool    // the loss takes next to nothing from the rate, or is that of a full queue
	says     string  // what the trial showed, the end of a sentence
}

// boundedRate asks for the run that tells; nil: it has not been made.
//
// Of one or two streams it is eight: by chance a path loses the same part of them, and all together
// get several times the rate; a bounded rate stays, and a larger part is lost. Of more streams it
// is one that is paced to eight tenths of their rate: below its bound a path loses nothing, by
// chance it loses as before, and one stream does not get there.
func boundedRate(f *evidence.Flow, p float64) *trial {
	run := probed(f, trialOf(f))
	if run == nil {
		return nil
	}
	t := &trial{probe: trialOf(f), run: run, gain: run.RateBitsPerSec / f.RateBitsPerSec}
	if t.probe == evidence.ProbeStreams {
		lost := run.Loss()
		t.bounded = t.gain >= 0.5 && t.gain <= policedGain && lost >= policedGrowth*p ||
			t.gain <= floodGain && lost >= floodGrowth*p && lost >= floodLoss && everywhere(run)
		t.clear = t.gain <= 1.35 && (lost >= 10*p || lost >= 0.05) || t.gain >= 2
		t.harmless = t.gain < harmlessGain || t.gain < fullGain && lost >= fullGrowth*p
		t.says = fmt.Sprintf(
			"eight streams together got %s times the rate and lost %s of their segments in place of %s.",
			ratio(t.gain), evidence.Percent(lost), evidence.Percent(p))
		return t
	}
	lost, _ := run.TrueLoss()
	// Of fewer than ten expected losses chance decides.
	t.bounded = t.gain >= pacedShare && lost <= pacedLoss*p && p*run.Segments >= 10
	t.clear = t.bounded && lost == 0 || lost >= p/2
	t.says = fmt.Sprintf(
		"one stream paced to eight tenths of the rate got %s of it and lost %s of its segments in place of %s.",
		evidence.Percent(t.gain), evidence.Percent(lost), evidence.Percent(p))
	return t
}

// everywhere tells that segments were sent again in each of the interim results.
func everywhere(f *evidence.Flow) bool {
	for _, i := range f.Run.Intervals {
		if !i.Omitted && i.RetransmitsTotal == 0 {
			return false
		}
	}
	return f.Intervals >= 3
}

// trialOf is the probe that tells.
func trialOf(f *evidence.Flow) evidence.Probe {
	if f.Streams <= fewStreams {
		return evidence.ProbeStreams
	}
	return evidence.ProbePaced
}

// evidence is what the trial showed.
func (t *trial) evidence() []evidence.Evidence {
	name := map[evidence.Probe]string{evidence.ProbeStreams: "eight streams together",
		evidence.ProbePaced: "one paced stream"}[t.probe]
	source := "probe " + string(t.probe)
	return []evidence.Evidence{
		{Name: name, Value: t.run.RateBitsPerSec, Unit: "bits_per_second", Source: source},
		{Name: "segments sent again, " + name, Value: t.run.Loss(), Unit: "ratio",
			Source: source + ", tcpi_total_retrans / tcpi_segs_out"},
		{Name: "round trip, " + name, Value: t.run.Loaded(), Unit: "seconds", Source: source + ", tcpi_rtt"},
	}
}

// overtaken: segments that were merely late explain what was sent again.
func overtaken(f *evidence.Flow, repaired float64) bool {
	events, _ := reorderings(f)
	return events >= repaired && events >= 10
}

// shortQueue is the delay from which on a queue shows: a fourth of the round trip, within 2 ms,
// which is what a busy host adds, and 5 ms, which no short queue in front of a slow link stays
// below.
func shortQueue(f *evidence.Flow) float64 { return min(max(0.25*f.Base(), 0.002), 0.005) }

// ratio prints a factor.
func ratio(x float64) string { return fmt.Sprintf("%.1f", x) }

// policerRemedy names who can lift the rate, and how to live with it: a shaper of one's own in
// front, or a control that does not answer each loss.
func policerRemedy(f *evidence.Flow, x *evidence.Finding, rate float64) {
	x.Remedy.Text = fmt.Sprintf(
		"Ask whoever runs the path for the contracted rate and burst, or for shaping in place of policing. Shaped to a little below %s "+
			"at the %s host, flows lose nothing and get nearly all of it.",
		evidence.Rate(rate), f.Sender.Name)
	x.Remedy.Proof = "Pace one stream to nine tenths of that rate, and by turns do not: paced, nothing is lost and the rate is higher. A change of buffers must " +
		"make no difference."
	candidateBBR(f, x, "bbr follows the delivered rate and answers a policer's losses by pacing below it")
}
