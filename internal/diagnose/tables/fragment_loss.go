package tables

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/drops"
)

const (
	fragmentMemory = "sysctl:net.ipv4.ipfrag_high_thresh"

	// fragmentRatio and fragmentRate are as for datagrams, see overflowRatio.
	fragmentRatio, fragmentRate = overflowRatio, overflowRate
)

// fragmentLoss finds datagrams that were lost because one of their fragments was, or because the
// kernel had no memory left to put them together.
//
// The second follows from the first: a datagram in part holds its memory until its time ends, 30 s
// by default. With the default 4 MB, less than 900 datagrams of 4000 bytes fill it; then no
// datagram in fragments gets through at all.
func fragmentLoss(s *evidence.Span) *evidence.Finding {
	r := drops.Reassemblies(senderOf(s), s.Counters)
	wasted := float64(r.Refused + r.Expired + r.Incomplete)
	ratio := part(wasted, float64(r.Fragments))
	if wasted < 3 || ratio < fragmentRatio && !lasting(s, wasted, fragmentRate) {
		return nil
	}
	missing := r.Expired + r.Incomplete
	x := &evidence.Finding{
		Code: evidence.FragmentLoss, Severity: evidence.Notice, Where: s.Side, LostPerSec: s.PerSecond(wasted),
		Confidence: evidence.Combine(0.8, evidence.When(ratio >= 0.01, 0.5)),
		Rejected: []string{fmt.Sprintf("Not the buffer of a socket: sockets dropped %s other datagrams.",
			evidence.Count(s.Count("Udp.RcvbufErrors")+s.Count("Udp6.RcvbufErrors")))},
	}
	show := func(name string, value float64, unit, counter string) {
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: name, Value: value, Unit: unit, Source: s.Source(counter)})
	}
	show("fragments that arrived", float64(r.Fragments), "fragments", "ReasmReqds")
	show("fragments refused", float64(r.Refused), "fragments", "ReasmFails - ReasmTimeout")
	show("datagrams that missed a fragment", float64(missing), "datagrams", "ReasmTimeout, ReasmReqds, ReasmOKs")
	show("datagrams put together", float64(r.Complete), "datagrams", "ReasmOKs")
	show("wasted share", ratio, "ratio", "refused or missed / arrived")
	if lasting(s, wasted, fragmentRate) && ratio >= fragmentRatio {
		x.Severity = evidence.Warning
	}
	x.Remedy.Text = "Send datagrams that fit into one packet: at an MTU of 1500, 1472 bytes over IPv4 and 1452 over IPv6."
	x.Remedy.Proof = "Send the same data in datagrams of one packet: the loss falls to that of packets."
	if r.Refused <= missing {
		x.Title = fmt.Sprintf("%s datagrams were lost %s because a fragment of each did not arrive%s.",
			evidence.Count(float64(missing)), s.When(), perSecond(s, float64(missing)))
		x.Remedy.Text += " `linerate measure --test mtu` finds the largest packet. Firewalls often drop later fragments."
		return x
	}
	x.Title = fmt.Sprintf("%s of %s fragments were refused %s: the memory for datagrams in part is full%s.",
		evidence.Count(float64(r.Refused)), evidence.Count(float64(r.Fragments)), s.When(),
		perSecond(s, float64(r.Refused)))
	x.Remedy.Text += " Where they must stay large, more memory (net.ipv4.ipfrag_high_thresh, " +
		"net.ipv6.ip6frag_high_thresh) or less time (net.ipv4.ipfrag_time) keeps room for datagrams that are complete."
	if now, ok := s.Number(fragmentMemory, 0); ok && s.Count("Ip.ReasmFails") > 0 {
		show("memory for datagrams in part", now, "bytes", fragmentMemory)
		x.Remedy.Add(evidence.Candidate{Knob: fragmentMemory, Side: s.Side, Levels: multiples(now, 4, 16),
			Why: "room for more datagrams that miss a fragment"})
	}
	return x
}

// senderOf returns the counters of the other end of the run in a span; nil without one.
func senderOf(s *evidence.Span) map[string]uint64 {
	switch {
	case s.Run == nil:
		return nil
	case s.Side == "near":
		return s.Run.Ends.Remote.Counters
	}
	return s.Run.Ends.Local.Counters
}
