package flows

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/traffic"
)

// flowOf returns the flow of one more run between the hosts of a case, with the idle round trip of
// that case; nil if the run has no flow.
func flowOf(c *evidence.Case, r *evidence.Run) *evidence.Flow {
	alone := *c
	alone.Runs = slices.DeleteFunc(slices.Clone(c.Runs), func(x evidence.Run) bool { return x.Test == traffic.Stream })
	alone.Runs = append(alone.Runs, *r)
	if flows := evidence.FlowsOf(&alone); len(flows) > 0 {
		return flows[0]
	}
	return nil
}

// probed asks for a further stream and returns it as a flow; nil if it has not run, or moved
// nothing.
func probed(f *evidence.Flow, p evidence.Probe) *evidence.Flow {
	r, ok := f.Case.Ask(p)
	if !ok {
		return nil
	}
	other := flowOf(f.Case, r)
	if other == nil || other.RateBitsPerSec <= 0 {
		return nil
	}
	return other
}

// ends returns the two hosts of a case with the NICs that join them, even without a stream.
func ends(c *evidence.Case) (near, far evidence.End) {
	f := flowOf(c, &evidence.Run{Test: traffic.Stream, Direction: traffic.Up})
	return f.Sender, f.Receiver
}

// lossEvents returns how often the sender took a loss for congestion: the recoveries and timeouts
// that its host counted, and at most as many as segments were retransmitted. A burst of losses is
// one event, and the bound of Mathis counts events. If the host counts none, every segment is one.
func lossEvents(f *evidence.Flow, repaired float64) float64 {
	c := f.Sender.Run.Counters
	events := float64(c["TcpExt.TCPSackRecovery"]+c["TcpExt.TCPRenoRecovery"]) + dataTimeouts(c)
	if events == 0 {
		return repaired
	}
	return min(events, repaired)
}

// oneOvershoot reports whether all retransmissions fall into one interim result. A sender that
// overshoots once loses hundreds of segments at that moment, which is not a rate of loss.
func oneOvershoot(f *evidence.Flow) bool {
	n := 0
	for _, i := range f.Run.Intervals {
		if !i.Omitted && i.RetransmitsTotal > 0 {
			n++
		}
	}
	return n == 1 && f.Intervals >= 4
}

// windowHeld reports whether a buffer of either host limited the flow for so long that it explains
// the rate.
func windowHeld(f *evidence.Flow) bool {
	return f.Share(f.RwndLimitedSeconds) >= evidence.LimitedShare ||
		f.Share(f.SndbufLimitedSeconds) >= evidence.LimitedShare
}

// droppedHere reports whether the hosts themselves counted drops of at least a fifth of the
// retransmissions, so that the path is not the main cause.
func droppedHere(f *evidence.Flow, repaired float64) bool {
	local, _ := hostDrops(f)
	return local > 0 && local >= 0.2*repaired
}

// hostDrops returns how many segments of an open connection both hosts may have dropped, and the
// place with the most drops.
func hostDrops(f *evidence.Flow) (total float64, where string) {
	for _, d := range f.SegmentDrops() {
		if total += float64(d.Total); where == "" {
			where = d.Place + " (" + d.End + ")"
		}
	}
	return total, where
}

// mostDropped is hostDrops with every packet as large as packets get.
func mostDropped(f *evidence.Flow) float64 {
	var most float64
	for _, d := range f.SegmentDrops() {
		if n := float64(d.Total); d.Bundles() {
			most += n * evidence.InOne(f.MSSBytes)
		} else {
			most += n
		}
	}
	return most
}

// reorderings returns how often the sender's kernel found that a segment was merely overtaken
// (tcpi_reord_seen, Linux 4.19). Older kernels count it for the whole host alone, where other
// programs' connections count as well: those say nothing about a flow that has its own count.
func reorderings(f *evidence.Flow) (events float64, source string) {
	for _, t := range f.Sender.Run.TCP {
		if t.Sender {
			events += float64(t.ReorderSeen)
		}
	}
	own := f.Sender.Host != nil && f.Sender.Host.OS == "linux" && evidence.KernelAtLeast(f.Sender.Host.Kernel, 4, 19)
	if events > 0 || own {
		return events, f.TCPInfo("tcpi_reord_seen")
	}
	counters := f.Sender.Run.Counters
	return float64(counters["TcpExt.TCPSACKReorder"] + counters["TcpExt.TCPTSReorder"] +
			counters["TcpExt.TCPRenoReorder"]),
		"TcpExt.TCPSACKReorder + TCPTSReorder + TCPRenoReorder (" + f.Sender.Name + ")"
}

// headerBytes is the size of the IPv4 and TCP headers with timestamps, which nearly all segments
// carry.
const headerBytes = 20 + 20 + 12

