package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/base/progress"
	"github.com/linerate/linerate/internal/traffic"
)

// TestInterim checks what a log gets of a test while it runs.
func TestInterim(t *testing.T) {
	var log bytes.Buffer
	p, a := progress.New(&log, progress.Lines), &app{}
	a.interim(p, traffic.Spec{Test: traffic.Load}, traffic.Interval{EndSeconds: 1, RTTSeconds: 0.02})
	a.interim(p, traffic.Spec{Test: traffic.Load},
		traffic.Interval{EndSeconds: 2, ProbeRTTSeconds: 0.12, ThroughputBitsPerSec: 9e7})
	a.interim(p, traffic.Spec{Test: traffic.MTU}, traffic.Interval{EndSeconds: 1})
	want := "load    1.0 s  round trip 20.0 ms\nload    2.0 s  round trip 120 ms at 90.0 Mb/s\nmtu    1.0 s\n"
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
