package flows

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/drops"
)

const (
	// policedLoss is the least loss that justifies the question for a policer: below it the sender
	// stays near its rate.
	policedLoss = 5e-4
	// policedEvents is how often the sender must have hit a bound: at 50 Mb/s and 20 ms a
	// loss-based sender hits it every second and a half, and a run has three seconds. policedExcess
	// is how far above the bound of Mathis the rate of the resulting sawtooth may be: cubic, whose
	// teeth are flatter than reno's, is a third above it.
	policedEvents, policedExcess = 2, 2.5
	// policedGain is how many times faster eight streams may be than one. One loss-based stream
	// reaches three quarters of a rate that drops without a queue, and eight reach nearly all of
	// it; beyond 1.6 the rate is not bounded.
	policedGain = 1.6
	// policedGrowth is how many times more eight streams must lose than one: windows of an eighth
	// of the size hit a fixed rate eight times as often, while random loss stays the same.
	policedGrowth = 3
	// One stream on a busy host may be far below the bound. Then a flood of losses shows it:
	// floodLoss, and floodGrowth times the loss of one stream, in every interim result, so that it
	// is not just the start of eight streams at once. Random loss takes the same share of many
	// streams.
	floodGain, floodGrowth, floodLoss = 4, 10, 0.02
	// A control that follows the delivery rate (bbr) loses a large share of one stream already, and
	// eight cannot lose several times that. If eight streams are hardly faster than one, lose
	// floodLoss or more all the time, and no CPU is full, the rate is bounded all the same: random
	// loss leaves each of them the rate of one.
	sameGain = 1.35
	// pacedShare is the part of the rate that a stream paced to 80 % of it must reach, and
	// pacedLoss the part of the loss that may remain, for the rate to be bounded.
	pacedShare, pacedLoss = 0.7, 0.2
	// fewStreams are so few that eight show more.
	fewStreams = 2
)

// policer finds a path that drops everything above a fixed rate and queues nothing, so that the
// sender sees loss without delay.
//
// Loss and rate of one stream fit the bound of Mathis as well as those of a lossy path: a
// loss-based sender keeps to that bound under any loss. Another run decides ([boundedRate]). A full
// queue at a slower link bounds the rate as well, but many streams keep it full, which shows as
// delay.
//
// A queue of a few packets at a fast link looks the same to both hosts as a policer; the confidence
// is lower then. The remedies are the same.
func policer(f *evidence.Flow) *evidence.Finding {
	p, repaired := f.TrueLoss()
	if f.Streams == 0 || p < policedLoss || lossEvents(f, repaired) < policedEvents || f.Base() <= 0 ||
		f.RateBitsPerSec <= 0 || f.MSSBytes <= 0 {
		return nil
	}
	// A sender that keeps hitting a bound draws a sawtooth whose mean is the bound of Mathis; far
	// above it, a window was merely too large once or twice.
	if !f.ModelBased() && f.RateBitsPerSec > policedExcess*f.MathisRate(lossEvents(f, repaired)/f.Segments) {
		return nil
	}
	filter := filterOf(f)
	if f.Queued() || oneOvershoot(f) || windowHeld(f) || filter == nil && droppedHere(f, repaired) ||
		overtaken(f, repaired) || smallSegments(f) > 0 {
		return nil
	}
	bound := boundedRate(f, p)
	if bound == nil || !bound.bounded {
		return nil
	}
	crowd := f // the run that would show a queue
	if bound.probe == evidence.ProbeStreams {
		crowd = bound.run
	}
	queue := crowd.Added()
	if queue >= shortQueue(f) || filterOf(crowd) == nil && droppedHere(crowd, crowd.Retransmits) {
		return nil
	}
	rate := max(crowd.RateBitsPerSec, f.RateBitsPerSec)
	x := &evidence.Finding{
		Code: evidence.Policer, Severity: evidence.Warning, Where: "path",
		Title: fmt.Sprintf("The path drops what exceeds about %s without queueing it: "+
			"%s of the segments were lost, and the round trip stayed at %s.",
			evidence.Rate(rate), evidence.Percent(max(p, crowd.Loss())), evidence.Seconds(crowd.Loaded())),
		Evidence: append(append(f.Common(), lossEvidence(f, p)), bound.evidence()...),
		Rejected: []string{
			"Not random loss: " + bound.shows,
			fmt.Sprintf("Not a full queue at a slower link: with %s the round trip grows by %s from %s.",
				streamsOf(crowd.Streams), evidence.Seconds(queue), evidence.Seconds(f.Base())),
			f.NotReceiveWindow(), f.NotSendBuffer(),
		},
		Confidence: evidence.Combine(0.6, evidence.When(bound.clear, 0.5), evidence.When(queue < 0.1*f.Base(), 0.3)),
	}
	// A short queue holds sixteen full frames.
	if queue*rate/8 > 16*1500 {
		x.Confidence *= 0.8
	}
	if filter != nil {
		atFilter(f, x, filter, repaired, rate)
		return x
	}
	x.Rejected = append(x.Rejected, notLocalDrops(f, repaired))
	policerRemedy(f, x, rate)
	filtered(f, x)
	return x
}

