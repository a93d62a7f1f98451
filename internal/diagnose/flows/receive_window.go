package flows

import (
	"fmt"
	"strconv"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/diagnose/evidence"
)

const (
	// arithmeticTolerance is how closely window over round trip must match the rate if the
	// chronograph shows nothing.
	arithmeticTolerance = 0.25
	// cleanLoss is the loss below which loss does not affect an argument about windows.
	cleanLoss = 1e-4
)

// receiveWindowLimited finds a receiver that advertises less than the path could hold, so that rate
// = window / round trip.
//
// The kernel's chronograph (tcpi_rwnd_limited) is the first evidence. A pacing sender (bbr) spreads
// its packets and seldom touches the window, so arithmetic is the second: the rate is what the
// window allows, the buffer behind it is at its maximum, the congestion window is larger and
// nothing is lost.
//
// atCap says that autotuning has reached its limit: the window is at least 0.4 of the maximum (half
// of it is usable, and the last window is seldom the largest), or the buffer itself at least 0.9 of
// it.
func receiveWindowLimited(f *evidence.Flow) *evidence.Finding {
	if f.Streams == 0 || f.WindowBytes <= 0 || f.Base() <= 0 || f.RateBitsPerSec <= 0 {
		return nil
	}
	share := f.Share(f.RwndLimitedSeconds)
	rmem, rmemKnown := f.Receiver.Number(evidence.TCPRmem, 2)
	// Without autotuning a buffer keeps its initial size.
	highest, _ := f.Receiver.Number(evidence.TCPRmem, autotuned(f.Receiver))
	perStream := f.WindowBytes / float64(f.Streams)
	atCap := rmemKnown && (perStream >= 0.4*highest || f.RcvbufBytes/float64(f.Streams) >= 0.9*highest)
	match := f.RateBitsPerSec / evidence.WindowRate(f.WindowBytes, f.Loaded())

	byKernel := share >= evidence.LimitedShare && f.FillsWindow()
	byArithmetic := match >= 1-arithmeticTolerance && match <= 1+arithmeticTolerance && f.FillsWindow() && atCap &&
		f.CwndBytes >= 0.9*f.WindowBytes && f.Loss() < cleanLoss &&
		f.Share(f.SndbufLimitedSeconds) < evidence.LimitedShare/2
	byProbe := !byKernel && !byArithmetic && atCap && heldOnShortPath(f)
	if !byKernel && !byArithmetic && !byProbe {
		return nil
	}
	// Inside one machine a reader that is busier than its writer lets the window fill up as well:
	// then the CPU is the limit. heldOnShortPath has excluded such a reader.
	if _, busy, ok := f.Receiver.Busiest(); ok && busy >= 0.9 && f.ShortPath() && !byProbe {
		return nil
	}

	x := &evidence.Finding{
		Code: evidence.ReceiveWindowLimited, Severity: evidence.Warning, Where: f.Receiver.Name,
		Title: fmt.Sprintf("The receive window of the %s host limits the flow to %s: %s per round trip of %s.",
			f.Receiver.Name, evidence.Rate(f.RateBitsPerSec), evidence.Bytes(f.WindowBytes),
			evidence.Seconds(f.Loaded())),
		Evidence: append(f.Common(), f.WindowEvidence()...),
		Rejected: []string{f.NotSendBuffer(), f.NotLoss(), f.NotQueue()},
	}
	if f.CwndBytes > f.WindowBytes {
		x.Rejected = append(x.Rejected, f.NotCongestionWindow())
	}
	zero := f.Receiver.Run.Counters["TcpExt.TCPToZeroWindowAdv"]
	x.Rejected = append(x.Rejected,
		fmt.Sprintf("Not the reading program: the receiver closed its window %d times (TcpExt.TCPToZeroWindowAdv).",
			zero))
	x.Rejected = append(x.Rejected, f.NotProcessor()...)
	if rmemKnown {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "largest receive buffer allowed", Value: rmem,
			Unit:   "bytes",
			Source: "sysctl net.ipv4.tcp_rmem, third field (" + f.Receiver.Name + ")"})
	}
	if f.RcvbufBytes > 0 {
		x.Evidence = append(x.Evidence, evidence.Evidence{Name: "receive buffer in use", Value: f.RcvbufBytes,
			Unit:   "bytes",
			Source: "SO_RCVBUF (" + f.Receiver.Name + ")"})
	}
	x.Confidence = evidence.Combine(evidence.When(byKernel || byProbe, 0.75), evidence.When(match >= 0.75 &&
		match <= 1.25, 0.6), evidence.When(atCap, 0.6), evidence.When(zero == 0, 0.2)) *
		(1 - evidence.When(rmemKnown && !atCap, 0.4))
	receiveWindowRemedy(f, x, rmem, rmemKnown, atCap)
	x.Remedy.Proof = windowProof
	return x
}

