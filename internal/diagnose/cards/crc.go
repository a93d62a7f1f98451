package cards

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/nicstat"
)

const (
	// worstCable is one damaged frame in a million: at the bit error ratio of 10⁻¹⁰ that IEEE 802.3
	// allows a copper link at worst it is one full frame in 800 000; real links are a hundred times
	// better.
	worstCable = 1e-6
	// brokenCable is what a watch of seconds must show to be a fault that is felt: a loss-based
	// sender at a round trip of 20 ms gets 220 Mb/s at it (Mathis).
	brokenCable = 1e-5
	// brokenSums is the share of segments with a wrong checksum that means that somebody breaks
	// them, rather than a stray bit in some memory on the way.
	brokenSums = 1e-5
)

// crcErrors: frames arrive damaged. The card sees it by their checksum and throws them away; what
// gets past it the protocols see by theirs.
//
// The counter of the card is a fact about this cable and what is at its two ends. Frames that are
// too long are another thing (two ends that disagree about the MTU), and damaged ones beside
// collisions are a duplex mismatch: both have classes of their own. Wrong checksums inside good
// frames come from no cable: a device on the way, or an offload, broke the packet and put a good
// frame around it.
func crcErrors(s *evidence.Span) *evidence.Finding {
	if x := worst(cardsOf(s), damaged); x != nil {
		return x
	}
	return wrongSums(s)
}

// damaged weighs the frames that one card threw away because they came broken.
func damaged(c card) *evidence.Finding {
	s := c.s
	t, ok := c.lost(nicstat.Damaged)
	if !ok || t.n < fewest {
		return nil
	}
	frames := c.count("rx_packets")
	share := t.n / (t.n + frames)
	again, ratio, known := repaired(s)
	warn := false
	switch {
	case share < worstCable:
		return nil
	case s.SinceBoot:
		warn = share >= damningShare
	case known:
		// What cables break is seldom in step with a flow: at a full link it costs nothing that the
		// eye sees, and is told all the same.
		warn = share >= brokenCable && ratio >= brokenCable && t.n >= ownShare*again
	default:
		warn = share >= brokenCable && s.PerSecond(t.n) >= 1
	}
	x := &evidence.Finding{
		Code: evidence.CRCErrors, Severity: evidence.Notice, Where: where(s),
		Title: fmt.Sprintf("Card %s received %s damaged frames %s, one in %s.", c.Name, evidence.Count(t.n),
			s.When(), evidence.Count(1/share)),
		Evidence: append(c.evidence(c.tallies(nicstat.Damaged)),
			c.lossEvidence(t.n, frames, "damaged frames", t.counter)...),
		Rejected: notMeasured(s),
		// Notices and warnings are equally sure: the card saw what it saw.
		Confidence: evidence.Combine(0.7, evidence.When(t.n >= 100, 0.5), evidence.When(share >= brokenCable, 0.4)),
	}
	if warn {
		x.Severity = evidence.Warning
	}
	if size, ok := c.lost(nicstat.Size); ok {
		x.Evidence = append(x.Evidence, c.evidence([]tally{size})...)
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not only frames of another size: %s were too long or too short, which is two ends that disagree about the MTU.",
				evidence.Count(size.n)))
	} else {
		x.Rejected = append(x.Rejected, "Not two ends that disagree about the MTU: 0 frames were too long.")
	}
	// The other half of a duplex mismatch looks like this at the end that runs full duplex, and no
	// counter here tells it from a cable.
	if c.Duplex == "full" && c.count("collisions") == 0 {
		x.Rejected = append(x.Rejected,
			"Not half duplex at this end: it runs full duplex and counted 0 collisions. The other end may still run half; its own counters tell.")
	}
	if aer := aerOf(c); aer != nil && aer.Correctable > 0 {
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "errors of the card's bus link that were repaired, since boot",
				Value: float64(aer.Correctable), Unit: "events",
				Source: c.source("aer_dev_correctable")})
	}
	x.Remedy.Text = "Change one thing at a time and count again: the cable, the transceiver, the port at the other end. On optical links clean the connectors and " +
		"look at the received power (ethtool -m); forward error correction that is off at one end shows like this too."
	if c.Card != nil && c.Card.FEC != nil {
		x.Remedy.Knobs = append(x.Remedy.Knobs, string(c.ethtool("fec")))
	}
	x.Remedy.Proof = "Damaged frames for each gigabyte before and after each change; the counter of another card of this host as a control must not change."
	return x
}

// wrongSums: packets came in good frames and with wrong checksums inside.
func wrongSums(s *evidence.Span) *evidence.Finding {
	tcp, udp := s.Count("Tcp.InCsumErrors"), s.Count("Udp.InCsumErrors")
	came := s.Count("Tcp.InSegs") + s.Count("Udp.InDatagrams")
	wrong := tcp + udp
	// ICMP is left out: it has no sender that waits for it.
	if wrong < fewest || came <= 0 || wrong/came < brokenSums {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.CRCErrors, Severity: evidence.Notice, Where: where(s), Confidence: 0.6,
		Title: fmt.Sprintf("Packets with a wrong checksum: %s came %s in good frames, so something on the way broke them.", evidence.Count(wrong), s.When()),
		Evidence: []evidence.Evidence{
			{Name: "segments of TCP with a wrong checksum", Value: tcp, Unit: "packets",
				Source: s.Source("/proc/net/snmp Tcp.InCsumErrors")},
			{Name: "datagrams of UDP with a wrong checksum", Value: udp, Unit: "packets",
				Source: s.Source("/proc/net/snmp Udp.InCsumErrors")},
			{Name: "share of what came", Value: wrong / came, Unit: "ratio",
				Source: s.Source("InCsumErrors / (Tcp.InSegs + Udp.InDatagrams)")},
		},
		Rejected: append([]string{fmt.Sprintf("Not this host's cable: its cards counted %s damaged frames.",
			evidence.Count(s.Sum("nic.", ".rx_crc_errors")))},
			notMeasured(s)...),
	}
	if !s.SinceBoot && wrong/came >= feltShare {
		x.Severity = evidence.Warning
	}
	x.Remedy.Text = "A device on the way with bad memory, or a checksum offload that is wrong: switch transmit checksums of the sender, and receive checksums here, " +
		"off for a test. What the TCP checksum lets through, some 1 in 65 000 of such packets, reaches programs broken."
	// Only where the card does it: without the offload the kernel has added up itself, and it does
	// not err.
	for _, c := range cardsOf(s) {
		if f, ok := c.Features["rx-checksum"]; ok && f.On && !f.Fixed {
			x.Remedy.Knobs = append(x.Remedy.Knobs, string(c.ethtool("feature.rx-checksum")))
		}
	}
	x.Remedy.Proof = "The same load with the offload on and off by turns, counting wrong checksums: if they do not follow it, something else on the way breaks the packets."
	return x
}
