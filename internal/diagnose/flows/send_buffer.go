package flows

import (
	"fmt"
	"strconv"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

// sendBufferFill is the part of the send buffer that must at least be payload in flight. The kernel
// counts descriptors and pages in the buffer as well, so a full one holds between a third and
// nearly all of its size as payload.
const sendBufferFill = 0.3

// bufferGain is how many times more eight buffers must carry than one for that one to be too small:
// runs differ by less.
const bufferGain = 1.25

// sendBufferLimited finds a sender whose socket buffer cannot hold what the path needs in flight.
//
// The kernel counts tcpi_sndbuf_limited only while a writer waits and nothing is left to send. A
// large share is therefore hard evidence, and a small one, even zero, is no evidence against. The
// second evidence is the application-limited mark: the test sender always has more to write, so if
// the kernel finds nothing to send, the buffer kept the sender from writing. Both need the
// arithmetic: the rate fills the buffer on the empty path, and both windows would allow more. With
// a queue on the path the buffer merely bounds that queue, and the link is the limit.
func sendBufferLimited(f *evidence.Flow) *evidence.Finding {
	if f.Streams == 0 || f.SndbufBytes <= 0 || f.Base() <= 0 || f.RateBitsPerSec <= 0 || f.Queued() {
		return nil
	}
	share := f.Share(f.SndbufLimitedSeconds)
	inFlight := f.RateBitsPerSec / 8 * f.Base()
	wmem, wmemKnown := f.Sender.Number(evidence.TCPWmem, 2)
	byIdling := wmemKnown && idlesOnShortPath(f, wmem)
	if inFlight < sendBufferFill*f.SndbufBytes && !byIdling {
		return nil
	}
	// Both sides of these comparisons are means over the run, so "room" needs a margin: 1.2 for the
	// congestion window, which is sampled, and 1.3 for the receive window, of which the largest
	// counts.
	atCap := wmemKnown && f.SndbufBytes/float64(f.Streams) >= 0.9*wmem
	roomy := f.CwndBytes >= 1.2*inFlight && f.WindowBytes >= 1.3*inFlight
	byKernel := share >= 0.3
	byMark := (f.AppLimited || share >= 0.05) && atCap && roomy && f.Loss() < cleanLoss &&
		f.Share(f.RwndLimitedSeconds) < evidence.LimitedShare/2
	if !byKernel && !byMark && !byIdling {
		return nil
	}
	// Without the kernel's chronograph the mark is a suspicion: a sender that paces to a full link
	// also has nothing to send at times. Eight streams have eight buffers, and are no faster on a
	// full link. If the probe cannot run, the suspicion stays with less confidence.
	var gain float64
	if byIdling {
		gain = probed(f, evidence.ProbeStreams).RateBitsPerSec / f.RateBitsPerSec
	} else if !byKernel && f.Streams <= fewStreams {
		if run := probed(f, evidence.ProbeStreams); run != nil {
			if gain = run.RateBitsPerSec / f.RateBitsPerSec; gain < bufferGain {
				return nil
			}
		}
	}
	x := &evidence.Finding{
		Code: evidence.SendBufferLimited, Severity: evidence.Warning, Where: f.Sender.Name,
		Title: fmt.Sprintf("The send buffer of the %s host limits the flow to %s: "+
			"%s of buffer for a round trip of %s.",
			f.Sender.Name, evidence.Rate(f.RateBitsPerSec), evidence.Bytes(f.SndbufBytes),
			evidence.Seconds(f.Loaded())),
		Evidence: append(f.Common(),
			evidence.Evidence{Name: "busy time limited by the send buffer", Value: share, Unit: "ratio",
				Source: f.TCPInfo("tcpi_sndbuf_limited / tcpi_busy_time")},
			evidence.Evidence{Name: "send buffer", Value: f.SndbufBytes, Unit: "bytes",
				Source: "SO_SNDBUF (" + f.Sender.Name + ")"},
			evidence.Evidence{Name: "payload in flight", Value: inFlight, Unit: "bytes",
				Source: "rate × smallest round trip"},
			evidence.Evidence{Name: "sender found with nothing to send", Value: f.AppLimited,
				Source: f.TCPInfo("tcpi_delivery_rate_app_limited")},
			evidence.Evidence{Name: "congestion window, mean", Value: f.CwndBytes, Unit: "bytes",
				Source: f.TCPInfo("tcpi_snd_cwnd")},
			evidence.Evidence{Name: "largest receive window offered", Value: f.WindowBytes, Unit: "bytes",
				Source: f.TCPInfo("tcpi_snd_wnd")},
		),
		Rejected: append([]string{f.NotReceiveWindow(), f.NotCongestionWindow(), f.NotLoss(), f.NotQueue()},
			f.NotProcessor()...),
		Confidence: evidence.Combine(evidence.When(byKernel, 0.75), evidence.When(f.AppLimited, 0.5),
			evidence.When(byIdling, 0.5),
			evidence.When(atCap, 0.6),
			evidence.When(roomy, 0.5)) * (1 - evidence.When(wmemKnown && !atCap, 0.4)),
	}
	if !byKernel && gain == 0 {
		x.Confidence *= 0.7
	}
	if gain > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "eight streams together, of the rate of one",
			Value: gain, Unit: "times", Source: "probe streams"})
	}
	if wmemKnown {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "largest send buffer allowed", Value: wmem,
			Unit:   "bytes",
			Source: "sysctl net.ipv4.tcp_wmem, third field (" + f.Sender.Name + ")"})
	}
	sendBufferRemedy(f, x, wmem, wmemKnown, atCap)
	x.Remedy.Proof = windowProof
	if byIdling {
		x.Title = fmt.Sprintf("The send buffer of the %s host limits the flow to %s: "+
			"%s of buffer, and data on their way for only %s of the time.", f.Sender.Name,
			evidence.Rate(f.RateBitsPerSec), evidence.Bytes(f.SndbufBytes),
			evidence.Percent(f.BusySeconds/(f.Run.DurationSeconds*float64(f.Streams))))
		x.Remedy.Proof = "Open new connections with the larger and the present value alternately: one of them " +
			"carries more with the larger buffer, and eight together carry about the same."
	}
	return x
}