// autotuned returns the field of tcp_rmem up to which buffers grow: the maximum, or the default if
// autotuning is off.
func autotuned(e evidence.End) int {
	if moderate, ok := e.Setting(evidence.TCPModerateRcvbuf); ok && moderate == "0" {
		return 1
	}
	return 2
}

// windowProof is the proof that a buffer of either end is the limit; the short path is the control.
const windowProof = "Open new connections with the larger and the present value alternately: " +
	"up to the link rate, the rate follows the buffer divided by the round trip; " +
	"on a path of less than a millisecond it makes no difference."

// receiveWindowRemedy distinguishes the three reasons for a small window: autotuning is off, the
// maximum is too small, or a program set the size itself, which no sysctl changes.
func receiveWindowRemedy(f *evidence.Flow, x *evidence.Finding, rmem float64, rmemKnown, atCap bool) {
	target, why := f.Target()
	usable := evidence.UsableWindow(f.Receiver)
	need := evidence.RoundUp(target / usable)
	if !rmemKnown {
		x.Remedy.Text = fmt.Sprintf(
			"Raise the third field of net.ipv4.tcp_rmem at the %s host to about %s (%s). "+
				"The settings of that host are unknown, so there is no candidate to try.",
			f.Receiver.Name, evidence.Bytes(float64(need)), why)
		return
	}
	if autotuned(f.Receiver) == 1 {
		x.Remedy.Text = fmt.Sprintf(
			"Switch receive buffer autotuning back on at the %s host; it is off, "+
				"so the window stays at the default buffer.", f.Receiver.Name)
		x.Remedy.Settings = append(x.Remedy.Settings,
			evidence.Candidate{Knob: evidence.TCPModerateRcvbuf, Side: f.Receiver.Name, Levels: []knob.Value{"1"},
				Why: "autotuning is off, so the buffer cannot grow to its maximum"})
	} else if !atCap {
		x.Remedy.Text = fmt.Sprintf(
			"The buffers of the %s host may grow to %s, far above the window in use: "+
				"look for a program that sets SO_RCVBUF itself.",
			f.Receiver.Name, evidence.Bytes(rmem))
		return
	} else {
		x.Remedy.Text = fmt.Sprintf(
			"Raise the third field of net.ipv4.tcp_rmem at the %s host to %s or more: "+
				"%s of it is usable as window, and the target is %s (%s).",
			f.Receiver.Name, evidence.Bytes(float64(need)), evidence.Percent(usable), evidence.Bytes(target), why)
	}
	present, _ := f.Receiver.Setting(evidence.TCPRmem)
	x.Remedy.Add(evidence.Candidate{Knob: evidence.TCPRmem, Side: f.Receiver.Name,
		Levels: evidence.BufferLevels(present, target, usable),
		Why:    "the receiver's buffer bounds the window it can advertise"})
	lesserSuspects(f, x, target)
}

// lesserSuspects adds the settings that common advice on this symptom names as well. An experiment
// reverts those that do nothing here, and its record shows that.
//
// Each gets its largest level only: if that does nothing, smaller ones do not either.
func lesserSuspects(f *evidence.Flow, x *evidence.Finding, target float64) {
	if present, ok := f.Sender.Setting(evidence.TCPWmem); ok {
		levels := evidence.BufferLevels(present, target, evidence.UsableSendBuffer)
		x.Remedy.Add(evidence.Candidate{Knob: evidence.TCPWmem, Side: f.Sender.Name, Levels: evidence.Last(levels),
			Why: "the sender must hold what is in flight; it becomes the limit once the window is open"})
	}
	if present, ok := f.Receiver.Setting(evidence.CoreRmemMax); ok {
		var levels []knob.Value
		for _, size := range evidence.BufferSizes(present, target, evidence.UsableWindow(f.Receiver)) {
			levels = append(levels, knob.Value(strconv.FormatInt(size, 10)))
		}
		x.Remedy.Add(evidence.Candidate{Knob: evidence.CoreRmemMax, Side: f.Receiver.Name,
			Levels: evidence.Last(levels),
			Why:    "limits only programs that set SO_RCVBUF themselves; global, so refused inside a container"})
	}
	if c := f.Sender.Card; c != nil && c.TxQueueLen > 0 && c.TxQueueLen < 10000 {
		x.Remedy.Add(evidence.Candidate{Knob: knob.ID("link:" + c.Name + "/txqueuelen"), Side: f.Sender.Name,
			Levels: []knob.Value{"10000"},
			Why:    "old guides raise it; it matters only where the local queue drops"})
	}
}
