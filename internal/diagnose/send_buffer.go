package diagnose

import (
	"fmt"
	"strconv"

	"github.com/linerate/linerate/internal/knob"
)

// sendBufferFill is the least part of the send buffer that must be payload in flight. The kernel counts descriptors and pages in
// the buffer as well, so a full one holds between a third and nearly all of its size as payload.
const sendBufferFill = 0.3

// sendBufferLimited: the socket buffer of the sender cannot hold what the path needs in flight.
//
// The kernel counts tcpi_sndbuf_limited only at moments when a writer waits and nothing is left to send, so a large share is hard
// evidence and a small one, even zero, is none against. The second witness is the application-limited mark: our sender always has
// more to write, so a connection that the kernel finds with nothing to send was kept from writing by its buffer. Either needs the
// arithmetic: the rate fills the buffer on the empty path, and both windows would allow more. With a queue on the path the buffer
// merely bounds that queue, and the link is the limit.
func sendBufferLimited(f *flow) *Finding {
	if f.streams == 0 || f.sndbuf <= 0 || f.base() <= 0 || f.rate <= 0 || f.queued() {
		return nil
	}
	share := f.share(f.sndbufLimited)
	inFlight := f.rate / 8 * f.base()
	if inFlight < sendBufferFill*f.sndbuf {
		return nil
	}
	wmem, wmemKnown := f.sender.number(tcpWmem, 2)
	// Rates on both sides of these comparisons are means over the run, so that "room" must be a margin and not a
	// hair: 1.2 for the congestion window, which is sampled, 1.3 for the receive window, of which the largest counts.
	atCap := wmemKnown && f.sndbuf/float64(f.streams) >= 0.9*wmem
	roomy := f.cwnd >= 1.2*inFlight && f.window >= 1.3*inFlight
	byKernel := share >= 0.3
	byMark := (f.appLimited || share >= 0.05) && atCap && roomy && f.loss() < cleanLoss && f.share(f.rwndLimited) < limitedShare/2
	if !byKernel && !byMark {
		return nil
	}
	x := &Finding{
		Code: SendBufferLimited, Severity: Warning, Where: f.sender.name,
		Title: fmt.Sprintf("The send buffer of the %s host holds the flow at %s: %s of buffer for a round trip of %s.",
			f.sender.name, rate(f.rate), bytes(f.sndbuf), seconds(f.loaded())),
		Evidence: append(f.common(),
			Evidence{Name: "busy time limited by the send buffer", Value: share, Unit: "ratio", Source: f.tcpInfo("tcpi_sndbuf_limited / tcpi_busy_time")},
			Evidence{Name: "send buffer", Value: f.sndbuf, Unit: "bytes", Source: "SO_SNDBUF (" + f.sender.name + ")"},
			Evidence{Name: "payload in flight", Value: inFlight, Unit: "bytes", Source: "rate × smallest round trip"},
			Evidence{Name: "sender found with nothing to send", Value: f.appLimited, Source: f.tcpInfo("tcpi_delivery_rate_app_limited")},
			Evidence{Name: "congestion window, mean", Value: f.cwnd, Unit: "bytes", Source: f.tcpInfo("tcpi_snd_cwnd")},
			Evidence{Name: "largest receive window offered", Value: f.window, Unit: "bytes", Source: f.tcpInfo("tcpi_snd_wnd")},
		),
		Rejected:   append([]string{f.notReceiveWindow(), f.notCongestionWindow(), f.notLoss(), f.notQueue()}, f.notProcessor()...),
		Confidence: combine(when(byKernel, 0.75), when(f.appLimited, 0.5), when(atCap, 0.6), when(roomy, 0.5)) * (1 - when(wmemKnown && !atCap, 0.4)),
	}
	if wmemKnown {
		x.Evidence = append(x.Evidence, Evidence{Name: "largest send buffer allowed", Value: wmem, Unit: "bytes",
			Source: "sysctl net.ipv4.tcp_wmem, third field (" + f.sender.name + ")"})
	}
	f.sendBufferRemedy(x, wmem, wmemKnown, atCap)
	return x
}

// sendBufferRemedy raises the maximum where the buffer stands at it; elsewhere a program has set the size itself.
//
// The receiver's buffer is proposed along with it, because a send buffer and a receive window of one size hide each
// other: neither remedy alone shows a gain then.
func (f *flow) sendBufferRemedy(x *Finding, wmem float64, wmemKnown, atCap bool) {
	target, why := f.target()
	need := bytes(float64(roundUp(target / usableSendBuffer)))
	switch {
	case !wmemKnown:
		x.Remedy.Text = fmt.Sprintf("Raise the third field of net.ipv4.tcp_wmem at the %s host to about %s (%s). Its settings are not known here, so no candidate is offered.",
			f.sender.name, need, why)
		return
	case !atCap:
		x.Remedy.Text = fmt.Sprintf("The send buffers of the %s host may grow to %s, far above the one in use: look for a program that sets SO_SNDBUF itself.",
			f.sender.name, bytes(wmem))
		return
	}
	x.Remedy.Text = fmt.Sprintf("Raise the third field of net.ipv4.tcp_wmem at the %s host to %s or more; the target in flight is %s (%s).",
		f.sender.name, need, bytes(target), why)
	present, _ := f.sender.setting(tcpWmem)
	x.Remedy.add(Candidate{Knob: tcpWmem, Side: f.sender.name, Levels: bufferLevels(present, target, usableSendBuffer),
		Why: "the buffer must hold everything that is not acknowledged yet"})
	if rmem, ok := f.receiver.setting(tcpRmem); ok {
		x.Remedy.add(Candidate{Knob: tcpRmem, Side: f.receiver.name, Levels: last(bufferLevels(rmem, target, usableWindow(f.receiver))),
			Why: "the receive window becomes the limit once the send buffer is open"})
	}
	if now, ok := f.sender.setting(coreWmemMax); ok {
		var levels []knob.Value
		for _, size := range bufferSizes(now, target, usableSendBuffer) {
			levels = append(levels, knob.Value(strconv.FormatInt(size, 10)))
		}
		x.Remedy.add(Candidate{Knob: coreWmemMax, Side: f.sender.name, Levels: last(levels),
			Why: "limits only programs that set SO_SNDBUF themselves; global, so refused inside a container"})
	}
}