// idleSender is the share of the run in which data of the flow were on their way at most, for a
// sender that idles: the test's program always has more to write.
const idleSender = 0.7

// idlesOnShortPath reports whether a buffer of less than one bundle makes a sender idle on a path
// of less than a millisecond. There the empty round trip is a few microseconds, in which no rate
// fills a buffer, and everything is acknowledged before the program wakes up to write more. So the
// kernel counts neither a full buffer nor a busy sender (measured on veth with a tcp_wmem of 16
// KiB: 0.94 Gb/s, busy for a quarter of the time, sndbuf_limited 0; with 4 MiB up to 5 times more).
// Eight buffers that carry more show that neither the CPUs nor the path are the limit.
func idlesOnShortPath(f *evidence.Flow, wmem float64) bool {
	size := f.SndbufBytes / float64(f.Streams)
	busy := f.BusySeconds / float64(f.Streams)
	if !f.ShortPath() || f.Streams > fewStreams || size < 0.9*wmem || evidence.InOne(f.MSSBytes)*f.MSSBytes < size ||
		busy >= idleSender*f.Run.DurationSeconds || f.Share(f.RwndLimitedSeconds) >= evidence.LimitedShare/2 {
		return false
	}
	run := probed(f, evidence.ProbeStreams)
	return run != nil && run.RateBitsPerSec >= bufferGain*f.RateBitsPerSec
}

// sendBufferRemedy raises the maximum if the buffer has reached it; otherwise a program has set the
// size itself.
//
// It also proposes the receiver's buffer, because a send buffer and a receive window of one size
// hide each other: neither remedy alone shows a gain then.
func sendBufferRemedy(f *evidence.Flow, x *evidence.Finding, wmem float64, wmemKnown, atCap bool) {
	target, why := f.Target()
	need := evidence.Bytes(float64(evidence.RoundUp(target / evidence.UsableSendBuffer)))
	switch {
	case !wmemKnown:
		x.Remedy.Text = fmt.Sprintf(
			"Raise the third field of net.ipv4.tcp_wmem at the %s host to about %s (%s). "+
				"The settings of that host are unknown, so there is no candidate to try.",
			f.Sender.Name, need, why)
		return
	case !atCap:
		x.Remedy.Text = fmt.Sprintf(
			"The send buffers of the %s host may grow to %s, far above the one in use: "+
				"look for a program that sets SO_SNDBUF itself.",
			f.Sender.Name, evidence.Bytes(wmem))
		return
	}
	x.Remedy.Text = fmt.Sprintf(
		"Raise the third field of net.ipv4.tcp_wmem at the %s host to %s or more; the target in flight is %s (%s).",
		f.Sender.Name, need, evidence.Bytes(target), why)
	present, _ := f.Sender.Setting(evidence.TCPWmem)
	x.Remedy.Add(evidence.Candidate{Knob: evidence.TCPWmem, Side: f.Sender.Name,
		Levels: evidence.BufferLevels(present, target, evidence.UsableSendBuffer),
		Why:    "the buffer must hold all unacknowledged data"})
	if rmem, ok := f.Receiver.Setting(evidence.TCPRmem); ok {
		x.Remedy.Add(evidence.Candidate{Knob: evidence.TCPRmem, Side: f.Receiver.Name,
			Levels: evidence.Last(evidence.BufferLevels(rmem, target, evidence.UsableWindow(f.Receiver))),
			Why:    "the receive window becomes the limit once the send buffer is open"})
	}
	if now, ok := f.Sender.Setting(evidence.CoreWmemMax); ok {
		var levels []knob.Value
		for _, size := range evidence.BufferSizes(now, target, evidence.UsableSendBuffer) {
			levels = append(levels, knob.Value(strconv.FormatInt(size, 10)))
		}
		x.Remedy.Add(evidence.Candidate{Knob: evidence.CoreWmemMax, Side: f.Sender.Name, Levels: evidence.Last(levels),
			Why: "limits only programs that set SO_SNDBUF themselves; global, so refused inside a container"})
	}
}
