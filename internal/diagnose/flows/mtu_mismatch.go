package flows

import (
	"fmt"
	"strconv"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// mtuMismatch finds two hosts on one segment that disagree about the largest frame.
//
// Their routes to each other, without a gateway, show that they share a segment. TCP copes, because
// each end announces its own segment size in the handshake. Datagrams, tunnels and NFS over UDP do
// not: no router can report anything, so the receiver's NIC drops what exceeds the smaller MTU. The
// rule asks for a probe of that, because many NICs accept more than their MTU, and only then is the
// finding more than a notice.
//
// The look-alike is a black hole behind a router, where hosts may have any MTU.
func mtuMismatch(c *evidence.Case) *evidence.Finding {
	near, far := ends(c)
	if near.Card == nil || far.Card == nil || near.Card.MTUBytes <= 0 || far.Card.MTUBytes <= 0 ||
		near.Card.MTUBytes == far.Card.MTUBytes {
		return nil
	}
	if !onLink(near) || !onLink(far) {
		return nil
	}
	larger, smaller := near, far
	if far.Card.MTUBytes > near.Card.MTUBytes {
		larger, smaller = far, near
	}
	x := &evidence.Finding{
		Code: evidence.MTUMismatch, Severity: evidence.Notice, Where: smaller.Name,
		Title: fmt.Sprintf("The two ends of one segment have different MTUs: %d bytes at %s of the %s host, "+
			"%d at %s of the %s host.",
			larger.Card.MTUBytes, larger.Card.Name, larger.Name, smaller.Card.MTUBytes, smaller.Card.Name,
			smaller.Name),
		Confidence: 0.85,
		Rejected:   []string{},
	}
	for _, e := range []evidence.End{near, far} {
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "MTU of " + e.Card.Name, Value: float64(e.Card.MTUBytes), Unit: "bytes",
				Source: "rtnetlink (" + e.Name + ")"})
		if len(e.Routes) > 0 {
			x.Evidence = append(x.Evidence, evidence.Evidence{Name: "route of the " + e.Name + " host to the other",
				Value:  e.Routes[0].Destination + ", no gateway",
				Source: "rtnetlink (" + e.Name + ")"})
		}
	}
	if r, ok := c.Ask(evidence.ProbeMTU); ok && r.MTU != nil {
		passes, hole, way := r.MTU.UpBytes, r.MTU.BlackHoleUp, "up"
		if larger.Name == "far" {
			passes, hole, way = r.MTU.DownBytes, r.MTU.BlackHoleDown, "down"
		}
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "largest packet that passes, " + way,
			Value: float64(passes), Unit: "bytes",
			Source: "probe mtu, packets with don't-fragment"})
		switch {
		case passes <= 0:
		case passes >= larger.Card.MTUBytes:
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not shown to cost anything now: packets of %d bytes pass, "+
					"so the NIC of the %s host accepts more than its MTU.",
					passes, smaller.Name))
		case hole:
			x.Severity = evidence.Warning
			x.Title = fmt.Sprintf(
				"The two ends of one segment have different MTUs, %d and %d bytes, "+
					"and packets of the %s host above %d bytes vanish without a message.",
				larger.Card.MTUBytes, smaller.Card.MTUBytes, larger.Name, passes)
			x.Confidence = evidence.Combine(x.Confidence, 0.7)
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not a black hole behind a router: neither route has a gateway, "+
					"and what passes (%d bytes) does not exceed the MTU of the smaller end.",
					passes))
		}
	}
	x.Remedy.Text = fmt.Sprintf(
		"Give all hosts of the segment one MTU: that of the %s host, if the switch and the neighbours support "+
			"it, or %d bytes everywhere.",
		larger.Name, smaller.Card.MTUBytes)
	x.Remedy.Add(evidence.Candidate{Knob: knob.ID("link:" + larger.Card.Name + "/mtu"), Side: larger.Name,
		Levels: []knob.Value{knob.Value(strconv.Itoa(smaller.Card.MTUBytes))},
		Why:    "the size that every host of the segment accepts"})
	x.Remedy.Proof = fmt.Sprintf(
		"Ping with don't-fragment at %d bytes from the %s host, before and after: "+
			"it must be answered or refused at once and never vanish. Smaller pings pass throughout.",
		larger.Card.MTUBytes, larger.Name)
	return x
}

// onLink reports whether the other host is reached without a gateway.
func onLink(e evidence.End) bool {
	if len(e.Routes) == 0 {
		return false
	}
	for _, r := range e.Routes {
		if r.Gateway != "" || r.Destination == "default" || r.Destination == "::/0" {
			return false
		}
	}
	return true
}
