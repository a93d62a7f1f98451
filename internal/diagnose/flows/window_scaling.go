package flows

import (
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// unscaledWindow is the largest window that fits the 16 bits of a TCP header without the
// window-scale option (RFC 7323).
const unscaledWindow = 65535

// windowScalingOff finds a connection that did not negotiate the window-scale option, so that no
// window exceeds 65 535 bytes.
//
// The finding needs a cost: on a path where 64 KiB per round trip exceed the rate, the missing
// option is harmless.
//
// The SYN offers the option and the SYN-ACK answers it; later segments cannot (RFC 7323 §2.2). Both
// hosts must have it on when the connection opens, and a middlebox that strips it looks the same as
// a host that has it off.
func windowScalingOff(f *evidence.Flow) *evidence.Finding {
	if f.Streams == 0 || f.WindowScaling || f.WindowBytes <= 0 || f.Base() <= 0 {
		return nil
	}
	perStream := f.WindowBytes / float64(f.Streams)
	if perStream > unscaledWindow || !f.FillsWindow() && !heldOnShortPath(f) {
		return nil
	}
	x := &evidence.Finding{
		Code: evidence.WindowScalingOff, Severity: evidence.Warning, Where: "path",
		Title: fmt.Sprintf("Without window scaling at most %d bytes fit into a round trip of %s, "+
			"which limits the flow to %s.",
			unscaledWindow, evidence.Seconds(f.Loaded()), evidence.Rate(f.RateBitsPerSec)),
		Evidence: append(f.Common(), evidence.Evidence{Name: "window scaling agreed on", Value: false,
			Source: f.TCPInfo("tcpi_options TCPI_OPT_WSCALE")}),
		Rejected: []string{f.NotSendBuffer(), f.NotLoss(), f.NotQueue()},
	}
	x.Evidence = append(x.Evidence, f.WindowEvidence()...)
	var off []string
	for _, e := range []evidence.End{f.Receiver, f.Sender} {
		value, ok := e.Setting(evidence.TCPWindowScaling)
		if !ok {
			continue
		}
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "net.ipv4.tcp_window_scaling", Value: value,
			Source: "sysctl (" + e.Name + ")"})
		if value == "0" {
			off = append(off, e.Name)
			x.Remedy.Add(evidence.Candidate{Knob: evidence.TCPWindowScaling, Side: e.Name, Levels: []knob.Value{"1"},
				Why: "the kernel uses the option only if both hosts offer it"})
		}
	}
	if rmem, ok := f.Receiver.Number(evidence.TCPRmem, 2); ok {
		x.Rejected = append(x.Rejected,
			fmt.Sprintf("Not the size of the receive buffer: net.ipv4.tcp_rmem allows %s at the %s host.",
				evidence.Bytes(rmem), f.Receiver.Name))
	}
	x.Remedy.Proof = "Open new connections with the option on and off alternately: only without it, " +
		"65535 bytes per round trip bound the rate on this path; on a path of less than a millisecond it " +
		"makes no difference."
	switch len(off) {
	case 0:
		x.Confidence = evidence.Combine(0.6, 0.6)
		x.Remedy.Text = "Both hosts offer the option, so a device between them removes it from the handshake: " +
			"look for a firewall or a proxy."
	default:
		x.Confidence = evidence.Combine(0.9, 0.6)
		x.Where = strings.Join(off, " and ")
		if len(off) > 1 {
			x.Where = "near and far"
		}
		x.Remedy.Text = fmt.Sprintf("Set net.ipv4.tcp_window_scaling to 1 (%s); it is off there.", x.Where)
	}
	return x
}
