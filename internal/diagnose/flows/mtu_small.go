package flows

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/ceiling"
)

const (
	// ethernetMTU is what every Ethernet carries (RFC 894), leastMTU what every link has to carry
	// for IPv6 (RFC 8200 §5). Between the two are tunnels and what providers take for theirs, and
	// nobody can tell from a host whether more would pass; below the second no link of today has a
	// reason to be.
	ethernetMTU, leastMTU = 1500, 1280
	// headerCost is the part of the payload that headers must take more than at 1500 bytes to be
	// felt on a full link.
	headerCost = 0.08
)

// mtuSmall: an interface, or somebody on the way, makes packets much smaller than the path carries.
//
// Headers then take a larger part of the link, processors handle more packets for each byte, and a
// loss-based sender, whose rate goes with the segment size, is slower on a path that loses. It is a
// warning where one of the three is what holds the flow. Look-alikes: tunnels, whose MTU is small
// with a reason and whose interfaces are no Ethernet; a black hole, where larger packets vanish.
//
// That jumbo frames would pass cannot be tried from interfaces of 1500 bytes, so nothing is said
// about those.
func mtuSmall(c *evidence.Case) *evidence.Finding {
	all := evidence.FlowsOf(c)
	if len(all) == 0 {
		return nil
	}
	f := all[0]
	for _, e := range []evidence.End{f.Sender, f.Receiver} {
		if ethernet(e) && e.Card.MTUBytes > 0 && e.Card.MTUBytes < leastMTU {
			return smallInterface(f, e)
		}
	}
	if smallSegments(f) > 0 {
		return clampedSegments(f)
	}
	return nil
}

// ethernet tells an interface that makes Ethernet frames of its own, and no tunnel.
func ethernet(e evidence.End) bool {
	return e.Card != nil && e.Card.MAC != "" && (!e.Card.Virtual || e.Card.Kind == "veth" || e.Card.Kind == "tap" ||
		e.Card.Kind == "physical" ||
		e.Card.Kind == "bridge" || e.Card.Kind == "vlan" || e.Card.Kind == "bond")
}

// smallInterface is the verdict on an interface that is set so.
func smallInterface(f *evidence.Flow, e evidence.End) *evidence.Finding {
	mtu := e.Card.MTUBytes
	more := ceiling.GoodputRatio(ethernetMTU, false, true)/max(ceiling.GoodputRatio(mtu, false, true), 0.01) - 1
	x := &evidence.Finding{
		Code: evidence.MTUSmall, Severity: evidence.Notice, Where: e.Name,
		Title: fmt.Sprintf("The MTU of %s at the %s host is %d bytes: with the usual %d the same link carries %s more payload, in %s times fewer packets.",
			e.Card.Name, e.Name, mtu, ethernetMTU, evidence.Percent(more),
			ratio(float64(ethernetMTU-headerBytes)/float64(max(mtu-headerBytes, 1)))),
		Evidence: append(f.Common(),
			evidence.Evidence{Name: "MTU of " + e.Card.Name, Value: float64(mtu), Unit: "bytes",
				Source: "rtnetlink (" + e.Name + ")"},
			evidence.Evidence{Name: "segment size", Value: f.MSSBytes, Unit: "bytes",
				Source: f.TCPInfo("tcpi_snd_mss")},
			evidence.Evidence{Name: "more payload at 1500 bytes", Value: more, Unit: "ratio",
				Source: "(MTU − 52) / (MTU + 38) of both sizes"}),
		Rejected: []string{
			fmt.Sprintf("Not a tunnel: %s is an Ethernet interface (%s), and IPv6 asks %d bytes of every link.",
				e.Card.Name, kindOf(e), leastMTU)},
		Confidence: 0.8,
	}
	if _, _, busy, known := f.BusiestOf(); more >= headerCost && (f.Plateau() || f.Queued() || f.AtLinkRate()) {
		x.Severity = evidence.Warning
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not a host that is too slow: the rate is steady (it scatters by %s), as that of a full link is.",
				evidence.Percent(f.ScatterRatio)))
		x.Confidence = 0.9
	} else if p, _ := f.TrueLoss(); more >= headerCost &&
		(known && busy >= evidence.FullProcessor || p >= evidence.MinLoss && !windowHeld(f)) {
		x.Severity = evidence.Warning
	}
	x.Remedy.Text = fmt.Sprintf(
		"Set the MTU of %s at the %s host to %d, unless a device between the hosts needs less; `linerate measure TARGET --test mtu` "+
			"tells what passes afterwards.",
		e.Card.Name, e.Name, ethernetMTU)
	// Each end offers segments of its own size, and the smaller offer counts: where both are small
	// neither remedy helps without the other.
	for _, end := range []evidence.End{f.Sender, f.Receiver} {
		if ethernet(end) && end.Card.MTUBytes > 0 && end.Card.MTUBytes < leastMTU {
			x.Remedy.Add(evidence.Candidate{Knob: knob.ID("link:" + end.Card.Name + "/mtu"), Side: end.Name,
				Levels: []knob.Value{"1500"},
				Why:    "what every Ethernet carries"})
		}
	}
	x.Remedy.Proof = "Raise it at both ends and take it back by turns: throughput of a full link and packets per second move as the sizes do; the idle round trip stays."
	return x
}

func kindOf(e evidence.End) string {
	if e.Card.Kind != "" {
		return e.Card.Kind
	}
	return e.Card.Driver
}

// clampedSegments is the verdict on segments that the path has no need of being so small.
func clampedSegments(f *evidence.Flow) *evidence.Finding {
	r, ok := f.Case.Ask(evidence.ProbeMTU)
	if !ok || r.MTU == nil {
		return nil
	}
	passes, hole, clamped := r.MTU.UpBytes, r.MTU.BlackHoleUp, r.MTU.MSSClampedUp
	if f.Direction == "down" {
		passes, hole, clamped = r.MTU.DownBytes, r.MTU.BlackHoleDown, r.MTU.MSSClampedDown
	}
	segment := int(f.MSSBytes)
	// 200 bytes are more than any header that a tunnel adds and a clamp allows for.
	if hole || passes < segment+headerBytes+200 {
		return nil
	}
	more := float64(passes-headerBytes)/float64(max(segment, 1)) - 1
	x := &evidence.Finding{
		Code: evidence.MTUSmall, Severity: evidence.Notice, Where: "path",
		Title: fmt.Sprintf("TCP sends segments of %d bytes although packets of %d bytes pass end to end.",
			segment, passes),
		Evidence: append(f.Common(),
			evidence.Evidence{Name: "segment size", Value: f.MSSBytes, Unit: "bytes",
				Source: f.TCPInfo("tcpi_snd_mss")},
			evidence.Evidence{Name: "largest packet that passes", Value: float64(passes), Unit: "bytes",
				Source: "probe mtu, packets with don't-fragment"},
			evidence.Evidence{Name: "segment size lowered on the way", Value: clamped,
				Source: "probe mtu, offers of both handshakes"}),
		Rejected:   []string{fmt.Sprintf("Not a black hole: packets of up to %d bytes pass.", passes)},
		Confidence: evidence.Combine(0.7, evidence.When(clamped, 0.5)),
	}
	if more >= 0.5 && (f.Plateau() || f.Queued()) {
		x.Severity = evidence.Warning
	}
	x.Remedy.Text = "Look for a firewall or tunnel that rewrites the segment size of handshakes (TCPMSS --set-mss, mss-fix), or an advmss on a route, and let " +
		"it clamp to the path MTU instead."
	x.Remedy.Proof = "Open connections around that device and through it by turns: segment sizes differ, and payload of a full link with them."
	return x
}
