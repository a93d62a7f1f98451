package diagnose

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/traffic"
)

const (
	// fewPlaced drops are an accident of a moment.
	fewPlaced = 5
	// placedShare of the retransmitted segments must have been dropped inside the hosts for these
	// drops to be the reason.
	placedShare = 0.2
	// farBelow is the part of the link's payload rate below which a flow with such losses is slow.
	farBelow = 0.5
)

// localDrops names the place of losses inside the hosts that no rule explains, where they are what
// slows a flow: the counters know the place even if this version knows no cause. It returns nil
// otherwise.
//
// Where no link speed is known, nothing says what the rate should be. Then only a share of losses
// that slows every congestion control counts.
func localDrops(f *evidence.Flow) *evidence.Finding {
	if x := droppedAt(f); x != nil {
		return x
	}
	return refused(f)
}

func droppedAt(f *evidence.Flow) *evidence.Finding {
	placed := f.SegmentDrops()
	if len(placed) == 0 || f.Streams == 0 {
		return nil
	}
	p, repaired := f.TrueLoss()
	var total float64
	for _, d := range placed {
		total += float64(d.Total)
	}
	if total < fewPlaced || total < placedShare*repaired || p < evidence.MinLoss {
		return nil
	}
	link, at, known := f.SlowestLink()
	if known && f.RateBitsPerSec >= farBelow*evidence.Goodput(link) || !known && p < heavyLoss {
		return nil
	}
	worst := placed[0]
	least := "" // a place that drops bundles counts each as one
	if total < repaired && worst.Bundles() {
		least = "at least "
	}
	unexplained, counter := "; no known cause explains these drops", "this counter: it grows"
	if worst.Stage == drops.Filter {
		unexplained, counter = "", "InReceives and InDelivers of IP (nstat -az): their difference grows"
	}
	x := &evidence.Finding{
		Code: evidence.LocalDrops, Severity: evidence.Warning, Where: worst.End,
		Title: fmt.Sprintf("The %s host dropped %s packets at %s, and the flow reached %s%s.",
			worst.End, evidence.Count(float64(worst.Total)), worst.Where(), evidence.Rate(f.RateBitsPerSec), unexplained),
		Evidence: f.Common(),
		Rejected: []string{f.NotReceiveWindow(), f.NotSendBuffer(),
			fmt.Sprintf("Not the path: of the %s segments that were retransmitted, the hosts dropped %s%s themselves.",
				evidence.Count(repaired), least,
				evidence.Count(min(total, repaired)))},
		Confidence: evidence.Combine(0.4, evidence.When(total >= 0.5*repaired, 0.3), evidence.When(known, 0.2)),
	}
	x.Rejected = append(x.Rejected, f.NotProcessor()...)
	x.Evidence = append(x.Evidence, evidence.Evidence{Name: "share of the flow that was lost", Value: p, Unit: "ratio",
		Source: f.TCPInfo("tcpi_total_retrans, less tcpi_dsack_dups")})
	for _, d := range placed[:min(len(placed), 3)] {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "packets dropped at " + d.Where(),
			Value: float64(d.Total), Unit: "packets", Source: d.Place + " (" + d.End + ")"})
	}
	if known {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not the link: %s at the %s host could carry %s of payload.",
			link.Name, at.Name, evidence.Rate(evidence.Goodput(link))))
	}
	x.Remedy.Text = fmt.Sprintf("Look at %s on the %s host first: %s.", worst.Where(), worst.End, lookAt(worst.Drop))
	x.Remedy.Proof = "Run the same load again and watch " + counter + " with the segments that are " +
		"retransmitted, and stands still on a load that the flow carries without loss."
	return x
}

const (
	// fewRefused retransmissions that the host itself did not let out are an accident.
	fewRefused = 3
	// refusedShare of the segments must be missing without a retransmission.
	refusedShare = 0.05
	// uncarried is the same without that counter: then the sender's own account must show it as well,
	// in segments that carried none of the bytes that it sent. Nothing but small segments does, which
	// a stream sends where its window is small.
	uncarried = 0.2
)

