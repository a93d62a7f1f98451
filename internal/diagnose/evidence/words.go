package evidence

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
)

// Combine returns the confidence that independent pieces of evidence give together: one minus the
// chance that all of them mislead. It never reaches certainty; only an experiment does.
//
// Strengths are judgements and not frequencies: 0.3 is a hint, 0.5 to 0.6 a sign, 0.75 and more
// what the kernel itself states. The cap of 0.98 leaves room for an explanation that no rule
// considers.
func Combine(strengths ...float64) float64 {
	doubt := 1.0
	for _, s := range strengths {
		doubt *= 1 - s
	}
	return min(1-doubt, 0.98)
}

// When returns the strength if the fact holds, and 0 otherwise.
func When(fact bool, strength float64) float64 {
	if fact {
		return strength
	}
	return 0
}

// Rate, Bytes, Seconds, Count and Percent format numbers for sentences.
func Rate(bitsPerSecond float64) string { return unit.BitRate(bitsPerSecond).String() }
func Bytes(n float64) string            { return unit.Bytes(n).String() }
func Seconds(s float64) string          { return unit.FormatSeconds(s) }

func Count(n float64) string { return unit.FormatCount(n) }

// Percent formats a share with no more digits than a reader needs. Below one per cent it keeps two
// digits, because verdicts on loss turn on values between 0.01 % and 1 %.
func Percent(ratio float64) string {
	if p := 100 * ratio; p >= 0.95 || p == 0 {
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	}
	return strconv.FormatFloat(100*ratio, 'g', 2, 64) + " %"
}

// Setting returns one value of the host's snapshot.
func (e End) Setting(name string) (string, bool) {
	if e.Host == nil {
		return "", false
	}
	return e.Host.Setting(name)
}

// Number returns a setting, or the given field of a setting with several, as a number.
func (e End) Number(name string, field int) (float64, bool) {
	text, ok := e.Setting(name)
	if !ok {
		return 0, false
	}
	fields := strings.Fields(text)
	if field >= len(fields) {
		return 0, false
	}
	x, err := strconv.ParseFloat(fields[field], 64)
	return x, err == nil
}

// The knobs that rules read or propose.
const (
	TCPRmem                       = "sysctl:net.ipv4.tcp_rmem"
	TCPWmem                       = "sysctl:net.ipv4.tcp_wmem"
	TCPAdvWinScale                = "sysctl:net.ipv4.tcp_adv_win_scale"
	TCPWindowScaling              = "sysctl:net.ipv4.tcp_window_scaling"
	TCPModerateRcvbuf             = "sysctl:net.ipv4.tcp_moderate_rcvbuf"
	TCPCongestionControl          = "sysctl:net.ipv4.tcp_congestion_control"
	TCPAvailableCongestionControl = "sysctl:net.ipv4.tcp_available_congestion_control"
	TCPAllowedCongestionControl   = "sysctl:net.ipv4.tcp_allowed_congestion_control"
	CoreRmemMax                   = "sysctl:net.core.rmem_max"
	CoreWmemMax                   = "sysctl:net.core.wmem_max"
)

// Common returns the evidence with which every verdict on a flow begins.
func (f *Flow) Common() []Evidence {
	all := []Evidence{{Name: "throughput", Value: f.RateBitsPerSec, Unit: "bits_per_second",
		Source: "payload counted at the receiver (" + f.Receiver.Name + ")"}}
	if f.Loaded() > 0 {
		all = append(all, Evidence{Name: "round trip under load", Value: f.Loaded(), Unit: "seconds",
			Source: f.TCPInfo("tcpi_rtt")})
	}
	if f.IdleRTTSeconds > 0 {
		all = append(all, Evidence{Name: "idle round trip, smallest", Value: f.IdleRTTSeconds, Unit: "seconds",
			Source: "ping before the load"})
	} else if f.MinRTTSeconds > 0 {
		all = append(all, Evidence{Name: "round trip, smallest", Value: f.MinRTTSeconds, Unit: "seconds",
			Source: f.TCPInfo("tcpi_min_rtt")})
	}
	return all
}