// trial is a further run that distinguishes a bounded rate from random loss.
type trial struct {
	probe    evidence.Probe
	run      *evidence.Flow
	gain     float64 // its rate, relative to the flow's
	bounded  bool    // the rate is bounded
	clear    bool    // by a wide margin
	harmless bool    // the loss hardly lowers the rate, or comes from a full queue
	shows    string  // what the trial showed, the end of a sentence
}

// boundedRate asks for the run that decides; nil if it has not run.
//
// For one or two streams it is eight streams: with random loss they lose the same share and are
// several times as fast together; with a bounded rate they are no faster and lose more. For more
// streams it is one stream paced to 80 % of their rate: below a bound it loses nothing; with random
// loss it loses as before and does not reach that rate.
func boundedRate(f *evidence.Flow, p float64) *trial {
	run := probed(f, trialOf(f))
	if run == nil {
		return nil
	}
	t := &trial{probe: trialOf(f), run: run, gain: run.RateBitsPerSec / f.RateBitsPerSec}
	if t.probe == evidence.ProbeStreams {
		lost := run.Loss()
		t.bounded = t.gain >= 0.5 && t.gain <= policedGain && lost >= policedGrowth*p ||
			t.gain <= floodGain && lost >= floodGrowth*p && lost >= floodLoss && everywhere(run) ||
			t.gain >= 0.5 && t.gain <= sameGain && lost >= max(p, floodLoss) && everywhere(run) && timeLeft(run)
		t.clear = t.gain <= 1.35 && (lost >= 10*p || lost >= 0.05) || t.gain >= 2
		t.harmless = t.gain < harmlessGain || t.gain < fullGain && lost >= fullGrowth*p
		t.shows = fmt.Sprintf(
			"eight streams together reached %s times the rate and lost %s of their segments instead of %s.",
			ratio(t.gain), evidence.Percent(lost), evidence.Percent(p))
		return t
	}
	lost, _ := run.TrueLoss()
	// With fewer than ten expected losses chance decides.
	t.bounded = t.gain >= pacedShare && lost <= pacedLoss*p && p*run.Segments >= 10
	t.clear = t.bounded && lost == 0 || lost >= p/2
	t.shows = fmt.Sprintf(
		"one stream paced to 80 %% of the rate reached %s of it and lost %s of its segments instead of %s.",
		evidence.Percent(t.gain), evidence.Percent(lost), evidence.Percent(p))
	return t
}

// everywhere reports whether each interim result has retransmissions.
func everywhere(f *evidence.Flow) bool {
	for _, i := range f.Run.Intervals {
		if !i.Omitted && i.RetransmitsTotal == 0 {
			return false
		}
	}
	return f.Intervals >= 3
}

// timeLeft reports whether the CPUs of both ends are known to have had time for more.
func timeLeft(f *evidence.Flow) bool {
	for _, e := range []evidence.End{f.Sender, f.Receiver} {
		if _, busy, known := e.Busiest(); !known || busy >= evidence.FullProcessor {
			return false
		}
	}
	return true
}

// trialOf returns the probe that decides.
func trialOf(f *evidence.Flow) evidence.Probe {
	if f.Streams <= fewStreams {
		return evidence.ProbeStreams
	}
	return evidence.ProbePaced
}

// evidence returns what the trial showed.
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

// overtaken reports whether reordering alone explains the retransmissions.
func overtaken(f *evidence.Flow, repaired float64) bool {
	events, _ := reorderings(f)
	return events >= repaired && events >= 10
}

