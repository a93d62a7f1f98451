package cards

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

const (
	// ownQueueShare is what loss-based senders lose normally at a queue that they fill: about 1.5
	// over the square of their window in packets, one in a thousand at a window of 40. Losses above
	// that at a link that is not full have another reason.
	ownQueueShare = 1e-3
	// watchedQueueShare is the same for unknown flows: many short ones lose more.
	watchedQueueShare = 1e-2
	// shapedShare is the share of packets that a shaper must have delayed before it may limit the
	// traffic, mostShaped the share from which on it does: a shaper that is not the bottleneck has
	// tokens when a packet arrives. A delayed packet counts several times, because the shaper
	// checks again and again.
	shapedShare = 0.05
	mostShaped  = 0.5
)

// shapers are the disciplines that keep the rate below that of the link.
var shapers = []string{"tbf", "htb", "hfsc", "cbq", "cake"}

// qdiscDrops finds that the host's own queue in front of a NIC drops packets, or that a shaper in
// it delays them.
//
// A loss-based sender that fills its link fills this queue as well and loses packets in it, which
// is how it finds the rate; so the rule is silent at a full link. What remains is a queue too short
// for the bursts of its flows (a small limit, or one per flow), and a shaper. A shaper reports that
// it works (overlimits) but not at what rate; the evidence is that the traffic stays below the link
// rate and that nothing but the shaper delayed it.
func qdiscDrops(s *evidence.Span) *evidence.Finding {
	if !sends(s) {
		return nil
	}
	return worst(interfacesOf(s), queueDrops)
}

// queueDrops weighs what the disciplines of one interface dropped and delayed. The counters are
// those of the most informative discipline of the tree (package host).
func queueDrops(c card) *evidence.Finding {
	s := c.s
	filtered, counted := c.filtered()
	if _, _, arriving := c.entrance(); arriving && !counted {
		return nil // see ingressPolicer
	}
	q, shaped := c.qdisc()
	drops, over := s.Count("qdisc."+c.Name+".drops")-filtered, s.Count("qdisc."+c.Name+".overlimits")
	if s.SinceBoot && drops == 0 {
		drops, over = float64(q.Drops), float64(q.Overlimits)
	}
	sent, source := c.sent()
	share := drops / max(drops+sent, 1)
	// A shaper that is not the bottleneck has a few overlimits, from packets that arrive in one
	// burst.
	holds := shaped && over >= shapedShare*(sent+drops) && over >= fewest
	if drops < fewest && !holds || c.linkFull() || c.wireFull() || sent == 0 && source == "" {
		return nil
	}
	severity, ok := c.weighQueue(drops, share, holds)
	if !ok {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.QdiscDrops, Severity: severity, Where: where(s),
		Evidence: []evidence.Evidence{
			{Name: "packets dropped before the card", Value: drops, Unit: "packets",
				Source: s.Source("qdisc." + c.Name + ".drops")},
			{Name: "share of what was to be sent", Value: share, Unit: "ratio",
				Source: "drops / (drops + " + source + ") of " + c.Name + " (" + s.Side + ")"},
		},
		Rejected: notMeasured(s),
		Confidence: evidence.Combine(0.5, evidence.When(holds, 0.4), evidence.When(severity == evidence.Warning, 0.4),
			evidence.When(share >= watchedQueueShare, 0.2)),
	}
	if !holds {
		x.LostPerSec = s.PerSecond(drops)
	}
	if q.Kind != "" {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "discipline", Value: q.Kind,
			Source: "tc qdisc show dev " + c.Name + " (" + s.Side + ")"})
	}
	x.Title = fmt.Sprintf("The queue in front of %s dropped %s packets %s, %s of those to be sent.", c.Name,
		evidence.Count(drops), s.When(), evidence.Percent(share))
	if holds {
		// The rule does not read the configured rate (tc(8) has it in classes and options of each
		// kind): what passed the shaper is as good a figure if it limits the traffic.
		rate := c.rate("tx")
		x.Title = fmt.Sprintf("A shaper (%s) at %s limits the traffic to %s", q.Kind, c.Name, evidence.Rate(rate))
		if drops >= fewest {
			x.Title += fmt.Sprintf(" and dropped %s packets", evidence.Count(drops))
		}
		x.Title += "."
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "packets that the shaper made wait", Value: over, Unit: "packets",
				Source: s.Source("qdisc." + c.Name + ".overlimits")},
			evidence.Evidence{Name: "sent by the interface", Value: rate, Unit: "bits_per_second",
				Source: c.source("tx_bytes")})
	}
	if again, ratio, known := repaired(s); known {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "share of the flow that was lost", Value: ratio,
			Unit:   "ratio",
			Source: "tcpi_total_retrans, less tcpi_dsack_dups (sender)"})
		if again > 0 {
			x.Rejected = append(x.Rejected, c.notThePath("queue", drops, again))
			if drops < ownShare*again && c.mostSegments(drops) > drops {
				x.Confidence *= 0.8
			}
		}
	}
	// The speed of a software interface is a configured number, so its link is never full.
	if c.SpeedBitsPerSec > 0 && !c.Virtual && s.Seconds > 0 {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not a full link: %s sent %s of %s.", c.Name,
			evidence.Rate(c.rate("tx")), evidence.Rate(c.SpeedBitsPerSec)))
	}
	queueRemedy(c, x, q, holds)
	return x
}

