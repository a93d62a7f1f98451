package cards

import (
	"fmt"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host/nicstat"
)

const (
	// worstCable is one damaged frame in a million: at the bit error ratio of 10⁻¹⁰ that IEEE 802.3
	// allows a copper link at worst, one full frame in 800 000 is damaged; real links are a hundred
	// times better.
	worstCable = 1e-6
	// brokenCable is the share, over seconds, from which on the fault slows traffic: a loss-based
	// sender at a round trip of 20 ms reaches 220 Mb/s with it (Mathis).
	brokenCable = 1e-5
	// brokenSums is the share of segments with a wrong checksum that points to a device that
	// corrupts them, rather than a stray bit in some memory on the path.
	brokenSums = 1e-5
)

// crcErrors finds frames that arrive damaged. The NIC detects them by their checksum and discards
// them; protocols detect the rest by theirs.
//
// The counter of the NIC is a fact about this cable and its two ends. Frames that are too long are
// something different (two ends that disagree about the MTU), and damaged ones together with
// collisions are a duplex mismatch: both have classes of their own. Wrong checksums inside intact
// frames do not come from a cable: a device on the path, or an offload, corrupted the packet and
// put an intact frame around it.
func crcErrors(s *evidence.Span) *evidence.Finding {
	if x := worst(cardsOf(s), damaged); x != nil {
		return x
	}
	return wrongSums(s)
}

// damaged weighs the frames that one NIC discarded as damaged.
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
		// Damage is random and rarely coincides with what slows a flow: at a full link it costs
		// nothing visible, and the rule reports it all the same.
		warn = share >= brokenCable && ratio >= brokenCable && t.n >= ownShare*again
	default:
		warn = share >= brokenCable && s.PerSecond(t.n) >= 1
	}
	severity := evidence.Notice
	if warn {
		severity = evidence.Warning
	}
	x := c.lossFinding(evidence.CRCErrors, severity, t, frames, "damaged frames", c.tallies(nicstat.Damaged)...)
	x.Title = fmt.Sprintf("NIC %s received %s damaged frames %s, one in %s.", c.Name, evidence.Count(t.n),
		s.When(), evidence.Count(1/share))
	// No CPU damages a frame. Notices and warnings are equally certain: the NIC counted the frames.
	x.Rejected = notMeasured(s)
	x.Confidence = evidence.Combine(0.7, evidence.When(t.n >= 100, 0.5), evidence.When(share >= brokenCable, 0.4))
	if size, ok := c.lost(nicstat.Size); ok {
		x.Evidence = append(x.Evidence, c.evidence([]tally{size})...)
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not only frames of another size: %s were too long or too short, "+
				"which means that the two ends disagree about the MTU.",
				evidence.Count(size.n)))
	} else {
		x.Rejected = append(x.Rejected, "Not two ends that disagree about the MTU: 0 frames were too long.")
	}
	// The other half of a duplex mismatch looks like this at the end that runs full duplex, and no
	// counter here distinguishes it from a cable fault.
	if c.Duplex == "full" && c.count("collisions") == 0 {
		x.Rejected = append(x.Rejected,
			"Not half duplex at this end: it runs full duplex and counted 0 collisions. "+
				"The other end may still run half duplex, as its own counters would show.")
	}
	if aer := aerOf(c); aer != nil && aer.Correctable > 0 {
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "errors of the card's bus link that were repaired, since boot",
				Value: float64(aer.Correctable), Unit: "events",
				Source: c.source("aer_dev_correctable")})
	}
	x.Remedy.Text = "Change one thing at a time and count again: the cable, the transceiver, " +
		"the port at the other end. Clean the connectors of optical links and check the received power " +
		"(ethtool -m). Forward error correction that is off at one end also looks like this."
	if c.Card != nil && c.Card.FEC != nil {
		x.Remedy.Knobs = append(x.Remedy.Knobs, string(c.ethtool("fec")))
	}
	x.Remedy.Proof = "Compare damaged frames per gigabyte before and after each change; " +
		"the counter of another NIC of this host, the control, must not change."
	return x
}

// wrongSums finds packets with wrong checksums inside intact frames.
func wrongSums(s *evidence.Span) *evidence.Finding {
	tcp, udp := s.Count("Tcp.InCsumErrors"), s.Count("Udp.InCsumErrors")+s.Count("Udp6.InCsumErrors")
	// Those of TCP are of both IP versions. InDatagrams leaves datagrams with a wrong checksum out.
	came := s.Count("Tcp.InSegs") + s.Count("Udp.InDatagrams") + s.Count("Udp6.InDatagrams") + udp
	wrong := tcp + udp
	// ICMP is left out: no sender waits for it.
	if wrong < fewest || came <= 0 || wrong/came < brokenSums {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.CRCErrors, Severity: evidence.Notice, Where: where(s), Confidence: 0.6,
		LostPerSec: s.PerSecond(wrong),
		Title: fmt.Sprintf("Packets with a wrong checksum: %s arrived %s in intact frames, "+
			"so a device on the path corrupted them.", evidence.Count(wrong), s.When()),
		Evidence: []evidence.Evidence{
			{Name: "segments of TCP with a wrong checksum", Value: tcp, Unit: "packets",
				Source: s.Source("/proc/net/snmp Tcp.InCsumErrors")},
			{Name: "datagrams of UDP with a wrong checksum", Value: udp, Unit: "packets",
				Source: s.Source("/proc/net/snmp, snmp6 Udp.InCsumErrors + Udp6.InCsumErrors")},
			{Name: "share of what came", Value: wrong / came, Unit: "ratio",
				Source: s.Source("InCsumErrors / (Tcp.InSegs + datagrams)")},
		},
		Rejected: append([]string{fmt.Sprintf("Not this host's cable: its NICs counted %s damaged frames.",
			evidence.Count(s.Sum("nic.", ".rx_crc_errors")))},
			notMeasured(s)...),
	}
	if !s.SinceBoot && wrong/came >= feltShare {
		x.Severity = evidence.Warning
	}
	x.Remedy.Text = "Suspect a device on the path with bad memory, or a faulty checksum offload: " +
		"switch off transmit checksums of the sender and receive checksums here for a test. " +
		"Programs receive corrupted data from about 1 in 65 000 of such packets, " +
		"which the TCP checksum does not catch."
	// Only where the NIC checks: without the offload the kernel computes the sum itself, without
	// errors.
	for _, c := range cardsOf(s) {
		if f, ok := c.Features["rx-checksum"]; ok && f.On && !f.Fixed {
			x.Remedy.Knobs = append(x.Remedy.Knobs, string(c.ethtool("feature.rx-checksum")))
		}
	}
	x.Remedy.Proof = "Run the same load with the offload on and off alternately, and count wrong checksums: " +
		"if they do not follow it, something else on the path corrupts the packets."
	return x
}
