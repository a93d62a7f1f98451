package diagnose

import (
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/knob"
)

// healthy is the verdict when no rule found a fault: what remains is the speed of the hosts themselves, or something this version
// has no rule for. How sure it is depends on whether a full processor explains the rate.
//
// It starts at one half, since "no rule fired" is weak evidence: a limit without a rule looks the same. A full
// processor explains the rate and raises it; unexplained drops and a link that could carry more lower it by factors,
// so that both together do so twice.
func healthy(f *flow) Finding {
	x := Finding{Code: Healthy, Severity: Info, Where: "path", Evidence: f.common(), Confidence: 0.5}
	x.Title = fmt.Sprintf("No fault was found at %s.", rate(f.rate))
	x.Remedy.Text = "Nothing to do."
	if e, cpu, busy, ok := f.busiestOf(); ok {
		x.Evidence = append(x.Evidence, Evidence{Name: fmt.Sprintf("busiest processor, CPU %d", cpu), Value: busy, Unit: "ratio", Source: "/proc/stat (" + e.name + ")"})
		if busy >= fullProcessor {
			x.Confidence = 0.85
			x.Title = fmt.Sprintf("No fault was found at %s: CPU %d of the %s host is %s busy, so the hosts themselves set the pace.", rate(f.rate), cpu, e.name, percent(busy))
		} else {
			x.Rejected = append(x.Rejected, f.notProcessor()...)
		}
	}
	if f.streams > 0 {
		x.Evidence = append(x.Evidence, f.windowEvidence()...)
		x.Rejected = append(x.Rejected, f.notReceiveWindow(), f.notSendBuffer())
	}
	lost, where := f.drops()
	if lost == 0 && f.loss() < minLoss {
		if f.streams > 0 {
			x.Rejected = append(x.Rejected, f.notLoss())
		}
	} else {
		// Packets died and no rule says that it matters: the reader must know, and the verdict is a weak one.
		x.Evidence = append(x.Evidence,
			Evidence{Name: "segments sent again", Value: f.loss(), Unit: "ratio", Source: f.tcpInfo("tcpi_total_retrans / tcpi_segs_out")},
			Evidence{Name: "packets dropped inside the hosts", Value: lost, Unit: "packets", Source: "counters of both ends"})
		x.Title = strings.TrimSuffix(x.Title, ".") + fmt.Sprintf("; but %s segments were sent again.", count(f.retransmits))
		if lost > 0 {
			x.Title = strings.TrimSuffix(x.Title, ".") + fmt.Sprintf(" and the hosts dropped %s packets (most: %s).", count(lost), where)
			x.Remedy.Text = fmt.Sprintf("No rule of this version judges these drops; look at %s first.", where)
		}
		x.Confidence *= 0.6
	}
	if link, at, ok := f.slowestLink(); ok {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not the link: %s at the %s host could carry %s of payload.", link.Name, at.name, rate(goodput(link))))
		x.Confidence *= 0.7 // below a known link without a known reason
	}
	return x
}

// judgePassive looks at settings alone: without a loaded run only what is wrong on any path can be said.
//
// Only two settings qualify, those that cap every window whatever the path is. Buffers do not: whether 6 MiB are
// small depends on the round trip. Confidence stays low, as nothing shows that it costs anything here.
func judgePassive(c Case) []Finding {
	var all []Finding
	near, far := end{name: "near", host: c.Near}, end{name: "far", host: c.Far}
	for _, e := range []end{near, far} {
		if value, ok := e.setting(tcpScaling); ok && value == "0" {
			x := Finding{Code: WindowScalingOff, Severity: Notice, Confidence: 0.7, Where: e.name,
				Title:    "Window scaling is off, so no TCP window of this host passes 65535 bytes.",
				Evidence: []Evidence{{Name: "net.ipv4.tcp_window_scaling", Value: value, Source: "sysctl (" + e.name + ")"}},
				Rejected: []string{"Not measured: how much it costs depends on the round trips; `linerate diagnose TARGET` tells."}}
			x.Remedy.Text = "Set net.ipv4.tcp_window_scaling to 1."
			x.Remedy.add(Candidate{Knob: tcpScaling, Side: e.name, Levels: []knob.Value{"1"}, Why: "it is on by default and needed on every path longer than a rack"})
			all = append(all, x)
		}
		if e.host == nil {
			continue
		}
		for _, r := range e.host.Routes {
			if r.WindowBytes > 0 {
				x := Finding{Code: RouteWindowClamped, Severity: Notice, Confidence: 0.5, Where: e.name,
					Title: fmt.Sprintf("The route to %s caps every receive window at %s.", r.Destination, bytes(float64(r.WindowBytes))),
					Evidence: []Evidence{{Name: "window metric of the route to " + r.Destination, Value: float64(r.WindowBytes), Unit: "bytes",
						Source: "rtnetlink RTAX_WINDOW (" + e.name + ")"}},
					Rejected: []string{"Not measured: whether it limits depends on the round trip; `linerate diagnose TARGET` tells."}}
				x.Remedy.Text = "Remove the window metric unless something needs it."
				x.Remedy.add(Candidate{Knob: knob.ID("route:" + r.Destination + "/window"), Side: e.name, Levels: []knob.Value{"0"}, Why: "0 leaves the window to the socket buffer"})
				all = append(all, x)
			}
		}
	}
	if len(all) == 0 {
		all = append(all, Finding{Code: Healthy, Severity: Info, Confidence: 0.3, Where: "near",
			Title:    "No setting that is wrong on every path was found; nothing was measured.",
			Evidence: []Evidence{{Name: "loaded runs", Value: 0.0, Unit: "runs", Source: "the case"}},
			Remedy:   Remedy{Text: "Run `linerate diagnose TARGET` to see what limits a path."}})
	}
	return arrange(all)
}
