package diagnose

import (
	"fmt"
	"slices"

	"github.com/linerate/linerate/internal/ceiling"
	"github.com/linerate/linerate/internal/host"
)

const (
	// lineRateShare of the goodput ceiling counts as reached: the rest is start, recovery and acknowledgements.
	lineRateShare = 0.94
	// steadyQueued is how much interim rates may scatter when a queue proves the bottleneck, steadyBare when flatness is all there is.
	steadyQueued = 0.10
	steadyBare   = 0.05
)

// linkRateReached: the slowest link is full, by its known speed or by how the flow behaves.
func linkRateReached(f *flow) *Finding {
	if f.atLinkRate() {
		return f.knownLinkReached()
	}
	return f.pathRateReached()
}

// goodput is what a link carries as TCP payload over IPv4 with timestamps, the most common case; IPv6 has 1.4 % less at MTU 1500,
// which the margin of lineRateShare covers.
func goodput(c *host.Interface) float64 {
	mtu := c.MTUBytes
	if mtu <= 0 {
		mtu = 1500
	}
	return c.SpeedBitsPerSec * ceiling.GoodputRatio(mtu, false, true)
}

// atLinkRate tells that the slowest real link of the two ends is full.
//
// Both ends are asked, because the slower of two links is the ceiling of the path whatever lies between them.
func (f *flow) atLinkRate() bool {
	link, _, ok := f.slowestLink()
	return ok && goodput(link) > 0 && f.rate >= lineRateShare*goodput(link)
}

// knownLinkReached is the verdict by speed: a real link whose rate is a fact is full.
func (f *flow) knownLinkReached() *Finding {
	link, at, _ := f.slowestLink()
	ceiling := goodput(link)
	x := &Finding{
		Code: LinkRateReached, Severity: Info, Where: at.name,
		Title: fmt.Sprintf("The link %s at the %s host carries %s, %s of the %s that it can carry as payload; nothing to tune here.",
			link.Name, at.name, rate(f.rate), percent(f.rate/ceiling), rate(ceiling)),
		Evidence: append(f.common(),
			Evidence{Name: "link speed of " + link.Name, Value: link.SpeedBitsPerSec, Unit: "bits_per_second", Source: "ethtool link mode (" + at.name + ")"},
			Evidence{Name: "payload ceiling at this MTU", Value: ceiling, Unit: "bits_per_second", Source: "speed × (MTU − 52) / (MTU + 38)"}),
		Confidence: 0.97,
	}
	f.rejectHostLimits(x)
	x.Remedy.Text = "Nothing to tune here. A faster link, a second one, or a larger MTU end to end is what would help."
	return x
}

// pathRateReached: no link speed is known, or no known link is full, and yet the flow behaves as behind a bottleneck: always busy,
// held by no window, flat, and with a queue in front of it, or paced to just the rate of the bottleneck with next to no loss.
//
// Inside one machine a flat rate means a full processor, so a short path needs a queue of several milliseconds and idle processors.
//
// At least three intervals, as two rates are always "flat" within some margin; four where flatness is the only
// witness. The limits of the windows are halved (limitedShare/2), because this verdict says "nothing to tune" and a
// mistake ends the search.
func (f *flow) pathRateReached() *Finding {
	if f.streams == 0 || f.rate <= 0 || f.base() <= 0 || f.intervals < 3 {
		return nil
	}
	queued := f.queued()
	windowFree := f.share(f.rwndLimited) < limitedShare/2 || queued && !f.fillsWindow()
	bufferFree := f.share(f.sndbufLimited) < limitedShare/2 || queued
	if !windowFree || !bufferFree || !f.alwaysBusy() {
		return nil
	}
	_, _, busy, known := f.busiestOf()
	full := known && busy >= 0.95
	if f.shortPath() && (f.loaded()-f.base() < 0.005 || known && busy >= 0.9) {
		return nil
	}
	byQueue := queued && f.scatter <= steadyQueued
	byPacing := f.scatter <= steadyBare && f.intervals >= 4 && (f.loss() < 1e-3 || f.modelBased()) && !full
	if !byQueue && !byPacing {
		return nil
	}
	x := &Finding{
		Code: LinkRateReached, Severity: Info, Where: "path",
		Title: fmt.Sprintf("The path delivers a steady %s and neither host holds it back; nothing to tune here.", rate(f.rate)),
		Evidence: append(f.common(),
			Evidence{Name: "scatter of the interim rates", Value: f.scatter, Unit: "ratio", Source: fmt.Sprintf("standard deviation / mean of %d intervals", f.intervals)},
			Evidence{Name: "segments sent again", Value: f.loss(), Unit: "ratio", Source: f.tcpInfo("tcpi_total_retrans / tcpi_segs_out")},
			Evidence{Name: "busy time limited by the receive window", Value: f.share(f.rwndLimited), Unit: "ratio", Source: f.tcpInfo("tcpi_rwnd_limited / tcpi_busy_time")},
			Evidence{Name: "busy time limited by the send buffer", Value: f.share(f.sndbufLimited), Unit: "ratio", Source: f.tcpInfo("tcpi_sndbuf_limited / tcpi_busy_time")},
		),
		Confidence: combine(0.5, when(byQueue, 0.7), when(byPacing && f.modelBased(), 0.5), when(byPacing, 0.3), when(!full, 0.2)),
	}
	if queued {
		x.Evidence = append(x.Evidence, Evidence{Name: "queueing delay under load", Value: f.loaded() - f.base(), Unit: "seconds", Source: "loaded less smallest round trip"})
	}
	for _, e := range []end{f.sender, f.receiver} {
		if e.card != nil && slices.Contains([]string{"tbf", "htb", "hfsc", "cake"}, e.card.Qdisc) {
			x.Evidence = append(x.Evidence, Evidence{Name: "queueing discipline of " + e.card.Name, Value: e.card.Qdisc, Source: "rtnetlink (" + e.name + "); it can shape"})
		}
	}
	f.rejectHostLimits(x)
	x.Remedy.Text = "Nothing to tune here: the slowest link or a shaper between the hosts sets the rate. A faster path is what would help."
	return x
}

// rejectHostLimits says why none of the limits inside the hosts is it.
func (f *flow) rejectHostLimits(x *Finding) {
	if f.streams > 0 {
		x.Rejected = append(x.Rejected, f.notReceiveWindow(), f.notSendBuffer())
		if f.queued() {
			x.Rejected = append(x.Rejected, fmt.Sprintf("Not random loss: the queue at the bottleneck adds %s to the round trip, and %s of the segments were sent again.",
				seconds(f.loaded()-f.base()), percent(f.loss())))
		} else {
			x.Rejected = append(x.Rejected, f.notLoss())
		}
	}
	x.Rejected = append(x.Rejected, f.notProcessor()...)
}

// alwaysBusy tells that the sender had data in flight for nearly all of the run. Without a chronograph it is taken for granted:
// our own traffic engine never rests.
//
// The 15 % are handshake, slow start and the end of the run, in which the last acknowledgements are awaited.
func (f *flow) alwaysBusy() bool {
	return f.busy <= 0 || f.busy >= 0.85*f.run.DurationSeconds*float64(f.streams)
}
