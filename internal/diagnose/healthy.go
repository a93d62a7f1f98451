package diagnose

import (
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/traffic"
)

// healthy returns the verdict when no rule found a fault: what remains is the speed of the hosts,
// or something that this version has no rule for.
//
// Confidence starts at one half, because "no rule fired" is weak evidence: a limit without a rule
// looks the same. A saturated CPU explains the rate and raises it. Unexplained drops, and a link
// that could carry more, each lower it by a factor.
func healthy(f *evidence.Flow) evidence.Finding {
	x := evidence.Finding{Code: evidence.Healthy, Severity: evidence.Info, Where: "path", Evidence: f.Common(),
		Confidence: 0.5}
	x.Title = fmt.Sprintf("No fault was found at %s.", evidence.Rate(f.RateBitsPerSec))
	x.Remedy.Text = "Nothing to do."
	if e, cpu, busy, ok := f.BusiestOf(); ok {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: fmt.Sprintf("busiest processor, CPU %d", cpu),
			Value: busy, Unit: "ratio", Source: "/proc/stat (" + e.Name + ")"})
		if busy >= evidence.FullProcessor {
			x.Confidence = 0.85
			x.Title = fmt.Sprintf(
				"No fault was found at %s: CPU %d of the %s host is %s busy, so the hosts themselves set the rate.",
				evidence.Rate(f.RateBitsPerSec), cpu, e.Name, evidence.Percent(busy))
		} else {
			x.Rejected = append(x.Rejected, f.NotProcessor()...)
		}
	}
	if f.Streams > 0 {
		x.Evidence = append(x.Evidence, f.WindowEvidence()...)
		for _, limit := range windowsOf(f) {
			if limit.share < evidence.LimitedShare {
				x.Rejected = append(x.Rejected, limit.not)
			}
		}
	}
	lost, where := f.Drops()
	if lost == 0 && f.Loss() < evidence.MinLoss {
		if f.Streams > 0 {
			x.Rejected = append(x.Rejected, f.NotLoss())
		}
	} else {
		// The hosts dropped packets and no rule says that it matters: the verdict mentions it and
		// is weak.
		x.Evidence = append(x.Evidence,
			evidence.Evidence{Name: "segments sent again", Value: f.Loss(), Unit: "ratio",
				Source: f.TCPInfo("tcpi_total_retrans / tcpi_segs_out")},
			evidence.Evidence{Name: "packets dropped inside the hosts", Value: lost, Unit: "packets",
				Source: "counters of both ends"})
		x.Title = strings.TrimSuffix(x.Title, ".") + fmt.Sprintf("; but %s segments were retransmitted.",
			evidence.Count(f.Retransmits))
		if lost > 0 {
			x.Title = strings.TrimSuffix(x.Title, ".") + fmt.Sprintf(" and the hosts dropped %s packets (most: %s).",
				evidence.Count(lost), where)
			x.Remedy.Text = fmt.Sprintf("This version has no rule for these drops; look at %s first.", where)
		}
		x.Confidence *= 0.6
	}
	if link, at, ok := f.SlowestLink(); ok {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not the link: %s at the %s host could carry %s of payload.",
			link.Name, at.Name, evidence.Rate(evidence.Goodput(link))))
		x.Confidence *= 0.7 // below the rate of a known link, without a known reason
	}
	if hidden := hiddenCPUs(f); hidden != "" {
		x.Code, x.Severity, x.Confidence = evidence.MeasurementUnreliable, evidence.Notice, 0.9
		x.Title = fmt.Sprintf("This path cannot be judged: linerate cannot read the times of the CPUs (/proc/stat) "+
			"of the %s host, which may set the rate of %s.", hidden, evidence.Rate(f.RateBitsPerSec))
		x.Remedy.Text = "Run linerate where /proc of that host is mounted and readable: outside of the container, " +
			"or with sudo."
		return x
	}
	waits(f, &x)
	return x
}

// windowLimit is what the sender's kernel says about one window.
type windowLimit struct {
	code        evidence.Code
	share       float64 // of the busy time
	name, where string
	not         string // rejects it
}

