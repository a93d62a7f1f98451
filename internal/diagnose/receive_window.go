package diagnose

import (
	"fmt"
	"strconv"

	"github.com/linerate/linerate/internal/knob"
)

const (
	// limitedShare is how much of its busy time a sender must have spent against one limit for the kernel's own account to decide.
	// Slow start and the pauses of pacing keep even a hard limit well below 1.
	limitedShare = 0.40
	// windowFill is the least part of the offered window that the rate must fill on the empty path. Below one half something else
	// holds the flow: a queue that the window bounds, or a reader that empties its buffer slowly.
	windowFill = 0.5
	// windowFillQueued is the same when a queue builds: then a window that holds the flow leaves no room for that queue, so the rate
	// must fill it nearly by itself.
	windowFillQueued = 0.8
	// arithmeticTolerance is how closely window over round trip must meet the rate when the chronograph is silent.
	arithmeticTolerance = 0.25
	// cleanLoss is the loss below which loss does not matter to a window argument.
	cleanLoss = 1e-4
)

// receiveWindowLimited: the receiver offers less than the path could hold, so rate = window / round trip.
//
// The kernel's account (tcpi_rwnd_limited) is the first witness. A pacing sender (bbr) spreads its packets and seldom touches the
// window, so the arithmetic is a second one: the rate is what the window allows, the buffer behind it stands at its maximum, the
// congestion window is larger and nothing is lost.
//
// AtCap asks whether autotuning has gone as far as it may: the window stands at 0.4 of the maximum or more (half of
// it is usable, and the last window is seldom the largest), or the buffer itself at 0.9 of it.
func receiveWindowLimited(f *flow) *Finding {
	if f.streams == 0 || f.window <= 0 || f.base() <= 0 || f.rate <= 0 {
		return nil
	}
	share := f.share(f.rwndLimited)
	rmem, rmemKnown := f.receiver.number(tcpRmem, 2)
	perStream := f.window / float64(f.streams)
	atCap := rmemKnown && (perStream >= 0.4*rmem || f.rcvbuf/float64(f.streams) >= 0.9*rmem)
	match := f.rate / windowRate(f.window, f.loaded())

	byKernel := share >= limitedShare && f.fillsWindow()
	byArithmetic := match >= 1-arithmeticTolerance && match <= 1+arithmeticTolerance && f.fillsWindow() && atCap &&
		f.cwnd >= 0.9*f.window && f.loss() < cleanLoss && f.share(f.sndbufLimited) < limitedShare/2
	if !byKernel && !byArithmetic {
		return nil
	}
	// Inside one machine a reader that is busier than its writer lets the window run full as well: then the processor is the limit.
	if _, busy, ok := f.receiver.busiest(); ok && busy >= 0.9 && f.shortPath() {
		return nil
	}

	x := &Finding{
		Code: ReceiveWindowLimited, Severity: Warning, Where: f.receiver.name,
		Title: fmt.Sprintf("The receive window of the %s host holds the flow at %s: %s per round trip of %s.",
			f.receiver.name, rate(f.rate), bytes(f.window), seconds(f.loaded())),
		Evidence: append(f.common(), f.windowEvidence()...),
		Rejected: []string{f.notSendBuffer(), f.notLoss(), f.notQueue()},
	}
	if f.cwnd > f.window {
		x.Rejected = append(x.Rejected, f.notCongestionWindow())
	}
	zero := f.receiver.run.Counters["TcpExt.TCPToZeroWindowAdv"]
	x.Rejected = append(x.Rejected, fmt.Sprintf("Not the reading program: the receiver closed its window %d times (TcpExt.TCPToZeroWindowAdv).", zero))
	x.Rejected = append(x.Rejected, f.notProcessor()...)
	if rmemKnown {
		x.Evidence = append(x.Evidence, Evidence{Name: "largest receive buffer allowed", Value: rmem, Unit: "bytes",
			Source: "sysctl net.ipv4.tcp_rmem, third field (" + f.receiver.name + ")"})
	}
	if f.rcvbuf > 0 {
		x.Evidence = append(x.Evidence, Evidence{Name: "receive buffer in use", Value: f.rcvbuf, Unit: "bytes", Source: "SO_RCVBUF (" + f.receiver.name + ")"})
	}
	x.Confidence = combine(when(byKernel, 0.75), when(match >= 0.75 && match <= 1.25, 0.6), when(atCap, 0.6), when(zero == 0, 0.2)) *
		(1 - when(rmemKnown && !atCap, 0.4))
	f.receiveWindowRemedy(x, rmem, rmemKnown, atCap)
	return x
}

