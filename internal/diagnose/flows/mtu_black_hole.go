package flows

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/traffic"
)

// stalledBytes is so little for a run of seconds that no large segment got through: handshakes and
// control messages fit into it.
const stalledBytes = 64 << 10

// mtuBlackHole finds that the path drops packets above some size without a message, so that
// connections open and then stall.
//
// Three signs raise the suspicion: a stream that moved next to nothing, or failed, while pings are
// answered; a kernel that probed for a smaller size itself (tcp_mtu_probing, TCPMTUPSuccess and
// TCPMTUPFail); segments smaller than path MTU and handshake allow. The rule then asks for a probe
// with packets that must not be fragmented. Look-alikes: a path with random loss loses small
// packets too; a path that reports its MTU (ICMP) has no hole; a smaller segment size negotiated in
// the handshake is not one either.
func mtuBlackHole(c *evidence.Case) *evidence.Finding {
	flows := evidence.FlowsOf(c)
	for _, f := range flows {
		if stalledStream(f) || probedMTU(f.Sender) > 0 || smallSegments(f) > 0 {
			return judgeHole(c, f)
		}
	}
	// No stream ran at all, although the hosts exchange packets.
	if _, refused := c.Refused[evidence.Probe("stream")]; refused && len(flows) == 0 && answered(c) {
		return judgeHole(c, nil)
	}
	// The probe may have run for another rule; report what vanished there.
	if r, tried := c.Probes[evidence.ProbeMTU]; tried && r.MTU != nil && (r.MTU.BlackHoleUp || r.MTU.BlackHoleDown) {
		return holeFound(c, nil, r.MTU)
	}
	return nil
}

// judgeHole asks for the probe. If the probe was refused, a stalled stream alone is a sign.
func judgeHole(c *evidence.Case, f *evidence.Flow) *evidence.Finding {
	r, ok := c.Ask(evidence.ProbeMTU)
	if ok && r.MTU != nil {
		if !r.MTU.BlackHoleUp && !r.MTU.BlackHoleDown {
			return nil
		}
		return holeFound(c, f, r.MTU)
	}
	if f == nil || !stalledStream(f) || f.MSSBytes < 1000 {
		return nil
	}
	if why, refused := c.Refused[evidence.ProbeMTU]; refused {
		x := &evidence.Finding{
			Code: evidence.MTUBlackHole, Severity: evidence.Critical, Where: "path",
			Title: fmt.Sprintf("Segments of %s do not get through: %s arrived in %s, while pings are answered in %s.",
				evidence.Bytes(f.MSSBytes), evidence.Bytes(float64(f.Run.Bytes)),
				evidence.Seconds(f.Run.DurationSeconds), evidence.Seconds(f.Base())),
			Evidence: append(f.Common(), holeEvidence(f)...),
			Rejected: []string{fmt.Sprintf("Not a path that is down: its round trip is %s.",
				evidence.Seconds(f.Base()))},
			Confidence: 0.55,
		}
		x.Rejected = append(x.Rejected, "Not measured: which size passes, because the probe could not run ("+why+").")
		holeRemedy(f.Sender.Name, 0, x)
		return x
	}
	return nil
}

// holeFound returns the finding; f is nil if no stream shows what the fault costs.
func holeFound(c *evidence.Case, f *evidence.Flow, m *traffic.PathMTU) *evidence.Finding {
	passes, way, sender := m.UpBytes, "up", "near"
	if !m.BlackHoleUp || f != nil && f.Direction == traffic.Down && m.BlackHoleDown {
		passes, way, sender = m.DownBytes, "down", "far"
	}
	own := m.LocalMTUBytes
	if way == "down" {
		own = m.RemoteMTUBytes
	}
	x := &evidence.Finding{
		Code: evidence.MTUBlackHole, Severity: evidence.Notice, Where: "path",
		Title: fmt.Sprintf("Packets of more than %d bytes from the %s host vanish on the path without a message.",
			passes, sender),
		Evidence: []evidence.Evidence{
			{Name: "largest packet that passes, " + way, Value: float64(passes), Unit: "bytes",
				Source: "probe mtu, packets with don't-fragment"},
			{Name: "larger packets are reported", Value: false, Source: "probe mtu: no ICMP message arrived"},
		},
		Rejected: []string{
			fmt.Sprintf("Not random loss: packets of up to %d bytes pass, and larger ones failed in every one of "+
				"several attempts.", passes)},
		Confidence: evidence.Combine(0.8, evidence.When(m.ReportedMTUBytes == 0, 0.3)),
	}
	if own > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "MTU of the sending interface", Value: float64(own),
			Unit: "bytes", Source: "interface (" + sender + ")"})
	}
	_, refused := c.Refused[evidence.Probe("stream")]
	switch {
	case f != nil && stalledStream(f):
		x.Severity = evidence.Critical
		x.Title = fmt.Sprintf(
			"Packets of more than %d bytes from the %s host vanish on the path without a message, "+
				"and streams stall: %s arrived in %s.",
			passes, sender, evidence.Bytes(float64(f.Run.Bytes)), evidence.Seconds(f.Run.DurationSeconds))
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not a path that is down: its round trip is %s.",
			evidence.Seconds(f.Base())))
		x.Confidence = evidence.Combine(x.Confidence, 0.5)
	case f == nil && refused:
		x.Severity = evidence.Critical
		x.Confidence = evidence.Combine(x.Confidence, 0.3)
	case f != nil:
		x.Severity = evidence.Warning
		x.Title = fmt.Sprintf(
			"Packets of more than %d bytes from the %s host vanish on the path without a message; "+
				"TCP learnt this from timeouts and now sends segments of %d bytes.",
			passes, sender, int(f.MSSBytes))
	}
	if f != nil {
		x.Evidence = append(x.Evidence, f.Common()...)
		x.Evidence = append(x.Evidence, holeEvidence(f)...)
	}
	holeRemedy(sender, passes, x)
	return x
}

