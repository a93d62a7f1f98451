package flows

import (
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// minEvents keeps one or two accidents of a short run from counting as loss.
	minEvents = 3
	// harmlessGain is how many times faster eight streams must at least be for the loss to cost one
	// stream anything significant.
	harmlessGain = 1.25
	// fullGain and fullGrowth identify losses that grow with the load: eight streams that are
	// hardly more than twice as fast and lose five times the share fill a queue.
	fullGain, fullGrowth = 2.5, 5
	// lossyModelBased is the loss that slows a model-based congestion control (bbr); it ignores
	// less by design.
	lossyModelBased = 0.01
)

// pathLoss finds segments that are lost between the hosts, which the congestion control takes for
// congestion.
//
// One look-alike is a sender at a full bottleneck, which causes losses itself: it shows an inflated
// round trip, or a flat rate with little loss. Another is local drops: then the counters of a host
// account for the retransmissions.
//
// Between a fifth and three times the bound of Mathis the loss explains the rate. The band is wide
// because the formula is that of Reno: cubic, delayed acknowledgements and a run of seconds move a
// sender away from it by factors. If local drops are a fifth of the retransmissions, the path is
// not the main cause.
//
// A rate that is bounded on the path (by a policer, or a queue of a few packets) makes a loss-based
// sender keep to that bound as well; [boundedRate] distinguishes the two. If more streams are no
// faster and lose as much, the loss costs nothing. Until the trial has run the verdict stands, with
// less confidence. Segments that others merely overtook, and sizes that vanish, are other findings.
func pathLoss(f *evidence.Flow) *evidence.Finding {
	p, repaired := f.TrueLoss()
	if f.Streams == 0 || p < evidence.MinLoss || lossEvents(f, repaired) < minEvents || f.Base() <= 0 ||
		f.MSSBytes <= 0 {
		return nil
	}
	if f.Queued() || oneOvershoot(f) || windowHeld(f) || overtaken(f, repaired) || smallSegments(f) > 0 ||
		stalledStream(f) || probedMTU(f.Sender) > 0 {
		return nil
	}
	// A short queue at the bottleneck inflates the round trip too little to count as a queue, but
	// keeps the rate flat.
	if f.Plateau() && (p < 1e-3 || f.UnderLoad() >= 1.05*f.Base() && f.Added() >= 0.001) {
		return nil
	}
	if droppedHere(f, repaired) {
		return nil
	}
	local, _ := hostDrops(f)
	bound := f.MathisRate(lossEvents(f, repaired) / f.Segments)
	if f.ModelBased() {
		if p < lossyModelBased || f.Plateau() {
			return nil
		}
	} else if f.RateBitsPerSec > 3*bound || f.RateBitsPerSec < bound/5 {
		// Far above the bound the losses do not limit the flow; far below it something else is
		// slower.
		return nil
	}
	bounded := boundedRate(f, p)
	if bounded != nil && (bounded.bounded || bounded.harmless) {
		return nil
	}
	// In the range between no queue and a clear one, the flow's own delay suggests a full link, and
	// only more streams can refute that.
	if swollen := f.UnderLoad() >= 1.25*f.Base() && f.Added() >= 0.001; swollen &&
		(bounded == nil || bounded.gain < 2) {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.PathLoss, Severity: evidence.Warning, Where: "path",
		Title: fmt.Sprintf("The path loses %s of the segments, which limits %s to %s on a round trip of %s.",
			evidence.Percent(p), f.CongestionName(), evidence.Rate(f.RateBitsPerSec), evidence.Seconds(f.Loaded())),
		Evidence: append(f.Common(),
			lossEvidence(f, p),
			evidence.Evidence{Name: "retransmitted segments", Value: repaired, Unit: "segments",
				Source: f.TCPInfo("tcpi_total_retrans, less tcpi_dsack_dups")},
			evidence.Evidence{Name: "rate that this loss allows a loss-based sender", Value: bound,
				Unit:   "bits_per_second",
				Source: "Mathis: MSS / round trip × 1.22 / √(recoveries and timeouts / segments)"},
			evidence.Evidence{Name: "times that the sender took them for congestion", Value: lossEvents(f, repaired),
				Unit:   "events",
				Source: "TcpExt.TCPSackRecovery + TCPRenoRecovery + TCPTimeouts (" + f.Sender.Name + ")"},
			dropsEvidence(local),
			evidence.Evidence{Name: "congestion control", Value: f.CongestionName(),
				Source: f.TCPInfo("TCP_CONGESTION")},
		),
		Rejected: []string{
			f.NotReceiveWindow(), f.NotSendBuffer(),
			fmt.Sprintf("Not a full queue at a slower link: the round trip is %s under load and %s on the empty "+
				"path, and the interim rates scatter by %s.",
				evidence.Seconds(f.Loaded()), evidence.Seconds(f.Base()), evidence.Percent(f.ScatterRatio)),
		},
		Confidence: evidence.Combine(0.5, evidence.When(p >= 1e-3, 0.4), evidence.When(f.Loaded() < 1.15*f.Base(), 0.4),
			evidence.When(!f.ModelBased(), 0.3),
			evidence.When(f.ScatterRatio > 0.05, 0.2)),
	}
	x.Rejected = append(x.Rejected, notLocalDrops(f, repaired))
	if mostDropped(f) >= 0.2*repaired {
		x.Confidence *= 0.7
	}
	if bounded != nil {
		x.Evidence = append(x.Evidence, bounded.evidence()...)
		x.Rejected = append(x.Rejected, "Not a policer or a full link: "+bounded.shows)
		x.Confidence = evidence.Combine(x.Confidence, evidence.When(bounded.clear, 0.5))
	} else if why, refused := f.Case.Refused[trialOf(f)]; refused {
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not measured: whether a policer drops the segments, because the probe %q could not be "+
				"made (%s).",
				trialOf(f), strings.TrimSuffix(why, ".")))
		x.Confidence *= 0.8
	}
	if events, source := reorderings(f); events > 0 {
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not reordering: %s segments were overtaken (%s), and %s retransmitted.",
				evidence.Count(events), source, evidence.Count(repaired)))
	}
	pathLossRemedy(f, x)
	return x
}

