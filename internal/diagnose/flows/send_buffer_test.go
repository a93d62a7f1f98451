package flows

import (
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

// TestSendBufferOnShortPath checks a send buffer of less than one bundle on a path of microseconds.
// The figures are those of a pair of network namespaces (veth, Linux 6.18) with a tcp_wmem of 4096
// 16384 16384: 940 Mb/s, busy for 0.68 of 3 s, sndbuf_limited 0, largest window 28.5 MiB.
func TestSendBufferOnShortPath(t *testing.T) {
	const small = 16384
	one := seen{rate: 940e6, rtt: 62e-6, base: 4e-6, cwnd: 343 << 10}
	// of returns the case with a buffer, the seconds in which data were on their way, and what eight
	// streams carry, of the rate of one; 0: not tried.
	of := func(buffer int64, wmem string, busy, gain float64) *evidence.Case {
		tried := map[evidence.Probe]traffic.Result(nil)
		if gain > 0 {
			many := one
			many.rate, many.streams = gain*one.rate, 8
			tried = probes(evidence.ProbeStreams, many.run())
		}
		c := one.of(tried)
		c.Near.Settings = []host.Setting{{Knob: evidence.TCPWmem, Value: "4096 16384 " + wmem}}
		tcp := &c.Runs[1].Ends.Local.TCP[0]
		tcp.SndBufBytes, tcp.BusySeconds = buffer, busy
		return c
	}
	paced := of(small, "16384", 0.68, 3)
	paced.Runs[1].Ends.Local.TCP[0].RwndLimitedSeconds = 0.5
	hold(t, evidence.SendBufferLimited, []expect{
		{"as measured", of(small, "16384", 0.68, 3), evidence.Warning},
		{"not tried", of(small, "16384", 0.68, 0), none},
		{"eight are no faster: the CPUs are the limit", of(small, "16384", 0.68, 1.1), none},
		{"the sender is busy", of(small, "16384", 2.9, 3), none},
		{"the buffer may grow", of(small, "4194304", 0.68, 3), none},
		{"a buffer of many bundles", of(4<<20, "4194304", 0.68, 3), none},
		{"the receiver holds it", paced, none},
	})
	untried := of(small, "16384", 0.68, 0)
	_ = sendBufferLimited(evidence.FlowsOf(untried)[0])
	if w := untried.Wanted(); len(w) != 1 || w[0] != evidence.ProbeStreams {
		t.Errorf("wanted %v", w)
	}
}