func windowsOf(f *evidence.Flow) []windowLimit {
	return []windowLimit{
		{evidence.ReceiveWindowLimited, f.Share(f.RwndLimitedSeconds), "receive window", f.Receiver.Name,
			f.NotReceiveWindow()},
		{evidence.SendBufferLimited, f.Share(f.SndbufLimitedSeconds), "send buffer", f.Sender.Name, f.NotSendBuffer()}}
}

// waits turns the verdict into what the kernel says the sender waited for, where no rule found
// why. "No fault" would contradict the kernel. A full CPU explains a slow reader, and then the
// verdict names it.
func waits(f *evidence.Flow, x *evidence.Finding) {
	if _, _, busy, ok := f.BusiestOf(); ok && busy >= evidence.FullProcessor {
		return
	}
	for _, limit := range windowsOf(f) {
		if limit.share < evidence.LimitedShare {
			continue
		}
		x.Code, x.Severity, x.Where, x.Confidence = limit.code, evidence.Notice, limit.where, 0.5
		x.Title = fmt.Sprintf("The sender waited for the %s of the %s host for %s of its busy time, at %s; "+
			"nothing shows why.",
			limit.name, limit.where, evidence.Percent(limit.share), evidence.Rate(f.RateBitsPerSec))
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not decided: whether the %s is small, or the program behind it slow; "+
			"the empty path of %s has %s in flight at this rate.", limit.name, evidence.Seconds(f.Base()),
			evidence.Bytes(f.RateBitsPerSec/8*f.Base())))
		x.Remedy.Text = "Measure again for longer and on a quieter host, and with several streams: " +
			"each has a window of its own."
		x.Remedy.Proof = "Eight streams carry several times the rate of one if a window is small, and as much if the " +
			"program or the link is slow."
		return
	}
}

// hiddenCPUs returns the name of a Linux end that does not report how busy its CPUs were. A path
// that nothing else limits is mostly limited there. Other systems, and servers of other programs,
// have no /proc/stat to hide. A CPU that is known to be full explains the rate anyway.
func hiddenCPUs(f *evidence.Flow) string {
	if _, _, busy, ok := f.BusiestOf(); ok && busy >= evidence.FullProcessor {
		return ""
	}
	for _, e := range []evidence.End{f.Sender, f.Receiver} {
		if _, _, known := e.Busiest(); !known && e.Host != nil && e.Host.OS == "linux" {
			return e.Name
		}
	}
	return ""
}

// judgeSettings returns findings about settings alone, for a case without a loaded run: only
// settings that are wrong on any path.
//
// Only two settings qualify, those that cap every window. Buffers do not: whether 6 MiB are small
// depends on the round trip. Confidence stays low, because nothing shows that the setting costs
// anything here.
func judgeSettings(c evidence.Case) []evidence.Finding {
	var all []evidence.Finding
	near, far := evidence.End{Name: "near", Host: c.Near}, evidence.End{Name: "far", Host: c.Far}
	for _, e := range []evidence.End{near, far} {
		if value, ok := e.Setting(evidence.TCPWindowScaling); ok && value == "0" {
			x := evidence.Finding{Code: evidence.WindowScalingOff, Severity: evidence.Notice, Confidence: 0.7,
				Where: e.Name,
				Title: "Window scaling is off, so no TCP window of this host exceeds 65535 bytes.",
				Evidence: []evidence.Evidence{{Name: "net.ipv4.tcp_window_scaling", Value: value,
					Source: "sysctl (" + e.Name + ")"}},
				Rejected: []string{"Not measured: its cost depends on the round trip; run `linerate diagnose TARGET`."}}
			x.Remedy.Text = "Set net.ipv4.tcp_window_scaling to 1."
			x.Remedy.Add(evidence.Candidate{Knob: evidence.TCPWindowScaling, Side: e.Name, Levels: []knob.Value{"1"},
				Why: "it is on by default, and every path longer than a rack needs it"})
			all = append(all, x)
		}
		if e.Host == nil {
			continue
		}
		for _, r := range e.Host.Routes {
			if r.WindowBytes > 0 {
				x := evidence.Finding{Code: evidence.RouteWindowClamped, Severity: evidence.Notice, Confidence: 0.5,
					Where: e.Name,
					Title: fmt.Sprintf("The route to %s caps every receive window at %s.", r.Destination,
						evidence.Bytes(float64(r.WindowBytes))),
					Evidence: []evidence.Evidence{{Name: "window metric of the route to " + r.Destination,
						Value: float64(r.WindowBytes), Unit: "bytes",
						Source: "rtnetlink RTAX_WINDOW (" + e.Name + ")"}},
					Rejected: []string{"Not measured: whether it limits a flow depends on the round trip; " +
						"run `linerate diagnose TARGET`."}}
				x.Remedy.Text = "Remove the window metric unless something needs it."
				x.Remedy.Add(evidence.Candidate{Knob: knob.ID("route:" + r.Destination + "/window"), Side: e.Name,
					Levels: []knob.Value{"0"}, Why: "0 leaves the window to the socket buffer"})
				all = append(all, x)
			}
		}
	}
	return all
}

