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
	// ownQueueShare is what loss-based senders lose by themselves at a queue that they fill: about
	// 1.5 over the square of their window in packets, one in a thousand at a window of 40. What is
	// lost beyond that at a link that is not full has another reason.
	ownQueueShare = 1e-3
	// watchedQueueShare is the same where nobody knows what the flows are: many short ones lose
	// more.
	watchedQueueShare = 1e-2
	// shapedShare is the part of the packets that had to wait for a shaper before it may be what
	// holds the traffic, mostShaped that from which it is: a shaper that is not the bottleneck has
	// tokens when a packet comes. One that is counts several for each packet, as it looks again and
	// again.
	shapedShare = 0.05
	mostShaped  = 0.5
)

// shapers are the disciplines that hold a rate below that of the link: it is what they are for, and
// what they were left behind from.
var shapers = []string{"tbf", "htb", "hfsc", "cbq", "cake"}

// qdiscDrops: the host's own queue in front of a card drops packets, or a shaper in it holds them
// back.
//
// A loss-based sender that fills its link fills this queue as well and loses packets in it: that is
// how it finds the rate, so at a full link nothing is said. What is left is a queue too short for
// the bursts of its flows (a few places, a limit for each flow), and a shaper. A shaper says itself
// that it works (overlimits), not at what rate; that the traffic stays below the link and nothing
// but the shaper made it wait tells it.
func qdiscDrops(s *evidence.Span) *evidence.Finding {
	if !sends(s) {
		return nil
	}
	return worst(interfacesOf(s), queueDrops)
}

// queueDrops weighs what the disciplines of one interface dropped and held back. The counters are
// those of the discipline of a tree that says most (package host).
func queueDrops(c card) *evidence.Finding {
	s := c.s
	q, shaped := c.qdisc()
	drops, over := s.Count("qdisc."+c.Name+".drops"), s.Count("qdisc."+c.Name+".overlimits")
	if s.SinceBoot && drops == 0 {
		drops, over = float64(q.Drops), float64(q.Overlimits)
	}
	sent := c.count("tx_packets")
	share := drops / max(drops+sent, 1)
	// Overlimits of a shaper that nothing presses are a few, of packets that came in one burst.
	holds := shaped && over >= shapedShare*(sent+drops) && over >= fewest
	if drops < fewest && !holds || c.linkFull() || c.wireFull() {
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
				Source: "drops / (drops + tx_packets) of " + c.Name + " (" + s.Side + ")"},
		},
		Rejected: notMeasured(s),
		Confidence: evidence.Combine(0.5, evidence.When(holds, 0.4), evidence.When(severity == evidence.Warning, 0.4),
			evidence.When(share >= watchedQueueShare, 0.2)),
	}
	if q.Kind != "" {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "discipline", Value: q.Kind,
			Source: "tc qdisc show dev " + c.Name + " (" + s.Side + ")"})
	}
	x.Title = fmt.Sprintf("The queue in front of %s dropped %s packets %s, %s of what was to be sent.", c.Name,
		evidence.Count(drops), s.When(), evidence.Percent(share))
	if holds {
		// Its rate is not read (tc(8) has it in classes and options of each kind): what passed it
		// is as good a figure where it holds.
		rate := c.rate("tx")
		x.Title = fmt.Sprintf("A shaper (%s) at %s holds the traffic at %s", q.Kind, c.Name, evidence.Rate(rate))
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
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not the path: of %s packets that the flow lost %s died in this queue.",
					evidence.Count(again),
					evidence.Count(min(drops, again))))
		}
	}
	// Of software the speed is a number that somebody typed, and no link is full there.
	if c.SpeedBitsPerSec > 0 && !c.Virtual && s.Seconds > 0 {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not a full link: %s sent %s of %s.", c.Name,
			evidence.Rate(c.rate("tx")), evidence.Rate(c.SpeedBitsPerSec)))
	}
	queueRemedy(c, x, q, holds)
	return x
}

// weighQueue says how much the drops, or the shaper, matter. False: they do not.
func (c card) weighQueue(drops, share float64, holds bool) (evidence.Severity, bool) {
	s := c.s
	again, ratio, known := repaired(s)
	warn := false
	switch {
	case s.SinceBoot:
		// A shaper that worked at some time is what somebody wanted.
		if share < ownQueueShare {
			return "", false
		}
	case s.Loaded():
		// With several streams each has a window of its own, so that together they lose more at a
		// queue that is theirs alone.
		bound := ownQueueShare * max(float64(s.Run.Streams), 1)
		felt := known && ratio >= evidence.MinLoss && drops >= ownShare*again
		warn = felt && (share >= bound || holds && share >= ownQueueShare)
		// Without drops a shaper holds the flow all the same: the small queues of TCP keep it from
		// filling that of the shaper.
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

// mostWaited tells that most packets found the shaper without tokens.
func (c card) mostWaited() bool {
	return c.s.Count("qdisc."+c.Name+".overlimits") >= mostShaped*max(c.count("tx_packets"), 1)
}

// nothingElse tells that neither a processor nor a window of the run holds its flow, so that what
// the shaper made wait is what holds it.
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

// wireFull tells that this interface sent at the rate of its link, whoever sent. Speeds of software
// are numbers that somebody typed.
func (c card) wireFull() bool {
	rate := c.rate("tx")
	return !c.Virtual && rate >= 0.9*c.SpeedBitsPerSec && rate > 0 && rate <= 1.1*c.SpeedBitsPerSec
}

// qdisc is the discipline of this interface that dropped most, or shapes; shaped tells the latter.
func (c card) qdisc() (found host.Qdisc, shaped bool) {
	for _, q := range c.s.Host.Qdiscs {
		if q.Interface != c.Name {
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

// queueRemedy offers what the discipline at hand has: a longer queue, or its removal where it
// shapes.
func queueRemedy(c card, x *evidence.Finding, q host.Qdisc, holds bool) {
	side := where(c.s)
	x.Remedy.Proof = "The same load with the old and the new queue by turns: drops for each gigabyte go away; the round trip under load shows the price of a longer queue."
	if holds {
		x.Remedy.Text = fmt.Sprintf(
			"Find out who put the shaper at %s and whether it is still wanted (tc qdisc show dev %s, tc class show dev %s). `tc qdisc del dev "+
				"%s root` takes it away, if nobody wants it.",
			c.Name, c.Name, c.Name, c.Name)
		x.Remedy.Knobs = []string{"qdisc:" + c.Name + "/root"}
		x.Remedy.Proof = "The same load without the shaper and with it by turns: the rate follows; a flow by another interface as a control must not change."
		return
	}
	if q.Kind == "netem" {
		x.Remedy.Text = fmt.Sprintf(
			"The emulator netem is there to harm traffic on purpose: `tc qdisc del dev %s root` takes it away when the test is over.", c.Name)
		x.Remedy.Knobs = []string{"qdisc:" + c.Name + "/root"}
		return
	}
	x.Remedy.Text = "Give the queue more places, the fewest that stop the drops, or a discipline that keeps flows apart (fq, fq_codel)."
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
			Why:    "places of pfifo_fast, and of a pfifo that was made without a limit of its own"})
		fallthrough
	default:
		x.Remedy.Add(evidence.Candidate{Knob: knob.ID("qdisc:" + c.Name + "/root"), Side: side,
			Levels: []knob.Value{"fq_codel"},
			Why:    "10 240 places, and short queues for each flow"})
	}
}

// multiples are two and four times a number, or the kernel's default where somebody had set far
// less. No more than that: each place is a packet that the next one may have to wait for.
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
