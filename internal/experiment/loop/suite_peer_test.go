package loop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// TestSuiteAgainstAServer runs every test of the suite, shortened, against a real server over
// loopback. It checks that each result is complete, never how large a figure is. TestMeasure… and
// TestSuiteStaysShort cover the same code without traffic.
func TestSuiteAgainstAServer(t *testing.T) {
	testenv.Need(t, testenv.Network, testenv.Long)
	key := wire.NewKey()
	l, err := wire.Listen(t.Context(), "127.0.0.1:0", key)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- peer.Serve(ctx, peer.ServerOptions{Listener: l, Version: "test", HostName: "far"}) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	client, err := peer.Connect(t.Context(), l.Addr().String(),
		peer.ConnectOptions{Key: key.String(), Version: "test", HostName: "near"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const span = 200 * time.Millisecond
	for i, spec := range loop.Suite(span, span/2, 1) {
		t.Run(string(spec.Test)+" "+string(spec.Direction), func(t *testing.T) {
			testenv.Given(t, span, time.Minute, func(span time.Duration) error {
				return complete(t, client.Run, loop.Suite(span, span/2, 1)[i])
			})
		})
	}
}

// complete measures one spec and reports what its result lacks.
func complete(t *testing.T, run traffic.Runner, spec traffic.Spec) error {
	var last float64
	var disorder error
	r, err := loop.Measure(t.Context(), run, spec, func(i traffic.Interval) {
		if i.EndSeconds < last {
			disorder = fmt.Errorf("an interval that ends at %v s comes after one that ends at %v", i.EndSeconds, last)
		}
		last = i.EndSeconds
	})
	if err := errors.Join(err, disorder); err != nil {
		t.Fatal(err)
	}
	ok := r.ThroughputBitsPerSec > 0
	switch spec.Test {
	case traffic.Ping:
		ok = r.RTT != nil
	case traffic.RR, traffic.CRR:
		ok = r.TransactionsPerSec > 0
	case traffic.MTU:
		ok = r.MTU != nil && r.MTU.UpBytes > 60000 && r.MTU.DownBytes > 60000
	case traffic.Load:
		ok = r.Load != nil && r.Load.Idle != nil && r.Load.Up != nil && r.Load.Down != nil &&
			r.Load.Both != nil && len(r.Load.Curve) >= 8 &&
			r.Load.UpBitsPerSec > 0 && r.Load.DownBitsPerSec > 0
	}
	if !ok || r.Test != spec.Test || r.Ends.Remote.Host != "far" || r.Ends.Local.Host != "near" {
		return fmt.Errorf("%+v", r)
	}
	return nil
}