// shortQueue returns the delay, in seconds, from which on a queue shows: a quarter of the round
// trip, but at least 2 ms, which a busy host adds, and at most 5 ms, which any queue in front of a
// slow link exceeds.
func shortQueue(f *evidence.Flow) float64 { return min(max(0.25*f.Base(), 0.002), 0.005) }

// filterOf returns the drops of the receiver's packet filter, if the hosts dropped most there.
func filterOf(f *evidence.Flow) *evidence.PlacedDrop {
	if all := f.SegmentDrops(); len(all) > 0 && all[0].Stage == drops.Filter {
		return &all[0]
	}
	return nil
}

// atFilter makes a policer on the path one in the receiver's packet filter.
func atFilter(f *evidence.Flow, x *evidence.Finding, d *evidence.PlacedDrop, repaired, rate float64) {
	x.Where = d.End
	x.Title = fmt.Sprintf("The packet filter of the %s host drops what exceeds about %s without queueing it: "+
		"%s of the segments were lost.", d.End, evidence.Rate(rate), evidence.Percent(f.Loss()))
	x.Evidence = append(x.Evidence, evidence.Evidence{Name: "segments that IP received and did not deliver, about",
		Value: float64(d.Total), Unit: "segments", Source: "IpExt.In*Pkts - tcp_info tcpi_segs_in (" + d.End + ")"})
	x.Rejected = append(x.Rejected, fmt.Sprintf("Not the path: %s segments were retransmitted, and about %s arrived at "+
		"the %s host and went no further than its IP layer.", evidence.Count(repaired),
		evidence.Count(float64(d.Total)), d.End))
	x.Remedy.Text = fmt.Sprintf("Look for the rule of the %s host that limits a rate (nft list ruleset: limit; "+
		"iptables-save -c: limit, hashlimit), and raise its limit or take it out.", d.End)
	x.Remedy.Proof = "Run the same load with and without that rule alternately: without it, as many packets are " +
		"delivered (InDelivers in nstat) as IP received (InReceives)."
}

// filtered adds that rules of a host's packet filter may be the policer: no counter of the host has
// what a rule drops (NF_DROP), so that a limit of nftables or iptables may look like the path.
func filtered(f *evidence.Flow, x *evidence.Finding) {
	received := []string{"ingress", "prerouting", "input"}
	if c := f.Receiver.Run.Counters; c["Ip.InReceives"]+c["Ip6.InReceives"] > 0 && drops.Undelivered(c) == 0 {
		received = received[:1] // the other hooks are behind IP, which delivered everything
	}
	for _, at := range []struct {
		end   evidence.End
		hooks []string
	}{
		{f.Receiver, received},
		{f.Sender, []string{"output", "postrouting", "egress"}},
	} {
		rules := 0
		if at.end.Host != nil {
			for _, c := range at.end.Host.Firewall {
				if c.Type != "nat" && slices.Contains(at.hooks, c.Hook) {
					rules += c.Rules
				}
			}
		}
		if rules == 0 {
			continue
		}
		x.Confidence *= 0.8
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not known: whether the packet filter of the %s host (%s) drops "+
			"them; no counter of a host has its drops.", at.end.Name, unit.Counted(rules, "rule")))
		x.Remedy.Text = fmt.Sprintf("First look for a rule of the %s host that limits a rate (nft list ruleset: limit; "+
			"iptables-save: limit, hashlimit). ", at.end.Name) + x.Remedy.Text
	}
}

// ratio formats a factor.
func ratio(x float64) string { return fmt.Sprintf("%.1f", x) }

// policerRemedy says how to raise the rate and how to live with it: a shaper of one's own, or a
// control that does not react to each loss.
func policerRemedy(f *evidence.Flow, x *evidence.Finding, rate float64) {
	x.Remedy.Text = fmt.Sprintf(
		"Ask the operator of the path for the contracted rate and burst, or for shaping instead of policing. "+
			"Shaped to slightly below %s at the %s host, flows lose nothing and get nearly all of it.",
		evidence.Rate(rate), f.Sender.Name)
	x.Remedy.Proof = "Send one stream paced to 90 % of that rate and unpaced, alternately: paced, " +
		"it loses nothing and is faster. A change of buffers must make no difference."
	candidateBBR(f, x, "bbr follows the delivery rate and reacts to a policer's losses by pacing below it")
}
