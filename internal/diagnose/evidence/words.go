package evidence

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
)

// combine gives the confidence that independent pieces of evidence make together: one minus the
// chance that all of them mislead. It never reaches certainty; only an experiment does.
//
// Strengths are judgements and not frequencies: 0.3 a hint, 0.5 to 0.6 a sign, 0.75 and more what
// the kernel itself states. The cap of 0.98 leaves room for the one explanation that nobody has
// thought of.
func Combine(strengths ...float64) float64 {
	doubt := 1.0
	for _, s := range strengths {
		doubt *= 1 - s
	}
	return min(1-doubt, 0.98)
}

// when gives a strength if the fact holds.
func When(fact bool, strength float64) float64 {
	if fact {
		return strength
	}
	return 0
}

// rate, bytes, seconds, count and percent print numbers in sentences.
func Rate(bitsPerSecond float64) string { return unit.BitRate(bitsPerSecond).String() }
func Bytes(n float64) string            { return unit.Bytes(n).String() }
func Seconds(s float64) string          { return unit.FormatSeconds(s) }

func Count(n float64) string { return unit.FormatCount(n) }

// percent prints a share with no more digits than a reader needs.
//
// Below one per cent two digits stay, because verdicts on loss are decided between 0.01 % and 1 %.
func Percent(ratio float64) string {
	if p := 100 * ratio; p >= 0.95 || p == 0 {
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	}
	return strconv.FormatFloat(100*ratio, 'g', 2, 64) + " %"
}

// setting reads one value of a host's snapshot.
func (e End) Setting(name string) (string, bool) {
	if e.Host == nil {
		return "", false
	}
	return e.Host.Setting(name)
}

// number reads a setting, or the given field of one that holds several, as a number.
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

// common is the evidence that every verdict on a flow shows first.
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

// tcpInfo names a field of the sender's tcp_info as a source.
func (f *Flow) TCPInfo(field string) string { return "tcp_info " + field + " (" + f.Sender.Name + ")" }

// windowEvidence is what the windows and the chronographs say.
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

// windowRate is the rate that a window and a round trip allow, bits per second; 0 when the round
// trip is unknown.
func WindowRate(window, roundTrip float64) float64 {
	if roundTrip <= 0 {
		return 0
	}
	return window * 8 / roundTrip
}

// fullProcessor is the share of time beyond which a processor may be what a flow waits for.
//
// The counters of /proc/stat tick at 100 Hz and a run has seconds, so that the last per cents are
// not to be had; and a thread that moves between processors leaves none of them at 100 %.
const FullProcessor = 0.85

// The sentences with which findings reject their neighbours. Each names the number that rules the
// neighbour out.

// None of them checks anything: that the neighbour is out is for the calling rule to know, and the
// number lets the reader check it.
func (f *Flow) NotReceiveWindow() string {
	return fmt.Sprintf("Not the receive window: it held the sender for %s of its busy time, and the %s offered would allow %s on the empty path.",
		Percent(f.Share(f.RwndLimitedSeconds)), Bytes(f.WindowBytes), Rate(WindowRate(f.WindowBytes, f.Base())))
}

func (f *Flow) NotSendBuffer() string {
	return fmt.Sprintf("Not the send buffer: it held the sender for %s of its busy time.",
		Percent(f.Share(f.SndbufLimitedSeconds)))
}

func (f *Flow) NotLoss() string {
	return fmt.Sprintf("Not loss: %s of %s segments were sent again (%s).", Count(f.Retransmits), Count(f.Segments),
		Percent(f.Loss()))
}

func (f *Flow) NotCongestionWindow() string {
	return fmt.Sprintf("Not the congestion window (%s): it stood at %s, and %s were in flight.", f.Congestion,
		Bytes(f.CwndBytes), Bytes(f.InFlight()))
}

func (f *Flow) NotQueue() string {
	return fmt.Sprintf("Not a slower link with a queue: the round trip under load is %s, empty %s.",
		Seconds(f.UnderLoad()), Seconds(f.Base()))
}

// notProcessor is empty when the processors are not known, and when one is so busy that it cannot
// be ruled out by that alone.
func (f *Flow) NotProcessor() []string {
	e, cpu, busy, ok := f.BusiestOf()
	if !ok || busy >= FullProcessor {
		return nil
	}
	return []string{fmt.Sprintf("Not the processors: the busiest (CPU %d at %s) worked %s of the time.", cpu, e.Name,
		Percent(busy))}
}
