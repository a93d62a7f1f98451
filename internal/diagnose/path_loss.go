package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/knob"
)

const (
	// minLoss is one segment in ten thousand: below it no congestion control of today is held back on a terrestrial path.
	minLoss = 1e-4
	// minRetransmits keeps a single accident of a short run from being called loss.
	minRetransmits = 5
	// lossyModelBased is the loss that a model-based congestion control (bbr) feels; it ignores less by design.
	lossyModelBased = 0.01
	// mathis is the constant of rate = MSS/RTT · 1.22/√p for an acknowledgement per segment (Mathis et al. 1997).
	mathis = 1.22
)

// pathLoss: segments die between the hosts and the congestion control takes that for congestion.
//
// The look-alike is a sender at a full bottleneck, which loses packets by itself: it shows an inflated round trip, or a flat rate
// with little loss. Local drops are another: then the counters of a host account for the retransmissions.
//
// Between a fifth and three times the bound of Mathis the loss explains the rate. The band is wide because the
// formula is that of Reno: cubic, delayed acknowledgements and losses in bursts move a sender off it by factors.
// Local drops of a fifth of the retransmissions are too many to call the path the culprit.
func pathLoss(f *flow) *Finding {
	p, repaired := f.trueLoss()
	if f.streams == 0 || p < minLoss || repaired < minRetransmits || f.base() <= 0 || f.mss <= 0 {
		return nil
	}
	if f.queued() || f.share(f.rwndLimited) >= limitedShare || f.share(f.sndbufLimited) >= limitedShare {
		return nil
	}
	// A short queue at the bottleneck inflates the round trip by less than queued() asks for, but keeps the rate flat.
	if f.plateau() && (p < 1e-3 || f.loaded() >= 1.05*f.base() && f.loaded()-f.base() >= 0.001) {
		return nil
	}
	local, where := f.drops()
	if local >= 0.2*repaired {
		return nil
	}
	bound := f.mathisRate(p)
	if f.modelBased() {
		if p < lossyModelBased || f.plateau() {
			return nil
		}
	} else if f.rate > 3*bound || f.rate < bound/5 {
		// Far over the bound the losses came in few bursts; far under it something else is slower.
		return nil
	}
	x := &Finding{
		Code: PathLoss, Severity: Warning, Where: "path",
		Title: fmt.Sprintf("The path loses %s of the segments, which holds %s at %s on a round trip of %s.",
			percent(p), f.congestionName(), rate(f.rate), seconds(f.loaded())),
		Evidence: append(f.common(),
			Evidence{Name: "segments sent again", Value: p, Unit: "ratio", Source: f.tcpInfo("tcpi_total_retrans / tcpi_segs_out, less tcpi_dsack_dups")},
			Evidence{Name: "retransmitted segments", Value: repaired, Unit: "segments", Source: f.tcpInfo("tcpi_total_retrans, less tcpi_dsack_dups")},
			Evidence{Name: "rate that this loss allows a loss-based sender", Value: bound, Unit: "bits_per_second", Source: "Mathis: MSS / round trip × 1.22 / √loss"},
			Evidence{Name: "packets dropped inside the hosts", Value: local, Unit: "packets", Source: "counters of both ends"},
			Evidence{Name: "congestion control", Value: f.congestionName(), Source: f.tcpInfo("TCP_CONGESTION")},
		),
		Rejected: []string{
			f.notReceiveWindow(), f.notSendBuffer(),
			fmt.Sprintf("Not a full queue at a slower link: the round trip under load is %s, empty %s, and the interim rates scatter by %s.",
				seconds(f.loaded()), seconds(f.base()), percent(f.scatter)),
		},
		Confidence: combine(0.5, when(p >= 1e-3, 0.4), when(f.loaded() < 1.15*f.base(), 0.4), when(!f.modelBased(), 0.3), when(f.scatter > 0.05, 0.2)),
	}
	if local == 0 {
		x.Rejected = append(x.Rejected, "Not a queue of either host: no local counter of drops moved.")
	} else {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not a queue of either host: they dropped %s packets (%s), and %s segments were sent again.", count(local), where, count(repaired)))
	}
	f.pathLossRemedy(x)
	return x
}

// pathLossRemedy names the repair, which no knob can do, and the relief that a knob can give where the kernel offers it.
func (f *flow) pathLossRemedy(x *Finding) {
	x.Remedy.Text = "Look for a bad cable, optic, radio link or a policer between the hosts: error counters of the switch ports on the way tell which."
	if f.modelBased() {
		return
	}
	available := f.sender.congestionControls()
	if slices.Contains(available, "bbr") {
		x.Remedy.Text += fmt.Sprintf(" Meanwhile bbr at the %s host (the sender) does not take single losses for congestion.", f.sender.name)
		x.Remedy.add(Candidate{Knob: tcpCongestion, Side: f.sender.name, Levels: []knob.Value{"bbr"},
			Why: "the sender decides; bbr follows the delivery rate and not each loss"})
		return
	}
	x.Remedy.Text += fmt.Sprintf(" A congestion control that tolerates loss (bbr) is not loaded at the %s host; `modprobe tcp_bbr` would offer it.", f.sender.name)
}

// trueLoss is the part of the segments that had to be sent again because they were lost: what the receiver reported as received
// twice (DSACK) was reordering or a timer that fired too early.
func (f *flow) trueLoss() (ratio, segments float64) {
	var spurious float64
	for _, t := range f.sender.run.TCP {
		if t.Sender {
			spurious += float64(t.DSACKDups)
		}
	}
	segments = max(f.retransmits-spurious, 0)
	if f.segments <= 0 {
		return 0, segments
	}
	return segments / f.segments, segments
}

// mathisRate is what loss-based congestion control reaches under loss p, all streams together.
//
// It takes the empty round trip: a queue would be the flow's own, and with one this rule does not speak.
func (f *flow) mathisRate(p float64) float64 {
	return float64(f.streams) * f.mss * 8 / f.base() * mathis / math.Sqrt(p)
}

// modelBased tells congestion controls that follow delivery rate or delay and not each loss.
//
// dctcp goes by marks first and cdg by the trend of the delay.
func (f *flow) modelBased() bool {
	return strings.HasPrefix(f.congestion, "bbr") || f.congestion == "dctcp" || f.congestion == "cdg"
}

// congestionName is the congestion control in a sentence, also when it is not known.
func (f *flow) congestionName() string {
	if f.congestion == "" {
		return "the sender"
	}
	return f.congestion
}

// plateau tells a flat delivery: at least four interim rates that scatter by no more than 6 %. A loss-based sender under random
// loss scatters by 10 % and more at half-second intervals; a bottleneck or a window delivers evenly.
func (f *flow) plateau() bool { return f.intervals >= 4 && f.scatter <= 0.06 }

// congestionControls lists what a host's kernel offers.
func (e end) congestionControls() []string {
	for _, name := range []string{tcpAvailable, tcpAllowed} {
		if text, ok := e.setting(name); ok {
			return strings.Fields(text)
		}
	}
	return nil
}
