package ceiling

import (
	"fmt"
	"math"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/kernel/procfs"
)

// Side names the end of a flow of the buffer.
type Side string

// The two ends of a flow: what this host can receive, and what it can have in flight.
const (
	Receive Side = "receive"
	Send    Side = "send"
)

// judgedRTTs are the round trips for which All judges the buffers: a building, a country, an ocean.
var judgedRTTs = [...]time.Duration{time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond}

// maxUnscaled is the largest window in bytes that a TCP header can express without the window scale
// option (RFC 7323 §2.3).
const maxUnscaled = 65535

// maxScaled is the largest window in bytes with that option: a shift of at most 14.
const maxScaled = maxUnscaled << 14

// UsableWindow returns how many bytes of payload one flow can have in flight under this host's
// buffer limits, for sockets that leave sizing to the kernel: tcp_rmem when it receives, tcp_wmem
// when it sends. why is the formula. ok is false if the setting is not known.
//
// For sending, and for a receiver without window scaling, it is a bound. For other receivers it is
// what a new flow gets: since Linux 6.6 the kernel measures the share as payload per memory of the
// arriving packets, and the share ends between 0.6 (single 1500-byte frames) and 0.9 (packets
// merged by GRO; seen on a veth with Linux 6.18). A route's window clamp and a program's
// SO_RCVBUF/SO_SNDBUF are further limits that are not considered here.
func UsableWindow(s *host.Snapshot, side Side) (bytes int64, why string, ok bool) {
	switch side {
	case Receive:
		bytes, why, ok = receiveWindow(s)
	case Send:
		bytes, why, ok = sendWindow(s)
	}
	if !ok || bytes <= 0 {
		return 0, "", false
	}
	// Both ends agree on window scaling, so a host without it neither offers nor uses more than the
	// 16 bits of the header.
	if n, known := s.SysctlNumber("net.ipv4.tcp_window_scaling"); known && n == 0 && bytes > maxUnscaled {
		return maxUnscaled, "tcp_window_scaling=0 leaves the 16-bit window of the TCP header, 65535 bytes (RFC 7323)",
			true
	}
	if bytes > maxScaled {
		return maxScaled, why + ", of which the header can express 1 GiB (RFC 7323)", true
	}
	return bytes, why, true
}

// receiveWindow is UsableWindow for a receiver, before the bounds of the header.
func receiveWindow(s *host.Snapshot) (int64, string, bool) {
	value, ok := s.Setting("sysctl:net.ipv4.tcp_rmem")
	if !ok {
		return 0, "", false
	}
	_, def, space, ok := host.Triple(value)
	if !ok {
		return 0, "", false
	}
	what := "tcp_rmem maximum"
	// Without moderation the kernel never grows a buffer past the default (tcp_rcv_space_adjust).
	if n, known := s.SysctlNumber("net.ipv4.tcp_moderate_rcvbuf"); known && n == 0 {
		space, what = def, "tcp_rmem default (tcp_moderate_rcvbuf=0)"
	}
	if space <= 0 {
		return 0, "", false
	}
	// Linux 6.6 replaced tcp_adv_win_scale by a ratio measured per socket; it starts at one half
	// (TCP_DEFAULT_SCALING_RATIO).
	if procfs.KernelAtLeast(s.Kernel, 6, 6) {
		return space / 2, fmt.Sprintf(
			"%s %s, half of it payload until the kernel has measured more (tcp_scaling_ratio, Linux ≥ 6.6)", what,
			unit.Bytes(space)), true
	}
	scale := int64(1)
	if !procfs.KernelAtLeast(s.Kernel, 3, 4) {
		scale = 2 // the default until then
	}
	if n, known := s.SysctlNumber("net.ipv4.tcp_adv_win_scale"); known && n >= -31 && n <= 31 {
		scale = n
	}
	// tcp_win_from_space of Linux < 6.6.
	var window int64
	if scale > 0 {
		window = space - space>>scale
	} else {
		window = space >> -scale
	}
	return window, fmt.Sprintf("%s %s, tcp_adv_win_scale=%d leaves %s of it for payload (ip-sysctl.rst)", what,
		unit.Bytes(space), scale, unit.Bytes(window)), true
}

// sendWindow is UsableWindow for a sender, before the bounds of the header. The space includes the
// kernel's overhead as well (sk_wmem_queued counts whole buffers), but with segmentation offload
// that is a few percent, so the maximum serves as the bound.
func sendWindow(s *host.Snapshot) (int64, string, bool) {
	value, ok := s.Setting("sysctl:net.ipv4.tcp_wmem")
	if !ok {
		return 0, "", false
	}
	_, _, space, ok := host.Triple(value)
	if !ok || space <= 0 {
		return 0, "", false
	}
	return space, fmt.Sprintf("tcp_wmem maximum %s holds everything sent and not yet acknowledged", unit.Bytes(space)),
		true
}

// Window returns the rate that this host's socket buffers carry over a path of that round trip:
// usable window / RTT. ok is false if the setting is not known or rtt is not positive.
func Window(s *host.Snapshot, rtt time.Duration, side Side) (Rate, bool) {
	window, why, ok := UsableWindow(s, side)
	if !ok || rtt <= 0 {
		return Rate{}, false
	}
	// One window per round trip, in bits: the sender must wait for the acknowledgement before it
	// sends the next one.
	rate := float64(window) * 8 / rtt.Seconds()
	if math.IsInf(rate, 0) {
		return Rate{}, false
	}
	return Rate{
		Name:       fmt.Sprintf("window:%s@%s", side, rtt),
		BitsPerSec: rate,
		Why:        fmt.Sprintf("%s: %s per %s round trip", why, unit.Bytes(window), unit.FormatSeconds(rtt.Seconds())),
	}, true
}
