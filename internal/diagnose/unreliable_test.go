package diagnose

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/traffic"
)

// TestRise checks that a flow in slow start asks for more time and a noisy one for a quieter host,
// although both scatter.
func TestRise(t *testing.T) {
	for _, c := range []struct {
		name  string
		rates []float64
		want  string // in the title; empty: nothing to say
	}{
		{"slow start", []float64{1e6, 2e6, 4e6, 8e6, 16e6, 30e6}, "too short"},
		{"noise", []float64{10e6, 30e6, 5e6, 25e6, 8e6, 31e6}, "too noisy"},
		{"grown and then cut", []float64{5e6, 10e6, 30e6, 12e6, 20e6, 30e6}, "too noisy"},
		{"steady", []float64{10e6, 10.2e6, 9.9e6, 10e6, 10.1e6, 10e6}, ""},
	} {
		r := traffic.Result{Test: traffic.Stream, Direction: traffic.Up, DurationSeconds: 3, ThroughputBitsPerSec: 10e6}
		for i, rate := range c.rates {
			r.Intervals = append(r.Intervals,
				traffic.Interval{StartSeconds: float64(i) / 2, EndSeconds: float64(i+1) / 2,
					ThroughputBitsPerSec: rate})
		}
		x := measurementUnreliable(evidence.FlowsOf(&evidence.Case{Runs: []traffic.Result{r}})[0])
		switch {
		case x == nil && c.want != "", x != nil && (c.want == "" || !strings.Contains(x.Title, c.want)):
			t.Errorf("%s: %+v, want %q", c.name, x, c.want)
		}
	}
}

// TestLocalDrops: losses with a place and a rate far below the link get a name, whatever the place,
// and losses that do not slow the flow get none.
func TestLocalDrops(t *testing.T) {
	// As recorded at a far host with a policer at its entrance: 962 of 2516 segments again, 6 Mb/s of
	// a gigabit.
	flow := func(change func(r *traffic.Result, near, far *host.Interface)) evidence.Case {
		near, far := host.Interface{Name: "eth0", Up: true, SpeedBitsPerSec: 1e9, MTUBytes: 1500,
			Addresses: []string{"192.0.2.1/24"}}, host.Interface{Name: "eth0", Up: true, SpeedBitsPerSec: 1e9,
			MTUBytes: 1500, Addresses: []string{"192.0.2.2/24"}}
		r := traffic.Result{Test: traffic.Stream, Direction: traffic.Up, DurationSeconds: 3, Streams: 1,
			ThroughputBitsPerSec: 6e6, Bytes: 2_250_000, MSSBytes: 1448}
		r.Ends.Local.TCP = []tcpinfo.TCPInfo{{Sender: true, BusySeconds: 3, SegsOut: 2516, RetransSegs: 962,
			MinRTTSeconds: 40e-6, MeanRTTSeconds: 60e-6, SndMSSBytes: 1448, WScaleOK: true, MaxSndWndBytes: 4 << 20,
			MeanCwndBytes: 5000, SndBufBytes: 4 << 20}}
		r.Ends.Remote.Drops = []drops.Drop{{Place: "somewhere.new", Total: 958, Stage: drops.Qdisc}}
		change(&r, &near, &far)
		return evidence.Case{Runs: []traffic.Result{r}, NearAddress: "192.0.2.1", FarAddress: "192.0.2.2",
			Near: &host.Snapshot{Name: "a", OS: "linux", Interfaces: []host.Interface{near}},
			Far:  &host.Snapshot{Name: "b", OS: "linux", Interfaces: []host.Interface{far}}}
	}
	for _, c := range []struct {
		name   string
		change func(r *traffic.Result, near, far *host.Interface)
		want   bool
	}{
		{"a place without a rule", func(*traffic.Result, *host.Interface, *host.Interface) {}, true},
		{"at the sender", func(r *traffic.Result, _, _ *host.Interface) {
			r.Ends.Local.Drops, r.Ends.Remote.Drops = r.Ends.Remote.Drops, nil
		}, true},
		{"no known speed, and a third of the segments lost", func(_ *traffic.Result, near, far *host.Interface) {
			near.SpeedBitsPerSec, far.SpeedBitsPerSec = 0, 0
		}, true},
		{"most of the link is used", func(r *traffic.Result, _, _ *host.Interface) { r.ThroughputBitsPerSec = 600e6 }, false},
		{"the path lost them", func(r *traffic.Result, _, _ *host.Interface) { r.Ends.Remote.Drops[0].Total = 40 }, false},
		{"next to nothing was lost", func(r *traffic.Result, _, _ *host.Interface) {
			r.Ends.Local.TCP[0].SegsOut, r.Ends.Local.TCP[0].RetransSegs = 200_000, 9
		}, false},
		{"datagrams of another program", func(r *traffic.Result, _, _ *host.Interface) {
			r.Ends.Remote.Drops[0] = drops.Drop{Place: "Udp.RcvbufErrors", Total: 958, Stage: drops.Socket}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := localDrops(evidence.FlowsOf(ptr(flow(c.change)))[0])
			if (x != nil) != c.want {
				t.Fatalf("found %+v", x)
			}
			if x == nil {
				return
			}
			if found := Judge(flow(c.change)); found[0].Severity != evidence.Warning {
				t.Errorf("the first finding is %s %s: %s", found[0].Severity, found[0].Code, found[0].Title)
			}
		})
	}
}

// TestNamed checks that a notice about something else does not hide where packets went.
func TestNamed(t *testing.T) {
	for _, c := range []struct {
		finding evidence.Finding
		want    bool
	}{
		{evidence.Finding{Code: evidence.MTUMismatch, Severity: evidence.Notice}, false},
		{evidence.Finding{Code: evidence.CPUSaturated, Severity: evidence.Notice}, false},
		{evidence.Finding{Code: evidence.LinkRateReached, Severity: evidence.Info}, false},
		{evidence.Finding{Code: evidence.DriverFault, Severity: evidence.Warning, Aside: true}, false},
		{evidence.Finding{Code: evidence.QdiscDrops, Severity: evidence.Notice}, true},
		{evidence.Finding{Code: evidence.ReceiveWindowLimited, Severity: evidence.Warning}, true},
	} {
		if got := named([]evidence.Finding{c.finding}); got != c.want {
			t.Errorf("%s %s: %v", c.finding.Severity, c.finding.Code, got)
		}
	}
}

func ptr(c evidence.Case) *evidence.Case { return &c }
