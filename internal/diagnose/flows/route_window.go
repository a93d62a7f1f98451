package flows

import (
	"fmt"
	"math/bits"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
)

// routeWindowClamped finds a window metric (RTAX_WINDOW) on the receiver's route to the sender, and
// a window that never exceeded what that metric allows.
//
// The metric alone is not a fault: one above what the path needs changes nothing. Nor is it the
// exact bound. The kernel chooses the window scale from it when the connection opens
// (tcp_select_initial_window) and lets autotuning raise the window later, so the lasting bound is
// 65 535 shifted by that scale. A metric of 16 KiB leaves no scale, and 64 KiB at most.
func routeWindowClamped(f *evidence.Flow) *evidence.Finding {
	if f.Streams == 0 || f.WindowBytes <= 0 || !f.WindowScaling {
		return nil
	}
	perStream := f.WindowBytes / float64(f.Streams)
	for _, r := range f.Receiver.Routes {
		// The advertised scale shows whether this route's metric was in force when the connection
		// opened.
		if r.WindowBytes > 0 && f.WindowShift == metricScale(r.WindowBytes) && perStream <= metricBound(r.WindowBytes) &&
			(f.FillsWindow() || heldOnShortPath(f)) {
			return clampedBy(f, r, perStream)
		}
	}
	return nil
}

// clampedBy returns the finding for the route that explains the window.
func clampedBy(f *evidence.Flow, r host.Route, perStream float64) *evidence.Finding {
	bound := metricBound(r.WindowBytes)
	id := "route:" + r.Destination + "/window"
	x := &evidence.Finding{
		Code: evidence.RouteWindowClamped, Severity: evidence.Warning, Where: f.Receiver.Name,
		Title: fmt.Sprintf("The route to %s at the %s host has a window metric of %s, so no window exceeded %s, "+
			"which limits the flow to %s.",
			r.Destination, f.Receiver.Name, evidence.Bytes(float64(r.WindowBytes)), evidence.Bytes(perStream),
			evidence.Rate(f.RateBitsPerSec)),
		Evidence: append(append(f.Common(),
			evidence.Evidence{Name: "window metric of the route to " + r.Destination, Value: float64(r.WindowBytes),
				Unit:   "bytes",
				Source: "rtnetlink RTAX_WINDOW (" + f.Receiver.Name + ")"},
			evidence.Evidence{Name: "window scale announced", Value: float64(f.WindowShift), Unit: "bits",
				Source: f.TCPInfo("tcpi_snd_wscale")},
			evidence.Evidence{Name: "largest window that this metric allows", Value: bound, Unit: "bytes",
				Source: "65535 << window scale chosen from the metric"}),
			f.WindowEvidence()...),
		Rejected: []string{f.NotSendBuffer(), f.NotLoss(), f.NotQueue()},
		Confidence: evidence.Combine(0.8, evidence.When(perStream > 0.5*bound, 0.6),
			evidence.When(f.Share(f.RwndLimitedSeconds) >= evidence.LimitedShare, 0.6)),
	}
	if rmem, ok := f.Receiver.Number(evidence.TCPRmem, 2); ok {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not the size of the receive buffer: net.ipv4.tcp_rmem allows %s.",
			evidence.Bytes(rmem)))
	}
	x.Remedy.Text = fmt.Sprintf("Remove the window metric from the route to %s at the %s host.", r.Destination,
		f.Receiver.Name)
	x.Remedy.Add(evidence.Candidate{Knob: knob.ID(id), Side: f.Receiver.Name, Levels: []knob.Value{"0"},
		Why: "0 leaves the window to the socket buffer"})
	x.Remedy.Proof = "Open new connections with and without the metric alternately: the rate follows the window, " +
		"and flows on other routes stay the same."
	return x
}

// metricScale returns the window scale that the kernel advertises for a connection whose route has
// this window metric: the smallest that can express the metric.
//
// It is ilog2(metric) − 15, limited to 0…14, as tcp_select_initial_window computes it (RFC 7323
// §2.3 has the 14). Without a metric the same formula starts from the larger of tcp_rmem[2] and
// rmem_max.
func metricScale(metric int) int { return min(max(bits.Len(uint(metric))-1-15, 0), 14) }

// metricBound returns the largest window in bytes that such a connection can ever advertise: all 16
// bits of the header at that scale.
func metricBound(metric int) float64 { return unscaledWindow * float64(uint64(1)<<metricScale(metric)) }
