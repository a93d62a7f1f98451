package diagnose

import (
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/knob"
)

// unscaledWindow is the largest window that fits the 16 bits of a TCP header without the window-scale option (RFC 7323).
const unscaledWindow = 65535

// windowScalingOff: the option was not agreed on, so no window passes 65 535 bytes.
//
// It must cost something: on a path where 64 KiB per round trip is more than the rate, the missing option is harmless.
//
// The option is offered in the SYN and answered in the SYN-ACK, never later (RFC 7323 §2.2), so that both hosts must
// have it on when the connection opens, and a box in between that strips it looks the same as a host that has it off.
func windowScalingOff(f *flow) *Finding {
	if f.streams == 0 || f.scaling || f.window <= 0 || f.base() <= 0 {
		return nil
	}
	perStream := f.window / float64(f.streams)
	if perStream > unscaledWindow || !f.fillsWindow() {
		return nil
	}
	x := &Finding{
		Code: WindowScalingOff, Severity: Warning, Where: "path",
		Title: fmt.Sprintf("Without window scaling no more than %d bytes fit into a round trip of %s, which holds the flow at %s.",
			unscaledWindow, seconds(f.loaded()), rate(f.rate)),
		Evidence: append(f.common(), Evidence{Name: "window scaling agreed on", Value: false, Source: f.tcpInfo("tcpi_options TCPI_OPT_WSCALE")}),
		Rejected: []string{f.notSendBuffer(), f.notLoss(), f.notQueue()},
	}
	x.Evidence = append(x.Evidence, f.windowEvidence()...)
	var off []string
	for _, e := range []end{f.receiver, f.sender} {
		value, ok := e.setting(tcpScaling)
		if !ok {
			continue
		}
		x.Evidence = append(x.Evidence, Evidence{Name: "net.ipv4.tcp_window_scaling", Value: value, Source: "sysctl (" + e.name + ")"})
		if value == "0" {
			off = append(off, e.name)
			x.Remedy.add(Candidate{Knob: tcpScaling, Side: e.name, Levels: []knob.Value{"1"}, Why: "the option is used only when both hosts offer it"})
		}
	}
	if rmem, ok := f.receiver.number(tcpRmem, 2); ok {
		x.Rejected = append(x.Rejected, fmt.Sprintf("Not the size of the receive buffer: net.ipv4.tcp_rmem allows %s at the %s host.", bytes(rmem), f.receiver.name))
	}
	switch len(off) {
	case 0:
		x.Confidence = combine(0.6, 0.6)
		x.Remedy.Text = "Both hosts seem to offer the option, so something between them strips it from the handshake: look for a firewall or a proxy."
	default:
		x.Confidence = combine(0.9, 0.6)
		x.Where = strings.Join(off, " and ")
		if len(off) > 1 {
			x.Where = "near and far"
		}
		x.Remedy.Text = fmt.Sprintf("Set net.ipv4.tcp_window_scaling to 1 (%s); it is off there.", x.Where)
	}
	return x
}
