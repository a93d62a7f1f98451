package loop

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/traffic"
)

// underWay is a diagnosis whose loaded run moved 800 Mb/s down, with five seconds left.
func underWay(far Far) *diagnosis {
	o := DiagnoseOptions{}
	o.defaults()
	loaded := streamResult(func(r *traffic.Result) { r.Direction = traffic.Down })
	return &diagnosis{far: far, o: o, until: time.Now().Add(5 * time.Second),
		v: &Verdict{Case: evidence.Case{Runs: []traffic.Result{*loaded}}}}
}

func TestProbesAreTestsThatThereAre(t *testing.T) {
	d := underWay(nil)
	d.v.Far = &host.Snapshot{} // a linerate peer, which measures parts of seconds
	for _, c := range []struct {
		probe evidence.Probe
		want  traffic.Spec
	}{
		{evidence.ProbeMTU, traffic.Spec{Test: traffic.MTU, Direction: traffic.Up}},
		{evidence.ProbeStreams, traffic.Spec{Test: traffic.Stream, Direction: traffic.Down, Streams: 8}},
		{evidence.ProbeUDP, traffic.Spec{Test: traffic.UDP, Direction: traffic.Down, RateBitsPerSec: 4e8}},
		{evidence.ProbePaced, traffic.Spec{Test: traffic.Stream, Direction: traffic.Down, RateBitsPerSec: 6.4e8}},
		{evidence.ProbeReverse, traffic.Spec{Test: traffic.Stream, Direction: traffic.Up}},
		{evidence.ProbeConnect, traffic.Spec{Test: traffic.CRR, Direction: traffic.Up}},
		{evidence.ProbeObjects, traffic.Spec{Test: traffic.RR, Direction: traffic.Up, Gap: 250 * time.Millisecond}},
		{evidence.ProbeCongestion("bbr"),
			traffic.Spec{Test: traffic.Stream, Direction: traffic.Down, Congestion: "bbr"}},
	} {
		spec, why, err := d.specOf(c.probe)
		if err != nil || why == "" {
			t.Errorf("%s: %q, %v", c.probe, why, err)
			continue
		}
		if spec, err = spec.Normalize(); err != nil {
			t.Errorf("%s: %v", c.probe, err)
		}
		got := traffic.Spec{Test: spec.Test, Direction: spec.Direction, RateBitsPerSec: spec.RateBitsPerSec,
			Congestion: spec.Congestion, Gap: spec.Gap}
		if c.want.Streams != 0 {
			got.Streams = spec.Streams
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.probe, diff)
		}
		if took := d.timeOf(spec); took > 2500*time.Millisecond {
			t.Errorf("%s takes %v", c.probe, took)
		}
	}
	for _, none := range []evidence.Probe{"nosuch", "congestion:", ""} {
		if _, _, err := d.specOf(none); err == nil {
			t.Errorf("probe %q is run", none)
		}
	}
}

func TestProbesWithoutARate(t *testing.T) { synctest.Test(t, probesWithoutARate) }

func probesWithoutARate(t *testing.T) {
	d := underWay(nil)
	d.v.Runs[0].ThroughputBitsPerSec = 0
	for _, p := range []evidence.Probe{evidence.ProbeUDP, evidence.ProbePaced} {
		if err := d.probe(t.Context(), p); err != nil || !strings.Contains(d.v.Refused[p], "no reference rate") {
			t.Errorf("%s: %v, %q", p, err, d.v.Refused[p])
		}
	}
}

func TestProbeIsKeptOrRefused(t *testing.T) { synctest.Test(t, probeIsKeptOrRefused) }

func probeIsKeptOrRefused(t *testing.T) {
	far := &fakeFar{}
	d := underWay(far)
	if err := d.probe(t.Context(), evidence.ProbeReverse); err != nil {
		t.Fatal(err)
	}
	if r, ok := d.v.Probes[evidence.ProbeReverse]; !ok || r.Direction != traffic.Up || len(far.runs) != 1 {
		t.Errorf("probes %v, runs %v", d.v.Probes, far.runs)
	}
	d.until = time.Now().Add(time.Second)
	if err := d.probe(t.Context(), evidence.ProbeStreams); err != nil ||
		!strings.Contains(d.v.Refused[evidence.ProbeStreams], "no time") || len(far.runs) != 1 {
		t.Errorf("%v, refused %v, runs %v", err, d.v.Refused, far.runs)
	}
	d.until = time.Now().Add(time.Minute)
	d.far = brokenFar{errors.New("connection refused")}
	if err := d.probe(t.Context(), evidence.ProbeConnect); err != nil ||
		d.v.Refused[evidence.ProbeConnect] != "connection refused" {
		t.Errorf("%v, refused %v", err, d.v.Refused)
	}
	d.far = brokenFar{context.DeadlineExceeded}
	if err := d.probe(t.Context(), evidence.ProbeMTU); err != nil ||
		!strings.Contains(d.v.Refused[evidence.ProbeMTU], "had not ended") {
		t.Errorf("%v, refused %v", err, d.v.Refused)
	}
	// After an interruption there is no verdict.
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	d.far = brokenFar{context.Canceled}
	if err := d.probe(gone, evidence.ProbeMTU); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// brokenFar fails every run.
type brokenFar struct{ err error }

func (f brokenFar) Snapshot(context.Context) (*host.Snapshot, error) { return nil, nil }
func (f brokenFar) Run(context.Context, traffic.Spec, func(traffic.Interval)) (*traffic.Result, error) {
	return nil, f.err
}

func TestWatch(t *testing.T) {
	if runtime.GOOS != "linux" {
		_, err := Watch(t.Context(), WatchOptions{})
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("on %s: %v", runtime.GOOS, err)
		}
		return
	}
	v, err := Watch(t.Context(), WatchOptions{Duration: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if v.Near == nil || len(v.Watched) != 1 || v.Watched[0].Seconds <= 0 || len(v.Findings) == 0 || v.Stream() != nil {
		t.Errorf("verdict %+v", v)
	}
}
