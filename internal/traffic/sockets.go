package traffic

import (
	"net"
	"net/netip"

	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

// makeWorker makes the worker of one end for the data connection with an index. It takes the
// connection over, also when it fails.
type makeWorker func(conn *net.TCPConn, index int) (*engine.Worker, error)

// orClose returns a function that passes a new worker on, or closes its connection if the worker
// could not be made.
func orClose(c *engine.Conn) func(*engine.Worker, error) (*engine.Worker, error) {
	return func(w *engine.Worker, err error) (*engine.Worker, error) {
		if err != nil {
			c.Close()
			return nil, err
		}
		return w, nil
	}
}

// connOptions returns the socket options of one end of a TCP data connection. noDelay is the test's
// own choice, which the Spec may override; sends reports whether this end sends data that a
// congestion control has to pace.
func (s Spec) connOptions(noDelay, sends bool) engine.ConnOptions {
	o := engine.ConnOptions{NoDelay: noDelay, WindowBytes: s.WindowBytes, MSSBytes: s.MSSBytes, TOS: s.TOS}
	if s.NoDelay != nil {
		o.NoDelay = *s.NoDelay
	}
	if sends {
		o.Congestion = s.Congestion
		o.PacingBytesPerSec = s.RateBitsPerSec / 8 / float64(s.Streams)
	}
	return o
}

// from returns the near address of the test; the zero value: the route chooses.
func (s Spec) from() netip.Addr {
	a, _ := netip.ParseAddr(s.SourceAddress) // check refuses what is none
	return a
}

// dataOptions returns the options that the data connection with an index needs before it connects;
// TCP_NODELAY is not one of them.
func (s Spec) dataOptions(index int) wire.DataOptions {
	o := wire.DataOptions{From: s.from(), Control: engine.DialControl(s.connOptions(false, false))}
	if s.SourcePort != 0 {
		o.LocalPort = s.SourcePort + index
	}
	return o
}

// closeWorkers closes the connections of workers that never ran; nil ones were never made.
func closeWorkers(workers []*engine.Worker) {
	for _, w := range workers {
		if w != nil {
			w.Close()
		}
	}
}
