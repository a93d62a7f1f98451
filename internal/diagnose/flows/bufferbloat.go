package flows

import (
	"fmt"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// bloatNotice and bloatWarning are what a queue adds to the round trip, in seconds. A voice call
// tolerates about 30 ms on top of a short path (ITU-T G.114 asks for 150 ms one way, including the
// codec); from 100 ms on users notice every click. Half a second is too much on any path.
const bloatNotice, bloatWarning, bloatGross = 0.030, 0.100, 0.500

// bufferbloat finds a queue on the path that holds far more than it needs to keep its link busy, so
// that all other traffic waits behind it.
//
// The delay must be large in relation to the path: a buffer of one bandwidth-delay product at most
// doubles the round trip, and loss-based senders need that much to fill a link. A notice therefore
// needs twice the idle round trip, and a warning two and a half times, or half a second on any
// path.
//
// Look-alikes: saturated CPUs on both hosts of a short path delay everything by milliseconds; a
// long path is slow when idle as well; a shorter queue is a full link and not a fault. A full link
// excludes nothing here, so the rule examines every flow.
func bufferbloat(c *evidence.Case) *evidence.Finding {
	var worst *evidence.Flow
	for _, f := range evidence.FlowsOf(c) {
		if f.Base() > 0 && f.RateBitsPerSec > 0 && (worst == nil || f.Added() > worst.Added()) {
			worst = f
		}
	}
	if worst == nil {
		return nil
	}
	f := worst
	loaded := f.UnderLoad()
	severity := evidence.Notice
	switch {
	case f.Added() >= bloatWarning && (loaded >= 2.5*f.Base() || f.Added() >= bloatGross):
		severity = evidence.Warning
	case f.Added() < bloatNotice || loaded < 2*f.Base():
		return nil
	}
	_, _, busy, known := f.BusiestOf()
	if f.ShortPath() && known && busy >= evidence.FullProcessor {
		return nil
	}
	queue := f.RateBitsPerSec / 8 * f.Added()
	x := &evidence.Finding{
		Code: evidence.Bufferbloat, Severity: severity, Where: "path",
		Title: fmt.Sprintf("Under load the round trip grows from %s to %s: about %s wait in a queue on the path, "+
			"at a rate of %s.",
			evidence.Seconds(f.Base()), evidence.Seconds(loaded), evidence.Bytes(queue),
			evidence.Rate(f.RateBitsPerSec)),
		Evidence: append(f.Common(),
			evidence.Evidence{Name: "added by the queue", Value: f.Added(), Unit: "seconds",
				Source: "round trip under load less the smallest"},
			evidence.Evidence{Name: "bytes in the queue", Value: queue, Unit: "bytes",
				Source: "rate × added round trip"}),
		Rejected: []string{
			fmt.Sprintf("Not a long path: its idle round trip is %s.", evidence.Seconds(f.Base())),
			fmt.Sprintf("Not loss alone, which adds no delay: the sender had %s in flight, "+
				"and %s of the segments were retransmitted.",
				evidence.Bytes(f.InFlight()), evidence.Percent(f.Loss())),
		},
		Confidence: evidence.Combine(0.6, evidence.When(severity == evidence.Warning, 0.5),
			evidence.When(f.IdleRTTSeconds > 0, 0.4),
			evidence.When(f.ScatterRatio <= 0.10, 0.3)),
	}
	if p := f.Run.RTT; p != nil && p.P50 > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "pings beside the load, median", Value: p.P50,
			Unit: "seconds", Source: "ping"})
		x.Confidence = evidence.Combine(x.Confidence, 0.3)
	}
	x.Rejected = append(x.Rejected, f.NotProcessor()...)
	bufferbloatRemedy(f, x, queue)
	return x
}

// bufferbloatRemedy names the queue if it is in the sending host, and otherwise what keeps a remote
// queue short.
func bufferbloatRemedy(f *evidence.Flow, x *evidence.Finding, queue float64) {
	x.Remedy.Proof = "Measure alternately with and without the remedy: the loaded round trip must fall, " +
		"throughput must fall by at most 5 %, and the idle round trip must stay the same."
	if card := f.Sender.Card; card != nil {
		name := "qdisc." + card.Name + ".backlog_bytes"
		if backlog := float64(f.Sender.Run.Counters[name]); backlog >= queue/2 {
			x.Where = f.Sender.Name
			x.Evidence = append(x.Evidence, evidence.Evidence{Name: "waiting in the queue of " + card.Name,
				Value: backlog, Unit: "bytes",
				Source: name + " (" + f.Sender.Name + ")"})
			x.Remedy.Text = fmt.Sprintf(
				"The queue is in %s at the %s host: a discipline that keeps it short (fq_codel) lets other flows "+
					"pass it.", card.Name, f.Sender.Name)
			x.Remedy.Add(evidence.Candidate{Knob: knob.ID("qdisc:" + card.Name + "/root"), Side: f.Sender.Name,
				Levels: []knob.Value{"fq_codel"},
				Why:    "drops or marks once packets wait for more than 5 ms, and serves flows in turn"})
			return
		}
	}
	x.Remedy.Text = "Let the device in front of the slow link keep its queue short (fq_codel, cake, " +
		"or a smaller buffer). If you do not control it, shape slightly below its rate on a host of your own " +
		"that all traffic passes."
	if candidateBBR(f, x, "bbr sends at the delivery rate and keeps the queue short, whatever its size") {
		x.Remedy.Text += fmt.Sprintf(" Flows of the %s host fill it less with bbr.", f.Sender.Name)
	}
}