// quiet returns the verdict when no test loaded a path and no rule found a fault.
//
// A quiet host does not show faults that appear only under load: the less it moved, the lower the
// confidence. Being quiet is not a fault.
func quiet(c *evidence.Case) evidence.Finding {
	x := evidence.Finding{Code: evidence.Healthy, Severity: evidence.Info, Confidence: 0.3, Where: "near",
		Title:    "No setting was found that is wrong on every path; nothing was measured.",
		Evidence: []evidence.Evidence{{Name: "loaded runs", Value: 0.0, Unit: "runs", Source: "the case"}},
		Remedy:   evidence.Remedy{Text: "Run `linerate diagnose TARGET` to see what limits a path."}}
	for i := range c.Runs {
		if r := &c.Runs[i]; r.Test == traffic.Ping && r.RTT != nil {
			echoed(&x, r)
		}
	}
	for i := range c.Watched {
		s := &c.Watched[i]
		if s.SinceBoot {
			x.Where = s.Side
			x.Title = fmt.Sprintf("No fault shows in the counters of this host %s, nor in its settings.", s.When())
			x.Evidence = []evidence.Evidence{{Name: "counters that were looked at", Value: float64(len(s.Counters)),
				Unit: "counters", Source: "the snapshot (" + s.Side + ")"}}
			x.Remedy.Text = "Take a second snapshot while the host is slow: two snapshots show what happened " +
				"between them."
		}
		if s.SinceBoot || s.Seconds <= 0 {
			continue
		}
		moved := s.PerSecond(s.Bytes() * 8)
		x.Where = s.Side
		x.Title = fmt.Sprintf(
			"No fault showed in %s, while the interfaces of this host, except loopback, "+
				"moved %s in both directions together.",
			evidence.Seconds(s.Seconds), evidence.Rate(moved))
		x.Evidence = []evidence.Evidence{{Name: "moved by the interfaces, both directions", Value: moved,
			Unit: "bits_per_second", Source: s.Source("rx_bytes + tx_bytes")}}
		// No rule judges the cost of these segments, but a user in search of a fault must see them.
		if sent, again := s.Count("Tcp.OutSegs"), s.Count("Tcp.RetransSegs"); sent >= 1000 && again >= heavyLoss*sent {
			x.Title = strings.TrimSuffix(x.Title, ".") + fmt.Sprintf("; but %s of %s TCP segments were retransmitted.",
				evidence.Percent(again/sent), evidence.Count(sent))
			x.Evidence = append(x.Evidence, evidence.Evidence{Name: "segments sent again", Value: again / sent,
				Unit: "ratio", Source: s.Source("Tcp.RetransSegs / Tcp.OutSegs")})
		}
		// A megabit a second is more than the background traffic of an idle host.
		if moved > 1e6 {
			x.Confidence = 0.6
		}
		// As of a path, see hiddenCPUs: a full processor shows in nothing else.
		if s.Host != nil && (!counts(s, "nic.") || len(s.CPUs) == 0 && s.Host.OS == "linux") {
			unseen(&x, s)
			continue
		}
		counted := len(s.Counters) > 0 && (s.Host == nil || len(s.Host.Interfaces) > 0)
		if counted && moved < stillBitsPerSec && s.PerSecond(8*s.Count("nic.lo.rx_bytes")) < stillBitsPerSec {
			still(&x, s)
		}
	}
	return x
}

