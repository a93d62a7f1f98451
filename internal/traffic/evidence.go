package traffic

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/stats"
	"github.com/linerate/linerate/internal/sys"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// Thresholds of the warnings about the bench itself. Two per cent of steal already moves a throughput by more than the effects that are looked
// for, and a CPU that idled for less than two per cent of the window had no room left.
const (
	maxStealShare = 0.02 // of the time of all CPUs
	minIdleShare  = 0.02 // of one CPU: below it the CPU may be what was measured
)

// flowSamples are the readings of one connection inside the measured window.
type flowSamples struct {
	last            sys.TCPInfo
	cut             uint32 // TotalRetrans at the edge of the running interval
	count           int
	rttSum, cwndSum float64 // seconds, bytes
	maxSndWnd       uint32
}

// add takes one reading. Smoothed values of the kernel are averaged over the window, because the one at its end says little about a
// connection whose window saws up and down.
func (f *flowSamples) add(info sys.TCPInfo, inWindow bool) {
	f.last = info
	if !inWindow {
		return
	}
	f.count++
	f.rttSum += float64(info.RTTMicros) / 1e6
	f.cwndSum += float64(info.SndCwndPackets) * float64(info.SndMSSBytes)
	f.maxSndWnd = max(f.maxSndWnd, info.SndWndBytes)
}

func (f *flowSamples) reset() { *f = flowSamples{last: f.last, cut: f.last.TotalRetrans} }

// end sums up what this side saw and spent inside the window.
func (c *conductor) end(name string) End {
	e := End{Host: name, Drops: []Drop{}}
	if c.window.before != nil && c.window.after != nil {
		d := host.Sub(c.window.before, c.window.after)
		e.CPUs = d.CPUs
		e.CPUSeconds = busySeconds(d.CPUs)
		// The counters are read around the window, on a busy host well around it. What they say of the time outside is taken off.
		if inside := (c.window.shut.at - c.window.open.at).Seconds(); inside > 0 && d.Seconds > inside {
			e.CPUSeconds *= inside / d.Seconds
		}
		e.Counters = make(map[string]uint64)
		for name, v := range d.Values {
			if v != 0 {
				e.Counters[name] = v
			}
		}
		e.Drops = dropsIn(e.Counters)
	}
	for i, w := range c.workers {
		if w.Conn != nil && i < len(c.window.ends) && c.window.ends[i].Length > 0 {
			e.TCP = append(e.TCP, c.flow(i, w))
		}
	}
	return e
}

// flow is the evidence of one connection: differences where the kernel counts, the last reading where it shows a state.
func (c *conductor) flow(i int, w *engine.Worker) TCPInfo {
	// Counters of the kernel never go back on one connection; min() guards against a socket that was not readable at the first edge.
	a, b, f := c.window.infos[i], c.window.ends[i], c.samples[i]
	micros := func(after, before uint64) float64 { return float64(after-min(after, before)) / 1e6 }
	t := TCPInfo{
		Sender:                 w.Role == engine.Sender,
		BusySeconds:            micros(b.BusyMicros, a.BusyMicros),
		RwndLimitedSeconds:     micros(b.RwndLimitedMicros, a.RwndLimitedMicros),
		SndbufLimitedSeconds:   micros(b.SndbufLimitedMicros, a.SndbufLimitedMicros),
		AppLimited:             b.DeliveryRateAppLimited,
		RTTSeconds:             float64(b.RTTMicros) / 1e6,
		MinRTTSeconds:          minRTT(b.MinRTTMicros),
		CwndBytes:              float64(b.SndCwndPackets) * float64(b.SndMSSBytes),
		SndMSSBytes:            int(b.SndMSSBytes),
		RcvMSSBytes:            int(b.RcvMSSBytes),
		SndWndBytes:            int64(b.SndWndBytes),
		MaxSndWndBytes:         int64(max(f.maxSndWnd, b.SndWndBytes)),
		RcvWndBytes:            int64(b.RcvWndBytes),
		RcvSpaceBytes:          int64(b.RcvSpaceBytes),
		SndWScale:              int(b.SndWScale),
		RcvWScale:              int(b.RcvWScale),
		WScaleOK:               b.Options.Has(sys.OptWScale),
		SACKOK:                 b.Options.Has(sys.OptSACK),
		TimestampsOK:           b.Options.Has(sys.OptTimestamps),
		ECNOK:                  b.Options.Has(sys.OptECN),
		DeliveryRateBitsPerSec: float64(b.DeliveryRateBytes) * 8,
		BytesAcked:             b.BytesAcked - min(b.BytesAcked, a.BytesAcked),
		BytesReceived:          b.BytesReceived - min(b.BytesReceived, a.BytesReceived),
		BytesRetransmitted:     b.BytesRetrans - min(b.BytesRetrans, a.BytesRetrans),
		// These wrap at 32 bits, so the subtraction must as well.
		SegsOut:     uint64(b.SegsOut - a.SegsOut),
		SegsIn:      uint64(b.SegsIn - a.SegsIn),
		RetransSegs: uint64(b.TotalRetrans - a.TotalRetrans),
		ReorderSeen: uint64(b.ReordSeen - a.ReordSeen),
		DSACKDups:   uint64(b.DSACKDups - a.DSACKDups),
		PMTUBytes:   int(b.PMTUBytes),
	}
	if f.count > 0 {
		t.MeanRTTSeconds, t.MeanCwndBytes = f.rttSum/float64(f.count), f.cwndSum/float64(f.count)
	}
	o := c.window.options[i]
	t.SndBufBytes, t.RcvBufBytes, t.CongestionControl = o.SendBytes, o.ReceiveBytes, o.Congestion
	return t
}

