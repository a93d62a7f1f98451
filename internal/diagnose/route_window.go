package diagnose

import (
	"fmt"
	"math/bits"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/knob"
)

// routeWindowClamped: the receiver's route towards the sender has a window metric (RTAX_WINDOW), and the window never passed what
// that metric allows.
//
// The metric alone is no fault: one above what the path needs changes nothing. Nor is it the exact bound: the kernel chooses the
// window scale from it when the connection opens (tcp_select_initial_window) and lets autotuning raise the window later, so the
// bound that stays is 65 535 shifted by that scale. A metric of 16 KiB leaves no scale and 64 KiB at most.
func routeWindowClamped(f *flow) *Finding {
	if f.streams == 0 || f.window <= 0 || !f.scaling || !f.fillsWindow() {
		return nil
	}
	perStream := f.window / float64(f.streams)
	for _, r := range f.receiver.routes {
		// The announced scale tells whether this route's metric was in force when the connection opened.
		if r.WindowBytes > 0 && f.shift == metricScale(r.WindowBytes) && perStream <= metricBound(r.WindowBytes) {
			return f.clampedBy(r, perStream)
		}
	}
	return nil
}

// clampedBy writes the finding for the route that explains the window.
func (f *flow) clampedBy(r host.Route, perStream float64) *Finding {
	bound := metricBound(r.WindowBytes)
	id := "route:" + r.Destination + "/window"
	x := &Finding{
		Code: RouteWindowClamped, Severity: Warning, Where: f.receiver.name,
		Title: fmt.Sprintf("The route to %s at the %s host has a window metric of %s, so no window passed %s, which holds the flow at %s.",
			r.Destination, f.receiver.name, bytes(float64(r.WindowBytes)), bytes(perStream), rate(f.rate)),
		Evidence: append(append(f.common(),
			Evidence{Name: "window metric of the route to " + r.Destination, Value: float64(r.WindowBytes), Unit: "bytes",
				Source: "rtnetlink RTAX_WINDOW (" + f.receiver.name + ")"},
			Evidence{Name: "window scale announced", Value: float64(f.shift), Unit: "bits", Source: f.tcpInfo("tcpi_snd_wscale")},
			Evidence{Name: "largest window that this metric allows", Value: bound, Unit: "bytes", Source: "65535 << window scale chosen from the metric"}),
			f.windowEvidence()...),
		Rejected:   []string{f.notSendBuffer(), f.notLoss(), f.notQueue()},
		Confidence: combine(0.8, when(perStream > 0.5*bound, 0.6), when(f.share(f.rwndLimited) >= limitedShare, 0.6)),
	}
	if rmem, ok := f.receiver.number(tcpRmem, 2); ok {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not the size of the receive buffer: net.ipv4.tcp_rmem allows %s.", bytes(rmem)))
	}
	x.Remedy.Text = fmt.Sprintf("Remove the window metric from the route to %s at the %s host.", r.Destination, f.receiver.name)
	x.Remedy.add(Candidate{Knob: knob.ID(id), Side: f.receiver.name, Levels: []knob.Value{"0"}, Why: "0 leaves the window to the socket buffer"})
	return x
}

// metricScale is the window scale that the kernel announces for a connection whose route has this window metric: the least that
// expresses the metric.
//
// It is ilog2(metric) − 15, cut to 0…14, as tcp_select_initial_window computes it (RFC 7323 §2.3 has the 14). Without
// a metric the same formula starts from the larger of tcp_rmem[2] and rmem_max.
func metricScale(metric int) int { return min(max(bits.Len(uint(metric))-1-15, 0), 14) }

// metricBound is the largest window that such a connection can ever offer: all 16 bits of the header at that scale.
func metricBound(metric int) float64 { return unscaledWindow * float64(uint64(1)<<metricScale(metric)) }
