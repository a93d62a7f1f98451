package icmp

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

func TestMain(m *testing.M) { traffictest.Main(m) }

// TestRun needs a kernel that lets this user send echo requests. Elsewhere it checks the error.
func TestRun(t *testing.T) {
	o := ClientOptions{HostName: "near", Sample: host.Root{}.Counters}
	spec := traffic.Spec{Test: traffic.Ping, Interval: 200 * time.Millisecond, Gap: 10 * time.Millisecond}
	var err error
	r := traffictest.Longer(200*time.Millisecond, func(window time.Duration) (r *traffic.Result) {
		spec.Duration = window
		r, err = Run(t.Context(), "127.0.0.1", spec, o)
		return r
	}, func(r *traffic.Result) bool { return err != nil || r.RTT != nil && r.RTT.Count > 0 })
	if err != nil {
		if runtime.GOOS == "linux" && !errors.Is(err, sys.ErrNotSupported) && !errors.Is(err, traffic.ErrNoAnswer) {
			t.Errorf("ping: %v", err)
		}
		return
	}
	if r.RTT == nil || r.RTT.Count == 0 || r.LossRatio == nil || *r.LossRatio != 0 || r.LocalAddress != "127.0.0.1" ||
		r.RemoteAddress != "127.0.0.1" {
		t.Errorf("ping: %+v", r)
	}
	if len(r.Ends.Local.Counters) == 0 || r.Ends.Local.Host != "near" || r.Ends.Remote.Counters != nil {
		t.Errorf("ends: %+v", r.Ends)
	}
	r, err = Run(t.Context(), "localhost", traffic.Spec{Test: traffic.MTU}, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.MTU == nil || r.MTU.UpBytes < 1500 || r.MTU.BlackHoleUp || r.MTU.LocalMTUBytes < 1500 {
		t.Errorf("mtu: %+v", r.MTU)
	}
}

func TestRunRefuses(t *testing.T) {
	if _, err := Run(t.Context(), "127.0.0.1", traffic.Spec{Test: traffic.Stream}, ClientOptions{}); !errors.Is(err,
		traffic.ErrBadSpec) {
		t.Errorf("stream: %v", err)
	}
	if _, err := Run(t.Context(), "no-host.invalid", traffic.Spec{Test: traffic.Ping}, ClientOptions{}); err == nil {
		t.Error("a name that does not exist was pinged")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ended, "127.0.0.1", traffic.Spec{Test: traffic.Ping, Duration: time.Minute},
		ClientOptions{}); err == nil {
		t.Error("a test that was cancelled has a result")
	}
}
