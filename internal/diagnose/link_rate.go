package diagnose

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// steadyQueued is how much interim rates may scatter if a queue proves the bottleneck,
	// steadyBare if flatness is the only evidence.
	steadyQueued = 0.10
	steadyBare   = 0.05
	// heavyLoss is more than a sender at a full link causes once it has left slow start. The
	// verdict then mentions the loss, without a claim about its origin.
	heavyLoss = 0.01
)

// linkRateReached returns the verdict that the slowest link is full, by its known speed or by the
// behaviour of the flow; nil if it is not.
func linkRateReached(f *evidence.Flow) *evidence.Finding {
	if f.AtLinkRate() {
		return knownLinkReached(f)
	}
	return pathRateReached(f)
}

// knownLinkReached returns the verdict for a full physical link of known speed.
func knownLinkReached(f *evidence.Flow) *evidence.Finding {
	link, at, _ := f.SlowestLink()
	ceiling := evidence.Goodput(link)
	x := &evidence.Finding{
		Code: evidence.LinkRateReached, Severity: evidence.Info, Where: at.Name,
		Title: fmt.Sprintf("The link %s at the %s host carries %s, which is %s of its payload capacity of %s; "+
			"nothing to tune here.",
			link.Name, at.Name, evidence.Rate(f.RateBitsPerSec), evidence.Percent(f.RateBitsPerSec/ceiling),
			evidence.Rate(ceiling)),
		Evidence: append(f.Common(),
			evidence.Evidence{Name: "link speed of " + link.Name, Value: link.SpeedBitsPerSec, Unit: "bits_per_second",
				Source: "ethtool link mode (" + at.Name + ")"},
			evidence.Evidence{Name: "payload ceiling at this MTU", Value: ceiling, Unit: "bits_per_second",
				Source: "speed × (MTU − 52) / (MTU + 38)"}),
		Confidence: 0.97,
	}
	rejectHostLimits(f, x)
	x.Remedy.Text = "Nothing to tune here. A faster link, a second one, or a larger MTU end to end would help."
	return x
}

// pathRateReached returns the verdict for a flow that behaves as behind a bottleneck although no
// known link is full: always busy, limited by no window, flat, and either with a queue in front of
// the bottleneck, or paced to its rate with next to no loss.
//
// Inside one machine a flat rate means a saturated CPU, so a short path needs a queue of several
// milliseconds and idle CPUs.
//
// It needs at least three intervals, because two rates are always "flat" within some margin, and
// four if flatness is the only evidence. The limits of the windows are halved (limitedShare/2),
// because this verdict says "nothing to tune" and a mistake ends the search.
func pathRateReached(f *evidence.Flow) *evidence.Finding {
	if f.Streams == 0 || f.RateBitsPerSec <= 0 || f.Base() <= 0 || f.Intervals < 3 {
		return nil
	}
	queued := f.Queued()
	windowFree := f.Share(f.RwndLimitedSeconds) < evidence.LimitedShare/2 || queued && !f.FillsWindow()
	bufferFree := f.Share(f.SndbufLimitedSeconds) < evidence.LimitedShare/2 || queued
	if !windowFree || !bufferFree || !f.AlwaysBusy() {
		return nil
	}
	_, _, busy, known := f.BusiestOf()
	full := known && busy >= 0.95
	if f.ShortPath() && (f.Added() < 0.005 || known && busy >= 0.9) {
		return nil
	}
	byQueue := queued && f.ScatterRatio <= steadyQueued
	byPacing := f.ScatterRatio <= steadyBare && f.Intervals >= 4 && (f.Loss() < 1e-3 || f.ModelBased()) &&
		!full && !opening(f)
	if !byQueue && !byPacing {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.LinkRateReached, Severity: evidence.Info, Where: "path",
		Title: fmt.Sprintf("The path delivers a steady %s and neither host limits it; nothing to tune here.",
			evidence.Rate(f.RateBitsPerSec)),
		Evidence: append(f.Common(),
			evidence.Evidence{Name: "scatter of the interim rates", Value: f.ScatterRatio, Unit: "ratio",
				Source: fmt.Sprintf("standard deviation / mean of %d intervals", f.Intervals)},
			evidence.Evidence{Name: "segments sent again", Value: f.Loss(), Unit: "ratio",
				Source: f.TCPInfo("tcpi_total_retrans / tcpi_segs_out")},
			evidence.Evidence{Name: "busy time limited by the receive window", Value: f.Share(f.RwndLimitedSeconds),
				Unit: "ratio", Source: f.TCPInfo("tcpi_rwnd_limited / tcpi_busy_time")},
			evidence.Evidence{Name: "busy time limited by the send buffer", Value: f.Share(f.SndbufLimitedSeconds),
				Unit: "ratio", Source: f.TCPInfo("tcpi_sndbuf_limited / tcpi_busy_time")},
		),
		Confidence: evidence.Combine(0.5, evidence.When(byQueue, 0.7), evidence.When(byPacing && f.ModelBased(), 0.5),
			evidence.When(byPacing, 0.3), evidence.When(!full, 0.2)),
	}
	if f.Loss() >= heavyLoss {
		x.Title = fmt.Sprintf(
			"The path delivers a steady %s and neither host limits it, but %s of the segments were retransmitted.",
			evidence.Rate(f.RateBitsPerSec), evidence.Percent(f.Loss()))
		x.Confidence *= 0.7
	}
	if queued {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "queueing delay under load", Value: f.Added(),
			Unit: "seconds", Source: "loaded round trip less smallest"})
	}
	for _, e := range []evidence.End{f.Sender, f.Receiver} {
		if e.Card != nil && slices.Contains([]string{"tbf", "htb", "hfsc", "cake"}, e.Card.Qdisc) {
			x.Evidence = append(x.Evidence, evidence.Evidence{Name: "queueing discipline of " + e.Card.Name,
				Value: e.Card.Qdisc, Source: "rtnetlink (" + e.Name + "); it can shape"})
		}
	}
	rejectHostLimits(f, x)
	x.Remedy.Text = "Nothing to tune here: the slowest link or a shaper between the hosts sets the rate. " +
		"A faster path would help."
	return x
}

// opening reports whether the congestion window of a loss-based sender still grows from interval to
// interval while nothing queues. A rate that is flat only because the window grows slowly, as that
// of reno does on a long path, is not the rate of a link. Readings of a constant window differ by
// less than a twentieth over the run.
func opening(f *evidence.Flow) bool {
	if f.ModelBased() || f.Queued() {
		return false
	}
	var first, last float64
	for _, i := range f.Run.Intervals {
		switch {
		case i.Omitted || i.CwndBytes <= 0:
		case first == 0:
			first, last = i.CwndBytes, i.CwndBytes
		case i.CwndBytes < last:
			return false
		default:
			last = i.CwndBytes
		}
	}
	return last > 1.05*first
}

// rejectHostLimits adds why the limits inside the hosts are ruled out.
func rejectHostLimits(f *evidence.Flow, x *evidence.Finding) {
	if f.Streams > 0 {
		x.Rejected = append(x.Rejected, f.NotReceiveWindow(), f.NotSendBuffer())
		if f.Queued() && f.Loss() < heavyLoss {
			x.Rejected = append(x.Rejected,
				fmt.Sprintf("Not random loss: the queue at the bottleneck adds %s to the round trip, "+
					"and %s of the segments were retransmitted.",
					evidence.Seconds(f.Added()), evidence.Percent(f.Loss())))
		} else {
			x.Rejected = append(x.Rejected, f.NotLoss())
		}
	}
	x.Rejected = append(x.Rejected, f.NotProcessor()...)
}