// counts reports whether a span has counters of a family.
func counts(s *evidence.Span, prefix string) bool {
	for name := range s.Counters {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// unseen turns the verdict on a watched host into "cannot be judged": a host whose counters or CPU
// times are hidden, as in a container without /proc, looks the same with every fault and without
// any.
func unseen(x *evidence.Finding, s *evidence.Span) {
	missing := []string{}
	if len(s.CPUs) == 0 {
		missing = append(missing, "the times of the CPUs (/proc/stat)")
	}
	for _, f := range families {
		if !counts(s, f.prefix) {
			missing = append(missing, f.what)
		}
	}
	x.Code, x.Severity, x.Confidence = evidence.MeasurementUnreliable, evidence.Notice, 0.9
	x.Title = "This host cannot be judged: linerate cannot read " + strings.Join(missing, ", ") + "."
	x.Evidence = []evidence.Evidence{{Name: "counters that were read", Value: float64(len(s.Counters)), Unit: "counters",
		Source: s.Source("/proc, /sys and netlink")}}
	x.Rejected = append(x.Rejected, "Not shown to be sound: what was hidden may hold the fault.")
	x.Remedy.Text = "Run linerate where /proc and /sys of this host are mounted and readable: outside of the " +
		"container, or with sudo."
}

// stillBitsPerSec is the most that a host moves without any traffic worth the name: address
// resolution, router advertisements and one idle login.
const stillBitsPerSec = 10e3

// still turns the verdict on a watched host into "nothing to judge".
func still(x *evidence.Finding, s *evidence.Span) {
	x.Code, x.Confidence = evidence.NoTraffic, 0.9
	x.Title = fmt.Sprintf("Nothing to judge: no traffic. In %s the interfaces of this host moved %s in both "+
		"directions together.", evidence.Seconds(s.Seconds), evidence.Bytes(s.Bytes()))
	x.Rejected = append(x.Rejected, "Not shown to be sound: most faults show only under load.")
	x.Remedy.Text = "Start what is slow and diagnose again, or run `linerate diagnose TARGET`, which loads the path."
}

// nothingArrived returns the verdict on a test whose payload did not arrive at all. Its rate is no
// evidence for or against any limit.
func nothingArrived(f *evidence.Flow) *evidence.Finding {
	x := &evidence.Finding{Code: evidence.NoTraffic, Severity: evidence.Notice, Where: "path", Confidence: 0.9,
		Title: "Nothing to judge: no traffic. The test delivered no payload from the " + f.Sender.Name + " to the " +
			f.Receiver.Name + " host.",
		Evidence: append(f.Common(), evidence.Evidence{Name: "segments sent", Value: f.Segments, Unit: "segments",
			Source: f.TCPInfo("tcpi_segs_out")})}
	for _, w := range f.Run.Warnings {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "warning", Value: w, Source: "the run"})
	}
	x.Remedy.Text = "Check that the path answers (`linerate measure ping`), and look for a filter that lets only the " +
		"control connection or only small packets pass; then measure again."
	return x
}

// echoed describes a path that carried only echoes: that they come back.
func echoed(x *evidence.Finding, r *evidence.Run) {
	x.Where = "path"
	x.Title = fmt.Sprintf("No fault showed in %s echoes, with a median of %s; what the path carries was not measured.",
		evidence.Count(float64(r.RTT.Count)), evidence.Seconds(r.RTT.P50))
	x.Evidence = []evidence.Evidence{
		{Name: "round trip, median", Value: r.RTT.P50, Unit: "seconds", Source: r.Method},
		{Name: "round trip, 99th percentile", Value: r.RTT.P99, Unit: "seconds", Source: r.Method},
	}
	if r.LossRatio != nil {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "echoes lost", Value: *r.LossRatio, Unit: "ratio",
			Source: r.Method})
	}
	x.Remedy.Text = "Run `linerate serve` on the other host, then `linerate diagnose` with its key, " +
		"to see what limits the path."
}