// fillsWindow tells that the rate fills the offered window on the empty path, which is what a window that holds a flow looks like.
func (f *flow) fillsWindow() bool {
	if f.queued() {
		return f.fill() >= windowFillQueued
	}
	return f.fill() >= windowFill
}

// receiveWindowRemedy tells the three reasons of a small window apart: autotuning is off, the maximum is too small, or a program has
// set the size itself, which no sysctl can mend.
func (f *flow) receiveWindowRemedy(x *Finding, rmem float64, rmemKnown, atCap bool) {
	target, why := f.target()
	usable := usableWindow(f.receiver)
	need := roundUp(target / usable)
	if !rmemKnown {
		x.Remedy.Text = fmt.Sprintf("Raise the third field of net.ipv4.tcp_rmem at the %s host to about %s (%s). Its settings are not known here, so no candidate is offered.",
			f.receiver.name, bytes(float64(need)), why)
		return
	}
	if moderate, ok := f.receiver.setting(tcpModerate); ok && moderate == "0" {
		x.Remedy.Text = fmt.Sprintf("Switch receive buffer autotuning back on at the %s host; it is off, so the window stays at the default buffer.", f.receiver.name)
		x.Remedy.Settings = append(x.Remedy.Settings, Candidate{Knob: tcpModerate, Side: f.receiver.name, Levels: []knob.Value{"1"},
			Why: "autotuning is off, so the buffer cannot grow to its maximum"})
	} else if !atCap {
		x.Remedy.Text = fmt.Sprintf("The buffers of the %s host may grow to %s, far above the window in use: look for a program that sets SO_RCVBUF itself.",
			f.receiver.name, bytes(rmem))
		return
	} else {
		x.Remedy.Text = fmt.Sprintf("Raise the third field of net.ipv4.tcp_rmem at the %s host to %s or more: %s of it is usable as window, and the target is %s (%s).",
			f.receiver.name, bytes(float64(need)), percent(usable), bytes(target), why)
	}
	present, _ := f.receiver.setting(tcpRmem)
	x.Remedy.add(Candidate{Knob: tcpRmem, Side: f.receiver.name, Levels: bufferLevels(present, target, usable),
		Why: "the receiver's buffer bounds the window it can offer"})
	f.lesserSuspects(x, target)
}

// lesserSuspects adds what advice on this symptom names as well. An experiment takes back those that do nothing, and its record
// shows that they do nothing here.
//
// Each gets its largest level only: if that does nothing, smaller ones do not either.
func (f *flow) lesserSuspects(x *Finding, target float64) {
	if present, ok := f.sender.setting(tcpWmem); ok {
		levels := bufferLevels(present, target, usableSendBuffer)
		x.Remedy.add(Candidate{Knob: tcpWmem, Side: f.sender.name, Levels: last(levels),
			Why: "the sender must hold what is in flight; it becomes the limit once the window is open"})
	}
	if present, ok := f.receiver.setting(coreRmemMax); ok {
		var levels []knob.Value
		for _, size := range bufferSizes(present, target, usableWindow(f.receiver)) {
			levels = append(levels, knob.Value(strconv.FormatInt(size, 10)))
		}
		x.Remedy.add(Candidate{Knob: coreRmemMax, Side: f.receiver.name, Levels: last(levels),
			Why: "limits only programs that set SO_RCVBUF themselves; global, so refused inside a container"})
	}
	if c := f.sender.card; c != nil && c.TxQueueLen > 0 && c.TxQueueLen < 10000 {
		x.Remedy.add(Candidate{Knob: knob.ID("link:" + c.Name + "/txqueuelen"), Side: f.sender.name, Levels: []knob.Value{"10000"},
			Why: "old guides raise it; it matters only where the local queue drops"})
	}
}

// last keeps the largest level: for a lesser suspect one try is enough.
func last(levels []knob.Value) []knob.Value {
	if len(levels) > 1 {
		return levels[len(levels)-1:]
	}
	return levels
}

// add appends a candidate that has something to try.
func (r *Remedy) add(c Candidate) {
	if len(c.Levels) > 0 {
		r.Settings = append(r.Settings, c)
	}
}