// pathLossRemedy names the repair, which no knob can do, and the knob that helps meanwhile if the
// kernel offers it.
func pathLossRemedy(f *evidence.Flow, x *evidence.Finding) {
	x.Remedy.Text = "Look for a bad cable, optic, radio link or a policer between the hosts: " +
		"the error counters of the switch ports on the path show which."
	x.Remedy.Proof = "Send datagrams at half the rate: if the path is at fault it loses the same share of them; " +
		"if a queue is, none. A change of buffers must make no difference."
	sackRemedy(f, x)
	if f.ModelBased() {
		return
	}
	available := f.Sender.CongestionControls()
	if slices.Contains(available, "bbr") {
		x.Remedy.Text += fmt.Sprintf(
			" Meanwhile, bbr at the %s host (the sender) does not take single losses for congestion.", f.Sender.Name)
		x.Remedy.Add(evidence.Candidate{Knob: evidence.TCPCongestionControl, Side: f.Sender.Name,
			Levels: []knob.Value{"bbr"},
			Why:    "the sender decides; bbr follows the delivery rate instead of each loss"})
		return
	}
	x.Remedy.Text += fmt.Sprintf(
		" A congestion control that tolerates loss (bbr) is not loaded at the %s host; "+
			"`modprobe tcp_bbr` makes it available.", f.Sender.Name)
}

// sackRemedy proposes selective acknowledgements where they are off: without them a sender repairs
// one segment per round trip.
func sackRemedy(f *evidence.Flow, x *evidence.Finding) {
	for _, t := range f.Sender.Run.TCP {
		if t.Sender && t.SACKOK {
			return
		}
	}
	for _, e := range []evidence.End{f.Sender, f.Receiver} {
		if on, ok := e.Setting(tcpSACK); ok && on == "0" {
			x.Evidence = append(x.Evidence,
				evidence.Evidence{Name: "net.ipv4.tcp_sack", Value: on, Source: "sysctl (" + e.Name + ")"})
			x.Remedy.Text += fmt.Sprintf(
				" Selective acknowledgements are off at the %s host, so each loss costs a round trip of its own: "+
					"set net.ipv4.tcp_sack to 1.",
				e.Name)
			x.Remedy.Add(evidence.Candidate{Knob: tcpSACK, Side: e.Name, Levels: []knob.Value{"1"},
				Why: "repairs all losses of one window in one round trip"})
		}
	}
}

const tcpSACK = "sysctl:net.ipv4.tcp_sack"
