package engine

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// StreamSupport reports which ways to move a stream work on this host. Nil means that a way works,
// [sys.ErrNotSupported] that it does not, [ErrCorrupt] that the payload arrives changed; any other
// error means that the probe could not find out.
type StreamSupport struct {
	Sendfile error
	Splice   error
	Truncate error
	Fastest  SendMethod // what [SendAuto] takes
}

// ProbeStream moves some megabytes over loopback by each method and compares every byte. Then
// copying races the better of the ways by reference. It runs once per process, within a tenth of a
// second.
func ProbeStream() StreamSupport { return probed() }

var probed = sync.OnceValue(probeStream)

const (
	probeBytes = 4 << 20
	// probePatience bounds a probe on a host that is so busy, or so broken, that no data arrive.
	probePatience = 5 * time.Second
)

func probeStream() StreamSupport {
	s := StreamSupport{
		Sendfile: probeMethods(SendSendfile, ReceiveCopy),
		Splice:   probeMethods(SendSplice, ReceiveCopy),
		Truncate: probeMethods(SendCopy, ReceiveTruncate),
		Fastest:  SendCopy,
	}
	rival := SendSplice // makes segments of 64 KiB of pages without looking each one up in a file
	if s.Splice != nil {
		rival = SendSendfile
	}
	if s.sends(rival) != nil {
		return s
	}
	copying, referring := race(SendCopy, rival)
	// Most programs copy, so sending by reference must win by more than noise.
	if referring > 0 && copying > clearlyCheaper*referring {
		s.Fastest = rival
	}
	return s
}

// clearlyCheaper is the factor by which the CPU time of copying must exceed that of sending by
// reference. Which way costs less depends on the processor and its hypervisor: on one virtual
// machine splice reached 1.2 times the rate of copying; on another, where page lookups are costly,
// half of it. Single races on a busy machine differ by as much as 1.2.
const clearlyCheaper = 1.3

// settled reports whether further laps can hardly change which way wins, given the costs of a byte
// after some laps: they are on one side of clearlyCheaper by more than noise, which a single lap
// has most of.
func settled(copying, referring float64, laps int) bool {
	if copying <= 0 || referring <= 0 {
		return false
	}
	noise := 1.2
	if laps == 1 {
		noise = 2
	}
	ratio := copying / referring
	return ratio > clearlyCheaper*noise || ratio < clearlyCheaper/noise
}

// chooseSend decides how to send: the requested way or the fastest. A stream with a rate sleeps
// most of the time, so it copies: the probe would cost a server more than the whole test.
func chooseSend(m SendMethod, paced bool) (SendMethod, error) {
	switch {
	case m == SendCopy || m == SendAuto && paced:
		return SendCopy, nil
	case m == SendAuto:
		return ProbeStream().Fastest, nil
	}
	if err := ProbeStream().sends(m); err != nil {
		return m, fmt.Errorf("send by %s: %w", m, err)
	}
	return m, nil
}

func (s StreamSupport) sends(m SendMethod) error {
	switch m {
	case SendCopy:
		return nil
	case SendSendfile:
		return s.Sendfile
	case SendSplice:
		return s.Splice
	}
	return sys.ErrNotSupported
}

// chooseReceive decides how to receive.
func chooseReceive(m ReceiveMethod) (ReceiveMethod, error) {
	switch m {
	case ReceiveAuto:
		if ProbeStream().Truncate == nil {
			return ReceiveTruncate, nil
		}
		return ReceiveCopy, nil
	case ReceiveCopy:
		return m, nil
	case ReceiveTruncate:
		if err := ProbeStream().Truncate; err != nil {
			return m, fmt.Errorf("receive by %s: %w", m, err)
		}
		return m, nil
	}
	return m, fmt.Errorf("receive by %s: %w", m, sys.ErrNotSupported)
}

// errUnverified reports a probe that did not finish.
var errUnverified = errors.New("payload did not arrive in time to be compared")
