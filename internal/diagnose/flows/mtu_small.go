package flows

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/ceiling"
)

const (
	// ethernetMTU is what every Ethernet carries (RFC 894); leastMTU is what every link must carry
	// for IPv6 (RFC 8200 §5). Between the two are tunnels, including those of providers, and a host
	// cannot know whether more would pass. No current link has a reason to be below leastMTU.
	ethernetMTU, leastMTU = 1500, 1280
	// headerCost is how much more of the payload headers must take than at 1500 bytes to matter on
	// a full link.
	headerCost = 0.08
)

// mtuSmall finds an interface, or a device on the path, that makes packets much smaller than the
// path carries.
//
// Headers then take a larger part of the link, CPUs process more packets per byte, and a loss-based
// sender, whose rate is proportional to the segment size, is slower on a lossy path. It is a
// warning if one of the three limits the flow. Look-alikes: tunnels, whose MTU is small for a
// reason and whose interfaces are not Ethernet; a black hole, where larger packets vanish.
//
// Interfaces of 1500 bytes cannot test whether jumbo frames would pass, so the rule is silent about
// those.
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

// ethernet reports whether an interface makes Ethernet frames of its own and is not a tunnel.
func ethernet(e evidence.End) bool {
	return e.Card != nil && e.Card.MAC != "" && (!e.Card.Virtual || e.Card.Kind == "veth" || e.Card.Kind == "tap" ||
		e.Card.Kind == "physical" ||
		e.Card.Kind == "bridge" || e.Card.Kind == "vlan" || e.Card.Kind == "bond")
}

// smallInterface returns the finding about an interface with a small MTU.
func smallInterface(f *evidence.Flow, e evidence.End) *evidence.Finding {
	mtu := e.Card.MTUBytes
	more := ceiling.GoodputRatio(ethernetMTU, false, true)/max(ceiling.GoodputRatio(mtu, false, true), 0.01) - 1
	x := &evidence.Finding{
		Code: evidence.MTUSmall, Severity: evidence.Notice, Where: e.Name,
		Title: fmt.Sprintf("The MTU of %s at the %s host is %d bytes: with the usual %d the same link carries %s "+
			"more payload, in %s times fewer packets.",
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
			fmt.Sprintf("Not a tunnel: %s is an Ethernet interface (%s), and IPv6 requires %d bytes of every link.",
				e.Card.Name, kindOf(e), leastMTU)},
		Confidence: 0.8,
	}
	if _, _, busy, known := f.BusiestOf(); more >= headerCost && (f.Plateau() || f.Queued() || f.AtLinkRate()) {
		x.Severity = evidence.Warning
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not a slow host: the rate is steady (it scatters by %s), as on a full link.",
				evidence.Percent(f.ScatterRatio)))
		x.Confidence = 0.9
	} else if p, _ := f.TrueLoss(); more >= headerCost &&
		(known && busy >= evidence.FullProcessor || p >= evidence.MinLoss && !windowHeld(f)) {
		x.Severity = evidence.Warning
	}
	x.Remedy.Text = fmt.Sprintf(
		"Set the MTU of %s at the %s host to %d, unless a device between the hosts needs less; "+
			"`linerate measure TARGET --test mtu` shows what passes afterwards.",
		e.Card.Name, e.Name, ethernetMTU)
	// Each end announces its own segment size, and the smaller one counts: if both are small,
	// neither remedy helps without the other.
	for _, end := range []evidence.End{f.Sender, f.Receiver} {
		if ethernet(end) && end.Card.MTUBytes > 0 && end.Card.MTUBytes < leastMTU {
			x.Remedy.Add(evidence.Candidate{Knob: knob.ID("link:" + end.Card.Name + "/mtu"), Side: end.Name,
				Levels: []knob.Value{"1500"},
				Why:    "what every Ethernet carries"})
		}
	}
	x.Remedy.Proof = "Raise and restore it at both ends alternately: the throughput of a full link and the " +
		"packets per second follow the sizes; the idle round trip stays the same."
	return x
}

func kindOf(e evidence.End) string {
	if e.Card.Kind != "" {
		return e.Card.Kind
	}
	return e.Card.Driver
}

// clampedSegments returns the finding about segments that are smaller than the path requires.
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
	// 200 bytes exceed any header that a tunnel adds and a clamp allows for.
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
	x.Remedy.Text = "Look for a firewall or tunnel that rewrites the segment size of handshakes (TCPMSS " +
		"--set-mss, mss-fix), or an advmss on a route, and let it clamp to the path MTU instead."
	x.Remedy.Proof = "Open connections around that device and through it alternately: the segment sizes differ, " +
		"and with them the payload rate of a full link."
	return x
}
