package diagnose

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/unit"
)

// combine gives the confidence that independent pieces of evidence make together: one minus the chance that all of them mislead.
// It never reaches certainty; only an experiment does.
//
// Strengths are judgements and not frequencies: 0.3 a hint, 0.5 to 0.6 a sign, 0.75 and more what the kernel itself
// states. The cap of 0.98 leaves room for the one explanation that nobody has thought of.
func combine(strengths ...float64) float64 {
	doubt := 1.0
	for _, s := range strengths {
		doubt *= 1 - s
	}
	return min(1-doubt, 0.98)
}

// when gives a strength if the fact holds.
func when(fact bool, strength float64) float64 {
	if fact {
		return strength
	}
	return 0
}

// rate, bytes, seconds, count and percent print numbers in sentences.
func rate(bitsPerSecond float64) string { return unit.BitRate(bitsPerSecond).String() }
func bytes(n float64) string            { return unit.Bytes(n).String() }
func seconds(s float64) string          { return unit.FormatSeconds(s) }

func count(n float64) string { return unit.FormatCount(n) }

// percent prints a share with no more digits than a reader needs.
//
// Below one per cent two digits stay, because verdicts on loss are decided between 0.01 % and 1 %.
func percent(ratio float64) string {
	if p := 100 * ratio; p >= 0.95 || p == 0 {
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	}
	return strconv.FormatFloat(100*ratio, 'g', 2, 64) + " %"
}

// setting reads one value of a host's snapshot.
func (e end) setting(name string) (string, bool) {
	if e.host == nil {
		return "", false
	}
	return e.host.Setting(name)
}

// number reads a setting, or the given field of one that holds several, as a number.
func (e end) number(name string, field int) (float64, bool) {
	text, ok := e.setting(name)
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
	tcpRmem       = "sysctl:net.ipv4.tcp_rmem"
	tcpWmem       = "sysctl:net.ipv4.tcp_wmem"
	tcpAdvWin     = "sysctl:net.ipv4.tcp_adv_win_scale"
	tcpScaling    = "sysctl:net.ipv4.tcp_window_scaling"
	tcpModerate   = "sysctl:net.ipv4.tcp_moderate_rcvbuf"
	tcpCongestion = "sysctl:net.ipv4.tcp_congestion_control"
	tcpAvailable  = "sysctl:net.ipv4.tcp_available_congestion_control"
	tcpAllowed    = "sysctl:net.ipv4.tcp_allowed_congestion_control"
	coreRmemMax   = "sysctl:net.core.rmem_max"
	coreWmemMax   = "sysctl:net.core.wmem_max"
)

// common is the evidence that every verdict on a flow shows first.
func (f *flow) common() []Evidence {
	all := []Evidence{{Name: "throughput", Value: f.rate, Unit: "bits_per_second", Source: "payload counted at the receiver (" + f.receiver.name + ")"}}
	if f.loaded() > 0 {
		all = append(all, Evidence{Name: "round trip under load", Value: f.loaded(), Unit: "seconds", Source: f.tcpInfo("tcpi_rtt")})
	}
	if f.idleRTT > 0 {
		all = append(all, Evidence{Name: "idle round trip, smallest", Value: f.idleRTT, Unit: "seconds", Source: "ping before the load"})
	} else if f.minRTT > 0 {
		all = append(all, Evidence{Name: "round trip, smallest", Value: f.minRTT, Unit: "seconds", Source: f.tcpInfo("tcpi_min_rtt")})
	}
	return all
}

// tcpInfo names a field of the sender's tcp_info as a source.
func (f *flow) tcpInfo(field string) string { return "tcp_info " + field + " (" + f.sender.name + ")" }

// windowEvidence is what the windows and the chronographs say.
func (f *flow) windowEvidence() []Evidence {
	return []Evidence{
		{Name: "largest receive window offered", Value: f.window, Unit: "bytes", Source: f.tcpInfo("tcpi_snd_wnd")},
		{Name: "rate that this window allows", Value: windowRate(f.window, f.loaded()), Unit: "bits_per_second", Source: "window / round trip under load"},
		{Name: "busy time limited by the receive window", Value: f.share(f.rwndLimited), Unit: "ratio", Source: f.tcpInfo("tcpi_rwnd_limited / tcpi_busy_time")},
		{Name: "congestion window, mean", Value: f.cwnd, Unit: "bytes", Source: f.tcpInfo("tcpi_snd_cwnd")},
	}
}

// windowRate is the rate that a window and a round trip allow, bits per second; 0 when the round trip is unknown.
func windowRate(window, roundTrip float64) float64 {
	if roundTrip <= 0 {
		return 0
	}
	return window * 8 / roundTrip
}

// fullProcessor is the share of time beyond which a processor may be what a flow waits for.
//
// The counters of /proc/stat tick at 100 Hz and a run has seconds, so that the last per cents are not to be had; and
// a thread that moves between processors leaves none of them at 100 %.
const fullProcessor = 0.85

// The sentences with which findings reject their neighbours. Each names the number that rules the neighbour out.

// None of them checks anything: that the neighbour is out is for the calling rule to know, and the number lets the
// reader check it.
func (f *flow) notReceiveWindow() string {
	return fmt.Sprintf("Not the receive window: it held the sender for %s of its busy time, and the %s offered would allow %s.",
		percent(f.share(f.rwndLimited)), bytes(f.window), rate(windowRate(f.window, f.base())))
}

func (f *flow) notSendBuffer() string {
	return fmt.Sprintf("Not the send buffer: it held the sender for %s of its busy time.", percent(f.share(f.sndbufLimited)))
}

func (f *flow) notLoss() string {
	return fmt.Sprintf("Not loss: %s of %s segments were sent again (%s).", count(f.retransmits), count(f.segments), percent(f.loss()))
}

func (f *flow) notCongestionWindow() string {
	return fmt.Sprintf("Not the congestion window (%s): it stood at %s, and %s were in flight.", f.congestion, bytes(f.cwnd), bytes(f.inFlight()))
}

func (f *flow) notQueue() string {
	return fmt.Sprintf("Not a slower link with a queue: the round trip under load is %s, empty %s.", seconds(f.loaded()), seconds(f.base()))
}

// notProcessor is empty when the processors are not known, and when one is so busy that it cannot be ruled out by that alone.
func (f *flow) notProcessor() []string {
	e, cpu, busy, ok := f.busiestOf()
	if !ok || busy >= fullProcessor {
		return nil
	}
	return []string{fmt.Sprintf("Not the processors: the busiest (CPU %d at %s) worked %s of the time.", cpu, e.name, percent(busy))}
}