// stalledStream reports whether next to nothing arrived, the sender retransmitted, and the path
// answers small packets.
func stalledStream(f *evidence.Flow) bool {
	if f.Run.Bytes >= stalledBytes || f.Run.DurationSeconds < 1 || f.Base() <= 0 {
		return false
	}
	return f.Retransmits > 0 || f.Sender.Run.Counters["TcpExt.TCPTimeouts"] > 0
}

// probedMTU returns how often the sending kernel probed which segments pass.
func probedMTU(e evidence.End) float64 {
	// With tcp_mtu_probing 2 the kernel probes sound paths as well.
	if always, ok := e.Setting(tcpMTUProbing); ok && always == "2" {
		return float64(e.Run.Counters["TcpExt.TCPMTUPFail"])
	}
	return float64(e.Run.Counters["TcpExt.TCPMTUPFail"] + e.Run.Counters["TcpExt.TCPMTUPSuccess"])
}

// answered reports whether the hosts exchange small packets.
func answered(c *evidence.Case) bool {
	for _, r := range c.Runs {
		if r.RTT != nil && r.RTT.Count > 0 && (r.Test == traffic.Ping || r.Test == traffic.RR) {
			return true
		}
	}
	return false
}

// holeEvidence returns what the stream showed.
func holeEvidence(f *evidence.Flow) []evidence.Evidence {
	c := f.Sender.Run.Counters
	return []evidence.Evidence{
		{Name: "segment size", Value: f.MSSBytes, Unit: "bytes", Source: f.TCPInfo("tcpi_snd_mss")},
		{Name: "segments sent again", Value: f.Retransmits, Unit: "segments", Source: f.TCPInfo("tcpi_total_retrans")},
		{Name: "retransmission timeouts", Value: float64(c["TcpExt.TCPTimeouts"]), Unit: "timeouts",
			Source: "TcpExt.TCPTimeouts (" + f.Sender.Name + ")"},
		{Name: "sizes tried by the kernel", Value: float64(c["TcpExt.TCPMTUPFail"] + c["TcpExt.TCPMTUPSuccess"]),
			Unit:   "tries",
			Source: "TcpExt.TCPMTUPFail + TCPMTUPSuccess (" + f.Sender.Name + ")"},
	}
}

const tcpMTUProbing = "sysctl:net.ipv4.tcp_mtu_probing"

func holeRemedy(sender string, passes int, x *evidence.Finding) {
	x.Remedy.Text = "Let ICMP \"fragmentation needed\" (type 3 code 4; ICMPv6 type 2) pass every firewall on the " +
		"path, and give tunnels their own MTU on both ends."
	if passes > 0 {
		x.Remedy.Text += fmt.Sprintf(
			" Until then, an MTU of %d on the route or probing by TCP itself gets through.", passes)
	}
	// 1 waits for some timeouts first, which last longer than many connections; 2 begins small and
	// probes upwards.
	x.Remedy.Add(evidence.Candidate{Knob: tcpMTUProbing, Side: sender, Levels: []knob.Value{"1", "2"},
		Why: "TCP tries smaller segments when large ones vanish, or from the start (RFC 4821)"})
	x.Remedy.Proof = "Open new connections with tcp_mtu_probing 0 and 2 alternately: with 0 they stall, " +
		"with 2 they flow at once (with 1 after some timeouts). Pings of 64 bytes must pass throughout."
}
