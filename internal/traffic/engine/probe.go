package engine

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/linerate/linerate/internal/sys"
)

// StreamSupport tells which ways to move a stream work on this host. Nil is yes, [sys.ErrNotSupported] is no, [ErrCorrupt] is that the payload comes out other than it
// went in, and every other error means that nobody could tell.
type StreamSupport struct {
	Sendfile error
	Splice   error
	Truncate error
}

// ProbeStream moves some megabytes over loopback by each method and compares every byte; once per process, within some ten milliseconds.
func ProbeStream() StreamSupport { return probed() }

var probed = sync.OnceValue(probeStream)

const (
	probeBytes = 4 << 20
	// probePatience bounds a probe on a host that is so busy, or so broken, that nothing comes.
	probePatience = 5 * time.Second
)

func probeStream() StreamSupport {
	return StreamSupport{
		Sendfile: probeMethods(SendSendfile, ReceiveCopy),
		Splice:   probeMethods(SendSplice, ReceiveCopy),
		Truncate: probeMethods(SendCopy, ReceiveTruncate),
	}
}

// openSource settles how to send, the asked way or the cheapest that works, and makes the source and tells the size of its calls.
func openSource(m SendMethod, conn *Conn) (method SendMethod, from source, call int, err error) {
	candidates := []SendMethod{m}
	if m == SendAuto {
		candidates = []SendMethod{SendSplice, SendSendfile, SendCopy}
	}
	for _, method = range candidates {
		// What works in general may still be refused to one more worker: users are allowed so many pages in pipes, and so many descriptors.
		if err = ProbeStream().sends(method); err == nil {
			if from, call, err = newSource(method, conn); err == nil {
				return method, from, call, nil
			}
		}
	}
	return m, nil, 0, fmt.Errorf("send by %s: %w", method, err)
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
