package engine

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// StreamSupport tells which ways to move a stream work on this host. Nil is yes,
// [sys.ErrNotSupported] is no, [ErrCorrupt] is that the payload comes out other than it went in,
// and every other error means that nobody could tell.
type StreamSupport struct {
	Sendfile error
	Splice   error
	Truncate error
	Fastest  SendMethod // what [SendAuto] takes
}

// ProbeStream moves some megabytes over loopback by each method and compares every byte, then lets
// copying and the better of the ways by reference race each other; once per process, within a tenth
// of a second.
func ProbeStream() StreamSupport { return probed() }

var probed = sync.OnceValue(probeStream)

const (
	probeBytes = 4 << 20
	// probePatience bounds a probe on a host that is so busy, or so broken, that nothing comes.
	probePatience = 5 * time.Second
)

func probeStream() StreamSupport {
	s := StreamSupport{
		Sendfile: probeMethods(SendSendfile, ReceiveCopy),
		Splice:   probeMethods(SendSplice, ReceiveCopy),
		Truncate: probeMethods(SendCopy, ReceiveTruncate),
		Fastest:  SendCopy,
	}
	rival := SendSplice // gathers pages of 64 KiB a segment without looking each one up in a file
	if s.Splice != nil {
		rival = SendSendfile
	}
	if s.sends(rival) != nil {
		return s
	}
	copying, referring := race(SendCopy, rival)
	// Copying is what most programs do, so it takes more than noise to leave it.
	if referring > 0 && copying > clearlyCheaper*referring {
		s.Fastest = rival
	}
	return s
}

// clearlyCheaper is how many times the CPU time of sending by reference copying has to take to be
// left. Which way is the cheaper depends on the processor and its hypervisor: on one virtual
// machine splice made 1.2 times what copying made, on another, where looking up pages is dear,
// half. Single races on a busy machine differ by as much as 1.2.
const clearlyCheaper = 1.3

// chooseSend settles how to send, the asked way or the fastest.
func chooseSend(m SendMethod) (SendMethod, error) {
	if m == SendAuto {
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

// chooseReceive settles how to receive.
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

// errUnverified is a probe that did not come to its end.
var errUnverified = errors.New("payload did not arrive in time to be compared")