// sent returns the packets that passed the queue and the name of their counter. A report may have
// the disciplines without the counters of the interface; empty: neither is known.
func (c card) sent() (packets float64, source string) {
	_, known := c.s.Counters["nic."+c.Name+".tx_packets"]
	if _, read := c.Counters["tx_packets"]; known || read || !c.s.SinceBoot {
		return c.count("tx_packets"), "tx_packets"
	}
	for _, q := range c.s.Host.Qdiscs {
		// A discipline above others has their sum.
		if q.Interface == c.Name && !slices.Contains(entrances, q.Kind) && float64(q.Packets) > packets {
			packets, source = float64(q.Packets), "packets of the discipline"
		}
	}
	return packets, source
}

// weighQueue returns the severity of the drops, or of the shaper; false if they do not matter.
func (c card) weighQueue(drops, share float64, holds bool) (evidence.Severity, bool) {
	s := c.s
	again, ratio, known := repaired(s)
	warn := false
	switch {
	case s.SinceBoot:
		// A shaper that worked at some time in the past may be intended.
		if share < ownQueueShare {
			return "", false
		}
	case s.Loaded():
		// Several streams have a window each, so that together they lose more at a queue of their
		// own.
		bound := ownQueueShare * max(float64(s.Run.Streams), 1)
		felt := known && ratio >= evidence.MinLoss && c.mostSegments(drops) >= ownShare*again
		warn = felt && (share >= bound || holds && share >= ownQueueShare)
		// A shaper limits the flow even without drops: TCP small queues keep the flow from filling
		// the queue of the shaper.
		warn = warn || holds && (c.mostWaited() || c.nothingElse())
		if !warn && share < evidence.MinLoss && !holds {
			return "", false
		}
	default:
		warn = share >= watchedQueueShare && s.PerSecond(drops) >= perSecond
		if !warn && share < ownQueueShare {
			return "", false
		}
	}
	if warn {
		return evidence.Warning, true
	}
	return evidence.Notice, true
}

// notThePath compares what the flow lost with what a queue or filter dropped.
func (c card) notThePath(place string, drops, again float64) string {
	if most := c.mostSegments(drops); drops < again && most > drops {
		return fmt.Sprintf("Not the path: of the %s packets that the flow lost, this %s dropped at least %s, and up to "+
			"%s: it counts a bundle of segments as 1.", evidence.Count(again), place, evidence.Count(drops),
			evidence.Count(min(most, again)))
	}
	return fmt.Sprintf("Not the path: of the %s packets that the flow lost, this %s dropped %s.",
		evidence.Count(again), place, evidence.Count(min(drops, again)))
}

// mostSegments returns how many segments of the run these drops can have been: the discipline
// counts a bundle as one, which TCP made at the sender, or GRO at the receiver.
func (c card) mostSegments(drops float64) float64 {
	if !c.Features["tx-tcp-segmentation"].On && !c.Features["tx-generic-segmentation"].On &&
		(sends(c.s) || !c.Features["rx-gro"].On) {
		return drops
	}
	for _, e := range []traffic.End{c.s.Run.Ends.Local, c.s.Run.Ends.Remote} {
		for _, t := range e.TCP {
			if t.Sender {
				return drops * evidence.InOne(float64(t.SndMSSBytes))
			}
		}
	}
	return drops
}

// mostWaited reports whether most packets found the shaper without tokens.
func (c card) mostWaited() bool {
	return c.s.Count("qdisc."+c.Name+".overlimits") >= mostShaped*max(c.count("tx_packets"), 1)
}

