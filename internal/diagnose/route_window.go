package diagnose

import (
	"fmt"

	"github.com/linerate/linerate/internal/knob"
)

// routeWindowClamped: the receiver's route towards the sender has a window metric (RTAX_WINDOW), and the window never passed it.
//
// The metric alone is no fault: one above what the path needs changes nothing.
func routeWindowClamped(f *flow) *Finding {
	r := f.receiver.route
	if f.streams == 0 || r == nil || r.WindowBytes <= 0 || f.window <= 0 {
		return nil
	}
	perStream := f.window / float64(f.streams)
	// A scaled window is rounded up to the scale's unit, so it may stand a little over the clamp.
	if perStream > 1.1*float64(r.WindowBytes) || f.fill() < windowFill {
		return nil
	}
	id := "route:" + r.Destination + "/window"
	x := &Finding{
		Code: RouteWindowClamped, Severity: Warning, Where: f.receiver.name,
		Title: fmt.Sprintf("The route to %s at the %s host clamps the window to %s, which holds the flow at %s.",
			r.Destination, f.receiver.name, bytes(float64(r.WindowBytes)), rate(f.rate)),
		Evidence: append(append(f.common(), Evidence{Name: "window metric of the route to " + r.Destination, Value: float64(r.WindowBytes), Unit: "bytes",
			Source: "rtnetlink RTAX_WINDOW (" + f.receiver.name + ")"}), f.windowEvidence()...),
		Rejected:   []string{f.notSendBuffer(), f.notLoss(), f.notQueue()},
		Confidence: combine(0.8, when(perStream > 0.5*float64(r.WindowBytes), 0.6), when(f.share(f.rwndLimited) >= limitedShare, 0.6)),
	}
	if rmem, ok := f.receiver.number(tcpRmem, 2); ok {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not the size of the receive buffer: net.ipv4.tcp_rmem allows %s.", bytes(rmem)))
	}
	x.Remedy.Text = fmt.Sprintf("Remove the window metric from the route to %s at the %s host.", r.Destination, f.receiver.name)
	x.Remedy.add(Candidate{Knob: knob.ID(id), Side: f.receiver.name, Levels: []knob.Value{"0"}, Why: "0 leaves the window to the socket buffer"})
	return x
}
