package flows

import (
	"github.com/linerate/linerate/internal/diagnose/evidence"

	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/knob"
)

const (
	// minRetransmits keeps a single accident of a short run from being called loss.
	minRetransmits = 5
	// lossyModelBased is the loss that a model-based congestion control (bbr) feels; it ignores less by design.
	lossyModelBased = 0.01
)

// pathLoss: segments die between the hosts and the congestion control takes that for congestion.
//
// The look-alike is a sender at a full bottleneck, which loses packets by itself: it shows an inflated round trip, or a flat rate
// with little loss. Local drops are another: then the counters of a host account for the retransmissions.
//
// Between a fifth and three times the bound of Mathis the loss explains the rate. The band is wide because the
// formula is that of Reno: cubic, delayed acknowledgements and losses in bursts move a sender off it by factors.
// Local drops of a fifth of the retransmissions are too many to call the path the culprit.
func pathLoss(f *evidence.Flow) *evidence.Finding {
	p, repaired := f.TrueLoss()
	if f.Streams == 0 || p < evidence.MinLoss || repaired < minRetransmits || f.Base() <= 0 || f.MSSBytes <= 0 {
		return nil
	}
	if f.Queued() || f.Share(f.RwndLimitedSeconds) >= evidence.LimitedShare || f.Share(f.SndbufLimitedSeconds) >= evidence.LimitedShare {
		return nil
	}
	// A short queue at the bottleneck inflates the round trip by less than queued() asks for, but keeps the rate flat.
	if f.Plateau() && (p < 1e-3 || f.Loaded() >= 1.05*f.Base() && f.Loaded()-f.Base() >= 0.001) {
		return nil
	}
	local, where := f.Drops()
	if local >= 0.2*repaired {
		return nil
	}
	bound := f.MathisRate(p)
	if f.ModelBased() {
		if p < lossyModelBased || f.Plateau() {
			return nil
		}
	} else if f.RateBitsPerSec > 3*bound || f.RateBitsPerSec < bound/5 {
		// Far over the bound the losses came in few bursts; far under it something else is slower.
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.PathLoss, Severity: evidence.Warning, Where: "path",
		Title: fmt.Sprintf("The path loses %s of the segments, which holds %s at %s on a round trip of %s.",
			evidence.Percent(p), f.CongestionName(), evidence.Rate(f.RateBitsPerSec), evidence.Seconds(f.Loaded())),
		Evidence: append(f.Common(),
			evidence.Evidence{Name: "segments sent again", Value: p, Unit: "ratio", Source: f.TCPInfo("tcpi_total_retrans / tcpi_segs_out, less tcpi_dsack_dups")},
			evidence.Evidence{Name: "retransmitted segments", Value: repaired, Unit: "segments", Source: f.TCPInfo("tcpi_total_retrans, less tcpi_dsack_dups")},
			evidence.Evidence{Name: "rate that this loss allows a loss-based sender", Value: bound, Unit: "bits_per_second", Source: "Mathis: MSS / round trip × 1.22 / √loss"},
			evidence.Evidence{Name: "packets dropped inside the hosts", Value: local, Unit: "packets", Source: "counters of both ends"},
			evidence.Evidence{Name: "congestion control", Value: f.CongestionName(), Source: f.TCPInfo("TCP_CONGESTION")},
		),
		Rejected: []string{
			f.NotReceiveWindow(), f.NotSendBuffer(),
			fmt.Sprintf("Not a full queue at a slower link: the round trip under load is %s, empty %s, and the interim rates scatter by %s.",
				evidence.Seconds(f.Loaded()), evidence.Seconds(f.Base()), evidence.Percent(f.ScatterRatio)),
		},
		Confidence: evidence.Combine(0.5, evidence.When(p >= 1e-3, 0.4), evidence.When(f.Loaded() < 1.15*f.Base(), 0.4), evidence.When(!f.ModelBased(), 0.3), evidence.When(f.ScatterRatio > 0.05, 0.2)),
	}
	if local == 0 {
		x.Rejected = append(x.Rejected, "Not a queue of either host: no local counter of drops moved.")
	} else {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not a queue of either host: they dropped %s packets (%s), and %s segments were sent again.", evidence.Count(local), where, evidence.Count(repaired)))
	}
	pathLossRemedy(f, x)
	return x
}

// pathLossRemedy names the repair, which no knob can do, and the relief that a knob can give where the kernel offers it.
func pathLossRemedy(f *evidence.Flow, x *evidence.Finding) {
	x.Remedy.Text = "Look for a bad cable, optic, radio link or a policer between the hosts: error counters of the switch ports on the way tell which."
	if f.ModelBased() {
		return
	}
	available := f.Sender.CongestionControls()
	if slices.Contains(available, "bbr") {
		x.Remedy.Text += fmt.Sprintf(" Meanwhile bbr at the %s host (the sender) does not take single losses for congestion.", f.Sender.Name)
		x.Remedy.Add(evidence.Candidate{Knob: evidence.TCPCongestionControl, Side: f.Sender.Name, Levels: []knob.Value{"bbr"},
			Why: "the sender decides; bbr follows the delivery rate and not each loss"})
		return
	}
	x.Remedy.Text += fmt.Sprintf(" A congestion control that tolerates loss (bbr) is not loaded at the %s host; `modprobe tcp_bbr` would offer it.", f.Sender.Name)
}
