package traffic

import (
	"github.com/linerate/linerate/internal/traffic/engine"
	"github.com/linerate/linerate/internal/wire"
)

// connOptions are the socket options of one end of a TCP data connection; sends tells whether this
// end sends data that a congestion control has to pace.
func connOptions(s Spec, sends bool) engine.ConnOptions {
	o := engine.ConnOptions{NoDelay: s.Test != Stream, WindowBytes: s.WindowBytes, MSSBytes: s.MSSBytes, TOS: s.TOS}
	if s.NoDelay != nil {
		o.NoDelay = *s.NoDelay
	}
	if sends {
		o.Congestion = s.Congestion
		o.PacingBytesPerSec = s.RateBitsPerSec / 8 / float64(s.Streams)
	}
	return o
}

// dataOptions are those of connection index that must be known before it connects.
func dataOptions(s Spec, index int) wire.DataOptions {
	o := wire.DataOptions{Control: engine.DialControl(connOptions(s, false))}
	if s.SourcePort != 0 {
		o.LocalPort = s.SourcePort + index
	}
	return o
}

// quotaOf is what the senders of one side share of an amount; nil: there is none.
func quotaOf(s Spec) *engine.Quota {
	if s.Bytes == 0 {
		return nil
	}
	return engine.NewQuota(s.Bytes)
}