// minRTT is tcpi_min_rtt in seconds; the kernel says ~0 when it has none yet.
func minRTT(micros uint32) float64 {
	if micros == ^uint32(0) {
		return 0
	}
	return float64(micros) / 1e6
}

// busySeconds is the time that all CPUs together spent on anything but idling; steal is time that this host did not get.
func busySeconds(cpus []host.CPUTimes) float64 {
	var sum float64
	for _, c := range cpus {
		busy := c.User + c.System + c.IRQ + c.SoftIRQ
		if c.CPU == -1 { // the kernel's own sum of all CPUs, the line "cpu" of /proc/stat
			return busy
		}
		sum += busy
	}
	return sum
}

// dropCounters are the names of counters that mean lost packets, by how a name of host.Counters ends (after the interface or CPU) or
// starts. Errors (crc, frame) are losses as well, but of the cable, so they are not here unless the driver dropped for want of room.
var dropCounters = []struct{ prefix, suffix string }{
	{"nic.", ".rx_dropped"},       // no room or no protocol
	{"nic.", ".tx_dropped"},       // the driver refused
	{"nic.", ".rx_missed_errors"}, // the card had no descriptor
	{"nic.", ".rx_fifo_errors"},   // the card overran
	{"nic.", ".rx_over_errors"},
	{"nic.", ".rx_nohandler"},
	{"softnet.dropped", ""}, // net.core.netdev_max_backlog
	{"softnet.flow_limit", ""},
	{"qdisc.", ".drops"},
	{"TcpExt.", "Drop"}, // TCPBacklogDrop, TCPZeroWindowDrop, TCPOFODrop, TCPReqQFullDrop, PFMemallocDrop, …
	{"TcpExt.", "Drops"},
	{"TcpExt.", "Dropped"},
	{"TcpExt.TCPRcvQDrop", ""},
	{"TcpExt.PruneCalled", ""},
	{"TcpExt.RcvPruned", ""},
	{"TcpExt.OfoPruned", ""},
	{"TcpExt.ListenOverflows", ""},
	{"Udp.RcvbufErrors", ""},
	{"Udp.SndbufErrors", ""},
	{"Udp6.RcvbufErrors", ""},
	{"Udp6.SndbufErrors", ""},
	{"Ip.InDiscards", ""},
	{"Ip.OutDiscards", ""},
	{"Ip6.InDiscards", ""},
	{"Ip6.OutDiscards", ""},
}

// isDrop tells whether a counter of host.Counters counts packets that died.
func isDrop(name string) bool {
	for _, d := range dropCounters {
		if d.suffix == "" && name == d.prefix || d.suffix != "" && strings.HasPrefix(name, d.prefix) && strings.HasSuffix(name, d.suffix) {
			return true
		}
	}
	return false
}

// dropsIn lists the places where packets died, the worst first; it is never nil.
func dropsIn(counters map[string]uint64) []Drop {
	drops := []Drop{}
	for name, n := range counters {
		if n > 0 && isDrop(name) {
			drops = append(drops, Drop{Place: name, Total: n})
		}
	}
	slices.SortFunc(drops, func(a, b Drop) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Place, b.Place))
	})
	return drops
}

// doubts lists what makes this side's numbers doubtful, one sentence each.
func (c *conductor) doubts(e End, name string) []string {
	out := slices.Clone(c.warnings)
	if name == "" {
		name = "this host"
	}
	for _, cpu := range e.CPUs {
		total := cpu.User + cpu.System + cpu.IRQ + cpu.SoftIRQ + cpu.Steal + cpu.Idle
		if total <= 0 {
			continue
		}
		if share := cpu.Steal / total; cpu.CPU == -1 && share > maxStealShare {
			out = append(out, fmt.Sprintf("the hypervisor took %.1f %% of the CPU time of %s for others", 100*share, name))
		}
		if cpu.CPU >= 0 && cpu.Idle/total < minIdleShare && total > 0.5 {
			out = append(out, fmt.Sprintf("cpu %d of %s was %.0f %% busy and may be what was measured", cpu.CPU, name, 100*(1-cpu.Idle/total)))
		}
	}
	return append(out, c.unsteady(name)...)
}

// unsteady looks at the series of the measured window in steps of half a second and more, where the jitter of single bins averages out.
func (c *conductor) unsteady(name string) []string {
	const step, fewest = 10, 5
	if c.spec.Test == Ping || len(c.series) < step*fewest || stats.Mean(c.series) == 0 {
		return nil // too short to be judged, or this side only sends
	}
	var coarse []float64
	for i := 0; i+step <= len(c.series); i += step {
		coarse = append(coarse, stats.Mean(c.series[i:i+step]))
	}
	var out []string
	for _, w := range stats.CheckSeries(coarse, 0) {
		out = append(out, fmt.Sprintf("series measured at %s: %s", name, w.Text))
	}
	return out
}
