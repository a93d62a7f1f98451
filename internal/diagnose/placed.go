package diagnose

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/drops"
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
	x := &evidence.Finding{
		Code: evidence.LocalDrops, Severity: evidence.Warning, Where: worst.End,
		Title: fmt.Sprintf("The %s host dropped %s packets at %s, and the flow reached %s; no rule explains these drops.",
			worst.End, evidence.Count(float64(worst.Total)), worst.Place, evidence.Rate(f.RateBitsPerSec)),
		Evidence: f.Common(),
		Rejected: []string{f.NotReceiveWindow(), f.NotSendBuffer(),
			fmt.Sprintf("Not the path: of the %s segments that were retransmitted, the hosts dropped %s themselves.",
				evidence.Count(repaired), evidence.Count(min(total, repaired)))},
		Confidence: evidence.Combine(0.4, evidence.When(total >= 0.5*repaired, 0.3), evidence.When(known, 0.2)),
	}
	x.Rejected = append(x.Rejected, f.NotProcessor()...)
	x.Evidence = append(x.Evidence, evidence.Evidence{Name: "share of the flow that was lost", Value: p, Unit: "ratio",
		Source: f.TCPInfo("tcpi_total_retrans, less tcpi_dsack_dups")})
	for _, d := range placed[:min(len(placed), 3)] {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "packets dropped at " + d.Place,
			Value: float64(d.Total), Unit: "packets", Source: d.Place + " (" + d.End + ")"})
	}
	if known {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not the link: %s at the %s host could carry %s of payload.",
			link.Name, at.Name, evidence.Rate(evidence.Goodput(link))))
	}
	x.Remedy.Text = fmt.Sprintf("Look at %s on the %s host first: %s.", worst.Place, worst.End, lookAt(worst.Drop))
	x.Remedy.Proof = "Run the same load again and watch this counter: it grows with the segments that are " +
		"retransmitted, and stands still on a load that the flow carries without loss."
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
	case drops.Conntrack, drops.NFQueue:
		return "`conntrack -S` and the rules of the firewall show what refuses packets"
	case drops.Neighbour:
		return "`ip -s neigh` shows the neighbour that does not answer"
	case drops.IP, drops.TCP, drops.Socket:
	}
	return "`nstat -az` shows which counter of the protocol grows"
}
