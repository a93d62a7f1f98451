package iperf3

import (
	"testing"

	"github.com/linerate/linerate/internal/traffic/engine"
)

// TestConcede has a last block that left after the counts were read. The claim of this end follows
// what the other one received, and no further than what was handed over.
func TestConcede(t *testing.T) {
	for name, c := range map[string]struct{ handed, claimed, received, want int64 }{
		"all counted":               {1000, 1000, 1000, 1000},
		"a block on its way":        {1000, 1000, 900, 1000},
		"a block behind the counts": {1100, 1000, 1100, 1100},
		"a receiver that lies":      {1100, 1000, 5000, 1100},
	} {
		f := &flow{sends: true, worker: &engine.Worker{}}
		f.mark.bytes = 50 // before the measured part
		f.worker.Bytes.Store(50 + c.handed)
		own := results{Streams: []streamResult{{Bytes: c.claimed}}}
		(&load{flows: []*flow{f}}).concede(own, results{Streams: []streamResult{{Bytes: c.received}}})
		if got := own.Streams[0].Bytes; got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