// TCPInfo returns a field of the sender's tcp_info as a source.
func (f *Flow) TCPInfo(field string) string { return "tcp_info " + field + " (" + f.Sender.Name + ")" }

// WindowEvidence returns what the windows and the chronographs show.
func (f *Flow) WindowEvidence() []Evidence {
	return []Evidence{
		{Name: "largest receive window offered", Value: f.WindowBytes, Unit: "bytes",
			Source: f.TCPInfo("tcpi_snd_wnd")},
		{Name: "rate that this window allows", Value: WindowRate(f.WindowBytes, f.Loaded()), Unit: "bits_per_second",
			Source: "window / round trip under load"},
		{Name: "busy time limited by the receive window", Value: f.Share(f.RwndLimitedSeconds), Unit: "ratio",
			Source: f.TCPInfo("tcpi_rwnd_limited / tcpi_busy_time")},
		{Name: "congestion window, mean", Value: f.CwndBytes, Unit: "bytes", Source: f.TCPInfo("tcpi_snd_cwnd")},
	}
}

// WindowRate returns the rate that a window and a round trip allow, in bits per second; 0 if the
// round trip is unknown.
func WindowRate(window, roundTrip float64) float64 {
	if roundTrip <= 0 {
		return 0
	}
	return window * 8 / roundTrip
}

// FullProcessor is the share of busy time from which on a CPU may be what limits a flow.
//
// The counters of /proc/stat tick at 100 Hz and a run takes seconds, so the last few per cent are
// not measurable; and a thread that moves between CPUs leaves none of them at 100 %.
const FullProcessor = 0.85

// The Not methods return the sentences with which findings reject alternatives, each with the
// number that rules the alternative out. They check nothing: the calling rule decides, and the
// number lets the reader check the decision.

// NotReceiveWindow rejects receive-window-limited.
func (f *Flow) NotReceiveWindow() string {
	return fmt.Sprintf("Not the receive window: it limited the sender for %s of its busy time, "+
		"and the advertised %s would allow %s on the empty path.",
		Percent(f.Share(f.RwndLimitedSeconds)), Bytes(f.WindowBytes), Rate(WindowRate(f.WindowBytes, f.Base())))
}

// NotSendBuffer rejects send-buffer-limited.
func (f *Flow) NotSendBuffer() string {
	return fmt.Sprintf("Not the send buffer: it limited the sender for %s of its busy time.",
		Percent(f.Share(f.SndbufLimitedSeconds)))
}

// NotLoss rejects path-loss.
func (f *Flow) NotLoss() string {
	return fmt.Sprintf("Not loss: %s of %s segments were retransmitted (%s).", Count(f.Retransmits), Count(f.Segments),
		Percent(f.Loss()))
}

// NotCongestionWindow rejects limits of the congestion control.
func (f *Flow) NotCongestionWindow() string {
	return fmt.Sprintf("Not the congestion window (%s): it was %s, and %s were in flight.", f.Congestion,
		Bytes(f.CwndBytes), Bytes(f.InFlight()))
}

// NotQueue rejects a bottleneck with a queue.
func (f *Flow) NotQueue() string {
	return fmt.Sprintf("Not a slower link with a queue: the round trip is %s under load and %s on the empty path.",
		Seconds(f.UnderLoad()), Seconds(f.Base()))
}

// NotProcessor rejects a saturated CPU. It returns nothing if the CPU times are unknown, and if a
// CPU is so busy that its load alone does not rule it out. Where only one host reports its times,
// only that host's CPUs are rejected.
func (f *Flow) NotProcessor() []string {
	e, cpu, busy, ok := f.BusiestOf()
	if !ok || busy >= FullProcessor {
		return nil
	}
	_, _, sender := f.Sender.Busiest()
	_, _, receiver := f.Receiver.Busiest()
	if !sender || !receiver {
		return []string{fmt.Sprintf("Not the CPUs of the %s host: the busiest one (CPU %d) was busy for %s of the time.",
			e.Name, cpu, Percent(busy))}
	}
	return []string{fmt.Sprintf("Not the CPUs: the busiest one (CPU %d at %s) was busy for %s of the time.", cpu,
		e.Name,
		Percent(busy))}
}