// refused finds that the sending host does not let its own segments out, which no counter of drops
// shows: a rule of its firewall at the output. Since Linux 6.7 IP counts what it was given and what
// it sent, in bundles. TCP knows that they did not leave, so most of them are not retransmissions
// later on, and they never reach the receiver. The kernel counts a refused retransmission
// (TCPRetransFail, tcp_retransmit_skb).
//
// The receiver alone is no evidence: a NIC that merges segments may count a bundle as one.
func refused(f *evidence.Flow) *evidence.Finding {
	if f.Streams == 0 || f.MSSBytes <= 0 || f.Run.Direction == traffic.Bidir || f.AtLinkRate() ||
		f.Share(f.RwndLimitedSeconds) >= evidence.LimitedShare {
		return nil
	}
	fails := float64(f.Sender.Run.Counters["TcpExt.TCPRetransFail"])
	arrived := f.Arrived()
	var carried, dropped float64
	for _, t := range f.Sender.Run.TCP {
		if t.Sender {
			carried += float64(t.BytesAcked + t.BytesRetransmitted)
		}
	}
	carried = max(carried, float64(f.Run.Bytes))
	for _, d := range f.SegmentDrops() {
		dropped += float64(d.Total)
	}
	missing := f.Segments - arrived - f.Retransmits - dropped
	empty := f.Segments - carried/f.MSSBytes
	counters := f.Sender.Run.Counters
	stopped := float64(drops.Unsent(counters))
	counted := stopped >= fewRefused &&
		stopped >= refusedShare*float64(counters["Ip.OutRequests"]+counters["Ip6.OutRequests"])
	if arrived <= 0 || carried <= 0 || (fails < fewRefused && !counted || missing < refusedShare*f.Segments) &&
		min(missing, empty) < uncarried*f.Segments {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.LocalDrops, Severity: evidence.Warning, Where: f.Sender.Name,
		Title: fmt.Sprintf("The %s host does not let out segments of its own, and the flow reached %s: "+
			"of %s segments %s arrived.", f.Sender.Name, evidence.Rate(f.RateBitsPerSec), evidence.Count(f.Segments),
			evidence.Count(arrived)),
		Evidence: append(f.Common(),
			evidence.Evidence{Name: "segments that TCP gave to the network layer", Value: f.Segments, Unit: "segments",
				Source: f.TCPInfo("tcpi_segs_out")},
			evidence.Evidence{Name: "segments of that size in the bytes that it sent", Value: carried / f.MSSBytes,
				Unit: "segments", Source: f.TCPInfo("(tcpi_bytes_acked + tcpi_bytes_retrans) / tcpi_snd_mss")},
			evidence.Evidence{Name: "segments that arrived", Value: arrived, Unit: "segments",
				Source: "tcp_info tcpi_segs_in (" + f.Receiver.Name + ")"},
			evidence.Evidence{Name: "segments sent again", Value: f.Retransmits, Unit: "segments",
				Source: f.TCPInfo("tcpi_total_retrans")},
			evidence.Evidence{Name: "retransmissions that did not leave the host", Value: fails, Unit: "segments",
				Source: "TcpExt.TCPRetransFail (" + f.Sender.Name + ")"}),
		Rejected: []string{f.NotReceiveWindow(), f.NotSendBuffer(),
			fmt.Sprintf("Not the path: it can lose what left the host, and %s segments were retransmitted while %s did not "+
				"arrive.", evidence.Count(f.Retransmits), evidence.Count(f.Segments-arrived))},
		Confidence: evidence.Combine(0.6, evidence.When(fails >= fewRefused, 0.4),
			evidence.When(empty >= uncarried*f.Segments, 0.4), evidence.When(counted, 0.5)),
	}
	if counted {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "packets that IP was given and did not send",
			Value: stopped, Unit: "packets", Source: "Ip.OutRequests - Ip.OutTransmits (" + f.Sender.Name + ")"})
	}
	x.Rejected = append(x.Rejected, f.NotProcessor()...)
	x.Remedy.Text = fmt.Sprintf("Look for a rule of the firewall of the %s host that drops what it sends, "+
		"such as one with a limit: `nft list ruleset`, `iptables -L OUTPUT -v` and the table mangle.", f.Sender.Name)
	x.Remedy.Proof = "Run the same load with and without that rule alternately: the rate follows, and the segments " +
		"that arrive are those that were sent. Larger buffers, the control, make no difference."
	return x
}

// lookAt says what shows more about drops of one stage.
func lookAt(d drops.Drop) string {
	switch d.Stage {
	case drops.Qdisc:
		return "`tc -s qdisc` and `tc -s filter` show which discipline or filter drops"
	case drops.Card, drops.Ring:
		return "`ethtool -S` and `ip -s -s link` show which counter of the NIC grows"
	case drops.Softnet:
		return "/proc/net/softnet_stat shows the CPU whose backlog is full"
	case drops.Filter:
		return "`nft list ruleset` and `iptables-save -c` show which rule drops, such as one with a limit"
	case drops.Conntrack, drops.NFQueue:
		return "`conntrack -S` and the rules of the firewall show what refuses packets"
	case drops.Neighbour:
		return "`ip -s neigh` shows the neighbour that does not answer"
	case drops.IP, drops.TCP, drops.Socket:
	}
	return "`nstat -az` shows which counter of the protocol grows"
}