// nothingElse reports whether neither a CPU nor a window limits the flow of the run, so that the
// shaper does.
func (c card) nothingElse() bool {
	if cpu := busiest(c.s); cpu.Known && cpu.Busy() >= evidence.FullProcessor {
		return false
	}
	var busy, held float64
	for _, e := range []traffic.End{c.s.Run.Ends.Local, c.s.Run.Ends.Remote} {
		for _, t := range e.TCP {
			if t.Sender {
				busy, held = busy+t.BusySeconds, held+t.RwndLimitedSeconds+t.SndbufLimitedSeconds
			}
		}
	}
	return busy > 0 && held < evidence.LimitedShare*busy
}

// wireFull reports whether this interface sent at its link rate, with any traffic. The speed of a
// software interface does not count.
func (c card) wireFull() bool {
	rate := c.rate("tx")
	return !c.Virtual && rate >= 0.9*c.SpeedBitsPerSec && rate > 0 && rate <= 1.1*c.SpeedBitsPerSec
}

// qdisc returns the discipline of this interface that dropped most or shapes, and whether it
// shapes.
func (c card) qdisc() (found host.Qdisc, shaped bool) {
	for _, q := range c.s.Host.Qdiscs {
		if q.Interface != c.Name || slices.Contains(entrances, q.Kind) {
			continue
		}
		isShaper := slices.Contains(shapers, q.Kind)
		if found.Kind == "" || isShaper && !shaped || isShaper == shaped && q.Drops > found.Drops {
			found = q
		}
		shaped = shaped || isShaper
	}
	return found, shaped
}

// queueRemedy proposes what the discipline allows: a longer queue, or its removal if it shapes.
func queueRemedy(c card, x *evidence.Finding, q host.Qdisc, holds bool) {
	side := where(c.s)
	x.Remedy.Proof = "Run the same load with the old and the new queue alternately: the drops per gigabyte stop; " +
		"the round trip under load shows the price of a longer queue."
	if holds {
		x.Remedy.Text = fmt.Sprintf(
			"Find out why %s has a shaper and whether it is still needed (tc qdisc show dev %s, "+
				"tc class show dev %s). If not, remove it with `tc qdisc del dev %s root`.",
			c.Name, c.Name, c.Name, c.Name)
		x.Remedy.Knobs = []string{"qdisc:" + c.Name + "/root"}
		x.Remedy.Proof = "Run the same load without and with the shaper alternately: the rate follows; " +
			"a flow over another interface, the control, must not change."
		return
	}
	if q.Kind == "netem" {
		x.Remedy.Text = fmt.Sprintf(
			"The emulator netem impairs traffic on purpose: `tc qdisc del dev %s root` removes it after the test.",
			c.Name)
		x.Remedy.Knobs = []string{"qdisc:" + c.Name + "/root"}
		return
	}
	x.Remedy.Text = "Lengthen the queue, by as little as stops the drops, or use a discipline that separates " +
		"flows (fq, fq_codel)."
	switch q.Kind {
	case "fq":
		x.Remedy.Add(evidence.Candidate{Knob: knob.ID("qdisc:" + c.Name + "/fq.flow_limit"), Side: side,
			Levels: multiples(q.Parameters["flow_limit"], 100),
			Why:    "fq drops what one flow queues beyond this"})
		x.Remedy.Add(evidence.Candidate{Knob: knob.ID("qdisc:" + c.Name + "/fq.limit"), Side: side,
			Levels: evidence.Last(multiples(q.Parameters["limit"], 10000)),
			Why:    "packets of all flows"})
	case "pfifo_fast", "pfifo", "":
		x.Remedy.Add(evidence.Candidate{Knob: knob.ID("link:" + c.Name + "/txqueuelen"), Side: side,
			Levels: multiples(strconv.Itoa(c.TxQueueLen), 1000),
			Why:    "the limit of pfifo_fast, and of a pfifo without a limit of its own"})
		fallthrough
	default:
		x.Remedy.Add(evidence.Candidate{Knob: knob.ID("qdisc:" + c.Name + "/root"), Side: side,
			Levels: []knob.Value{"fq_codel"},
			Why:    "10 240 packets, and short queues for each flow"})
	}
}

// multiples returns two and four times a number, or the kernel's default if the number is far below
// it. It returns no more, because each packet in the queue delays the next one.
func multiples(now string, otherwise int) []knob.Value {
	n, err := strconv.Atoi(now)
	if err != nil || n <= 0 {
		n = otherwise
	}
	if n < otherwise/2 {
		return []knob.Value{knob.Value(strconv.Itoa(otherwise))}
	}
	return []knob.Value{knob.Value(strconv.Itoa(2 * n)), knob.Value(strconv.Itoa(4 * n))}
}
