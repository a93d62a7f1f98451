package loop

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/profile"
	"github.com/linerate/linerate/internal/traffic"
)

// timedFar takes as long as a test takes.
type timedFar struct{ fakeFar }

func (f *timedFar) Run(ctx context.Context, s traffic.Spec, p func(traffic.Interval)) (*traffic.Result, error) {
	time.Sleep(s.WarmUp + s.Duration)
	return f.fakeFar.Run(ctx, s, p)
}

// TestSampledSegments checks that both hosts are sampled inside each segment, that samples end with
// it, and that a host which refuses is asked once and noted.
func TestSampledSegments(t *testing.T) { synctest.Test(t, sampledSegments) }

func sampledSegments(t *testing.T) {
	const warmUp, segment = 200 * time.Millisecond, time.Second
	p := newProber(&timedFar{}, probing{objective: goal.Objective{Goal: goal.Throughput}, segment: segment,
		warmUp: warmUp})
	var began time.Time
	var asked int
	p.samplers = map[tune.Side]Sampler{
		tune.Near: func(ctx context.Context, d time.Duration) (*profile.Profile, error) {
			if at := time.Since(began); at < warmUp || d != segment {
				t.Errorf("sampled for %v after %v", d, at)
			}
			select {
			case <-ctx.Done():
			case <-time.After(d):
			}
			b := profile.NewBuilder("cycles", false)
			b.Add(profile.Seen{Frames: []int{b.Frame(profile.Frame{Name: "tcp_ack"})}, Count: 7})
			return b.Finish(profile.Window{}), nil
		},
		tune.Far: func(context.Context, time.Duration) (*profile.Profile, error) {
			asked++
			return nil, errors.New("not permitted there")
		},
	}
	for range 3 {
		began = time.Now()
		o, err := p.Measure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != warmUp+segment {
			t.Errorf("a sampled segment took %v", took)
		}
		if len(o.Profiles) != 1 || o.Profiles[tune.Near].Busy != 7 {
			t.Errorf("profiles %+v", o.Profiles)
		}
	}
	if asked != 1 || len(p.notes) != 1 || !strings.Contains(p.notes[0], "far host: not permitted there") {
		t.Errorf("asked %d times, notes %q", asked, p.notes)
	}
}

// TestDiagnoseSamples checks that a host whose processor is the limit is sampled under a load of
// its own, that the verdict then has the shares, and that nothing runs where no processor is the
// limit or no time is left.
func TestDiagnoseSamples(t *testing.T) { synctest.Test(t, diagnoseSamples) }

func diagnoseSamples(t *testing.T) {
	copies := func(ctx context.Context, d time.Duration) (*profile.Profile, error) {
		b := profile.NewBuilder("cycles", false)
		b.Add(profile.Seen{Frames: []int{b.Frame(profile.Frame{Name: "_copy_from_iter"}),
			b.Frame(profile.Frame{Name: "tcp_sendmsg_locked"})}, Count: 900})
		b.Add(profile.Seen{Frames: []int{b.Frame(profile.Frame{Name: "tcp_ack"})}, Count: 100})
		return b.Finish(profile.Window{}), nil
	}
	for _, c := range []struct {
		code    evidence.Code
		within  time.Duration
		sampled bool
	}{
		{evidence.SoftirqCPUSaturated, 10 * time.Second, true},
		{evidence.PathLoss, 10 * time.Second, false},
		{evidence.SoftirqCPUSaturated, time.Second, false},
	} {
		far := &timedFar{}
		d := &diagnosis{far: far, v: &Verdict{Findings: []evidence.Finding{{Code: c.code, Where: "near"}}},
			until: time.Now().Add(c.within)}
		d.o.defaults()
		d.o.Samplers = map[tune.Side]Sampler{tune.Near: copies, tune.Far: copies}
		if err := d.sample(t.Context()); err != nil {
			t.Fatal(err)
		}
		p := d.v.Profiles["near"]
		if (p != nil) != c.sampled || len(far.runs) > 0 != c.sampled || d.v.Profiles["far"] != nil {
			t.Fatalf("%s within %v: %d runs, profile %+v", c.code, c.within, len(far.runs), p)
		}
		if !c.sampled {
			continue
		}
		if s := p.WorkShare("copy"); s.Share != 0.9 || s.Low < 0.87 || len(p.Functions) != 2 {
			t.Errorf("%+v", p)
		}
	}
}
