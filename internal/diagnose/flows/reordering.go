package flows

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// reorderedNotice is the share of overtaken segments that makes a path that reorders; single
	// ones come from a retransmission that meets its original.
	reorderedNotice = 0.005
	// Fewer than fewReorderings events are not typical of a path.
	fewReorderings = 20
	// needlessRepairs is the share of retransmitted segments from which on reordering costs
	// something: each recovery halves the window of a loss-based sender.
	needlessRepairs = 1e-3
)

// reordering finds segments that arrive in another order than they were sent, so that the sender
// takes late ones for lost.
//
// It needs the kernel's own evidence: an acknowledgement for a segment that was not retransmitted,
// after later segments had been acknowledged (tcpi_reord_seen; TCPSACKReorder by SACK, TCPTSReorder
// by timestamps). Reports of segments that arrived twice (DSACK) show that retransmissions were
// needless. RACK learns the extent of reordering (RFC 8985), so that mild reordering costs nothing
// after some round trips: then it is a notice.
//
// The look-alike is loss: there no segment overtakes another, and each retransmission was needed.
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
		Title: fmt.Sprintf("The path delivers segments out of order: %s of %s were overtaken, "+
			"and %s were retransmitted.",
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
			fmt.Sprintf("Not loss: %s segments were overtaken for each retransmitted one.",
				ratio(events/max(f.Retransmits, 1))),
			f.NotReceiveWindow(), f.NotSendBuffer(),
		},
		Confidence: evidence.Combine(0.7, evidence.When(events >= 0.02*f.Segments, 0.5),
			evidence.When(needless > 0, 0.3)),
	}
	// A full link that also reorders loses nothing by it: a flat rate shows no harm.
	if again >= needlessRepairs && events >= f.Retransmits && !f.Plateau() {
		x.Severity = evidence.Warning
	}
	x.Remedy.Text = "Look for what spreads one flow over several paths: a bond in balance-rr, per-packet ECMP, " +
		"several queues or tunnels without a hash over the flow. Send each flow over one path."
	x.Remedy.Proof = "Send over one of the paths alone and over all of them, alternately: alone, " +
		"no segment overtakes another. A change of buffers must make no difference."
	for _, e := range []evidence.End{f.Sender, f.Receiver} {
		if e.Card != nil && e.Card.BondMode == "balance-rr" {
			x.Where = e.Name
			x.Evidence = append(x.Evidence, evidence.Evidence{Name: "mode of the bond " + e.Card.Name,
				Value: e.Card.BondMode, Source: "rtnetlink (" + e.Name + ")"})
			x.Remedy.Text = fmt.Sprintf(
				"The bond %s at the %s host alternates the packets of one flow between all of its NICs "+
					"(balance-rr). Mode 802.3ad with a hash over ports keeps a flow on one.",
				e.Card.Name, e.Name)
		}
	}
	if now, ok := f.Sender.Number("sysctl:net.ipv4.tcp_reordering", 0); ok && now < 30 &&
		x.Severity == evidence.Warning {
		x.Remedy.Add(evidence.Candidate{Knob: "sysctl:net.ipv4.tcp_reordering", Side: f.Sender.Name,
			Levels: []knob.Value{"30", "127"},
			Why:    "new flows tolerate that many reordered segments before they assume loss"})
	}
	candidateBBR(f, x, "bbr does not halve its window for segments that it assumes lost")
	return x
}
