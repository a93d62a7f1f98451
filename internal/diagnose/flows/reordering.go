package flows

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// reorderedNotice of the segments overtaken is a path that reorders; single ones come from a
	// retransmission that meets its original.
	reorderedNotice = 0.005
	// fewReorderings are no habit of a path.
	fewReorderings = 20
	// needlessRepairs of the segments sent again is what shows that reordering costs: each recovery
	// halves the window of a loss-based sender.
	needlessRepairs = 1e-3
)

// reordering: segments arrive in another order than they were sent, and what is merely late is
// taken for lost.
//
// The kernel's own word is needed: an acknowledgement came for a segment behind which later ones
// had been acknowledged before, without its having been sent again (tcpi_reord_seen; TCPSACKReorder
// by SACK, TCPTSReorder by timestamps). Reports of segments that came twice (DSACK) tell that
// repairs were needless. RACK learns the extent of it (RFC 8985), so that mild reordering costs
// nothing after some round trips: then it is a notice.
//
// The look-alike is loss: there nothing is overtaken, and each repair was needed.
func reordering(f *evidence.Flow) *evidence.Finding {
	events, source := reorderings(f)
	if f.Streams == 0 || f.Segments <= 0 || events < fewReorderings || events < reorderedNotice*f.Segments {
		return nil
	}
	again := f.Loss()
	_, repaired := f.TrueLoss()
	needless := f.Retransmits - repaired
	x := &evidence.Finding{
		Code: evidence.Reordering, Severity: evidence.Notice, Where: "path",
		Title: fmt.Sprintf("The path delivers segments out of order: %s of %s were overtaken, and %s were sent again.",
			evidence.Count(events), evidence.Count(f.Segments), evidence.Count(f.Retransmits)),
		Evidence: append(f.Common(),
			evidence.Evidence{Name: "segments overtaken", Value: events, Unit: "segments", Source: source},
			evidence.Evidence{Name: "part of all segments", Value: events / f.Segments, Unit: "ratio",
				Source: source + " / tcpi_segs_out"},
			evidence.Evidence{Name: "segments sent again", Value: again, Unit: "ratio",
				Source: f.TCPInfo("tcpi_total_retrans / tcpi_segs_out")},
			evidence.Evidence{Name: "segments that arrived twice", Value: needless, Unit: "segments",
				Source: f.TCPInfo("tcpi_dsack_dups")}),
		Rejected: []string{
			fmt.Sprintf("Not loss: %s segments were overtaken for each that was sent again.",
				ratio(events/max(f.Retransmits, 1))),
			f.NotReceiveWindow(), f.NotSendBuffer(),
		},
		Confidence: evidence.Combine(0.7, evidence.When(events >= 0.02*f.Segments, 0.5),
			evidence.When(needless > 0, 0.3)),
	}
	// A full link that also reorders loses nothing by it: a plateau is no harm done.
	if again >= needlessRepairs && events >= f.Retransmits && !f.Plateau() {
		x.Severity = evidence.Warning
	}
	x.Remedy.Text = "Look for what spreads one flow over several ways: a bond in balance-rr, per-packet ECMP, several queues or tunnels without a hash over the " +
		"flow. One way for each flow ends it."
	x.Remedy.Proof = "Send over one of the ways alone and over all by turns: alone nothing is overtaken. A change of buffers must make no difference."
	for _, e := range []evidence.End{f.Sender, f.Receiver} {
		if e.Card != nil && e.Card.BondMode == "balance-rr" {
			x.Where = e.Name
			x.Evidence = append(x.Evidence, evidence.Evidence{Name: "mode of the bond " + e.Card.Name,
				Value: e.Card.BondMode, Source: "rtnetlink (" + e.Name + ")"})
			x.Remedy.Text = fmt.Sprintf(
				"The bond %s at the %s host sends the packets of one flow by turns over all of its cards (balance-rr). Mode 802.3ad with a "+
					"hash over ports keeps a flow on one.",
				e.Card.Name, e.Name)
		}
	}
	if now, ok := f.Sender.Number("sysctl:net.ipv4.tcp_reordering", 0); ok && now < 30 &&
		x.Severity == evidence.Warning {
		x.Remedy.Add(evidence.Candidate{Knob: "sysctl:net.ipv4.tcp_reordering", Side: f.Sender.Name,
			Levels: []knob.Value{"30", "127"},
			Why:    "new flows take as many segments out of order for reordering before they take them for loss"})
	}
	candidateBBR(f, x, "bbr does not halve its window for what it takes to be lost")
	return x
}