// smallSegments returns the segment size that the sender's path MTU and the receiver's announcement
// allow, if the actual segments are smaller: a device on the path lowered the announcement, or the
// kernel gave up on large segments (RFC 4821). It returns 0 if they are not smaller or that is
// unknown.
func smallSegments(f *evidence.Flow) (most int) {
	for _, t := range f.Sender.Run.TCP {
		if !t.Sender || t.SndMSSBytes <= 0 || t.PMTUBytes <= 0 {
			continue
		}
		most = t.PMTUBytes - headerBytes
		for _, r := range f.Receiver.Run.TCP {
			if !r.Sender && r.AdvMSSBytes > 0 {
				most = min(most, r.AdvMSSBytes)
			}
		}
		// Half of the largest window bounds a segment as well (tcp_bound_to_half_wnd).
		if half := int(t.MaxSndWndBytes / 2); half > 0 {
			most = min(most, half)
		}
		// The longer header of IPv6 and odd window sizes stay within 64 bytes.
		if t.SndMSSBytes < most-64 {
			return most
		}
	}
	return 0
}

// candidateBBR proposes bbr at the sender and reports whether its kernel offers it.
func candidateBBR(f *evidence.Flow, x *evidence.Finding, why string) bool {
	if f.ModelBased() || !slices.Contains(f.Sender.CongestionControls(), "bbr") {
		return false
	}
	x.Remedy.Add(evidence.Candidate{Knob: evidence.TCPCongestionControl, Side: f.Sender.Name,
		Levels: []knob.Value{"bbr"}, Why: why})
	return true
}

// lossEvidence returns the share of lost segments.
func lossEvidence(f *evidence.Flow, p float64) evidence.Evidence {
	return evidence.Evidence{Name: "segments sent again", Value: p, Unit: "ratio",
		Source: f.TCPInfo("tcpi_total_retrans / tcpi_segs_out, less tcpi_dsack_dups")}
}

// dropsEvidence returns what the hosts themselves dropped of the flow.
func dropsEvidence(local float64) evidence.Evidence {
	return evidence.Evidence{Name: "packets dropped inside the hosts", Value: local, Unit: "packets",
		Source: "counters of both ends"}
}

// notLocalDrops rejects the queues of the two hosts.
func notLocalDrops(f *evidence.Flow, repaired float64) string {
	local, where := hostDrops(f)
	if local == 0 {
		return "Not a queue of either host: no local counter of drops increased."
	}
	if most := mostDropped(f); most > local && most >= 0.2*repaired {
		return fmt.Sprintf("Not ruled out: a queue of a host. They dropped %s packets (%s), each of up to %s segments, "+
			"and %s segments were retransmitted.",
			evidence.Count(local), where, evidence.Count(evidence.InOne(f.MSSBytes)), evidence.Count(repaired))
	}
	return fmt.Sprintf("Not a queue of either host: they dropped %s packets (%s), "+
		"and %s segments were retransmitted.",
		evidence.Count(local), where, evidence.Count(repaired))
}

// heldOnShortPath reports whether the advertised window limits a flow on a path of less than a
// millisecond. There the empty round trip is a few microseconds, in which no rate fills a window;
// the hosts' own turns are the round trip. Four facts together take the place of that arithmetic:
//
//   - The sender waited for the window for LimitedShare of its busy time.
//   - The reader never let its buffer run full, or had time: a reader that is slow, or waits for
//     its CPU, closes the window (TCPToZeroWindowAdv). With CPUs that have time left the reader of
//     a test is quick, and a closed window means a buffer of a few segments.
//   - No queue builds up, which the window would merely bound.
//   - Eight windows carry more than one, which they do not on a link that is full. Two hosts that
//     share CPUs may have no time for more; then eight windows must at least not wait in a queue:
//     at a full link they would, and the round trip would be that of all eight.
func heldOnShortPath(f *evidence.Flow) bool {
	c := f.Receiver.Run.Counters
	if !f.ShortPath() || f.Queued() || f.Share(f.RwndLimitedSeconds) < evidence.LimitedShare || f.Streams > fewStreams ||
		len(c) == 0 {
		return false
	}
	if _, busy, known := f.Receiver.Busiest(); c["TcpExt.TCPToZeroWindowAdv"] > 0 &&
		(!known || busy >= evidence.FullProcessor) {
		return false
	}
	run := probed(f, evidence.ProbeStreams)
	if run == nil {
		return false
	}
	gain := run.RateBitsPerSec / f.RateBitsPerSec
	all := run.WindowBytes * 8 / run.RateBitsPerSec // seconds in which the path carries eight windows
	return gain >= bufferGain || gain >= 1 && run.Loaded() > 0 && run.Loaded() < all/2 && run.Loss() < 10*cleanLoss
}
