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

// chooseSend settles how to send: the asked way if it works, or the cheapest that does.
func chooseSend(m SendMethod) (SendMethod, error) {
	switch m {
	case SendAuto:
		s := ProbeStream()
		switch {
		case s.Sendfile == nil:
			return SendSendfile, nil
		case s.Splice == nil:
			return SendSplice, nil
		}
		return SendCopy, nil
	case SendCopy:
		return m, nil
	case SendSendfile:
		return m, wrap("send by sendfile", ProbeStream().Sendfile)
	case SendSplice:
		return m, wrap("send by splice", ProbeStream().Splice)
	}
	return m, fmt.Errorf("send by %q: %w", string(m), sys.ErrNotSupported)
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
		return m, wrap("receive by truncation", ProbeStream().Truncate)
	}
	return m, fmt.Errorf("receive by %q: %w", string(m), sys.ErrNotSupported)
}

func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", op, err)
}

// errUnverified is a probe that did not come to its end.
var errUnverified = errors.New("payload did not arrive in time to be compared")
