package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/peer"
	"github.com/linerate/linerate/internal/traffic"
	"github.com/linerate/linerate/internal/wire"
)

// SimulatedPath is the environment variable that gives the commands of a test a simulated path:
// "fast", "real-time" for tests that take as long as real ones, "hold" for tests that last as long
// as a setting of the far host is changed, "hold-near" as long as one of the near host is, or
// "hold:FILE" for those that last until FILE is there too. Over "lost" the connection is lost, and
// over "killed" the tune is killed, when the far host has committed and before that is known here.
const SimulatedPath = "LINERATE_TEST_PATH"

// TestLease is the environment variable that gives the commands of a test a lease of their own.
const TestLease = "LINERATE_TEST_LEASE"

// MainOverSimulatedPath is Main with a simulated path where [SimulatedPath] is set: a tune then
// reads, changes and restores the settings of two real hosts, over a real control channel and with
// real journals and guards, but no test of it sends traffic.
func MainOverSimulatedPath() int {
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	a.lease = os.Getenv(TestLease)
	if pace := os.Getenv(SimulatedPath); pace != "" {
		a.path = func(far *peer.Client) loop.FarHost { return simulatedPath{far, pace, new(windows)} }
	}
	root := a.treeFor(os.Args[1:])
	status := a.execute(root, os.Args[1:])
	c, _, err := root.Find(os.Args[1:])
	if err != nil || c.Hidden || c.Name() == "up" {
		return status
	}
	if finishHelp(c); !slices.Contains(listedStatuses(c), status) {
		fmt.Fprintf(os.Stderr, "linerate ended with %d, which the help of %s does not list\n", status, c.CommandPath())
		return 99 // no script expects it
	}
	return status
}

// simulatedPath is a path of 200 Mb/s and 10 ms whose flow is limited by the buffers of the two
// hosts, as their settings are at the moment of the test.
type simulatedPath struct {
	*peer.Client
	pace   string
	before *windows // in the first test
}

// windows are the buffers of the near and the far host, bytes.
type windows struct{ sender, receiver float64 }

const (
	simulatedRate  = 200e6 // bits per second
	simulatedRTT   = 0.01  // seconds
	simulatedNoise = 0.01  // of a segment's rate, up and down
)

// Run returns what a test would have measured. It asks the far host for its window each time, so
// that a far host that is gone ends the test as it ends a real one.
func (p simulatedPath) Run(ctx context.Context, s traffic.Spec, _ func(traffic.Interval)) (*traffic.Result, error) {
	now, err := p.windows(ctx)
	if err != nil {
		return nil, err
	}
	if *p.before == (windows{}) {
		*p.before = now
	}
	pause := 10 * time.Millisecond // in which a test can kill the tune
	if p.pace == "real-time" {
		pause = s.Duration + max(s.WarmUp, 0)
	}
	for held := true; held; held = p.holds(now) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
		if now, err = p.windows(ctx); err != nil {
			return nil, err
		}
	}
	rate := min(simulatedRate, 8*min(now.sender, now.receiver)/2/simulatedRTT) * (1 + simulatedNoise*(2*rand.Float64()-1))
	r := &traffic.Result{
		Test: s.Test, Direction: s.Direction, Streams: 1, StartTime: time.Now(), DurationSeconds: s.Duration.Seconds(),
		RTT: &stats.Latencies{Count: 20, Min: simulatedRTT, Mean: simulatedRTT, P50: simulatedRTT,
			P90: simulatedRTT,
			P99: simulatedRTT, P999: simulatedRTT, Max: simulatedRTT},
	}
	r.Ends.Local.CPUs = []host.CPUTimes{{CPU: 0, User: 0.1, Idle: 0.9}}
	r.Ends.Remote.CPUs = r.Ends.Local.CPUs // the path limits the rate, not the hosts
	switch s.Test {
	case traffic.Stream:
		r.ThroughputBitsPerSec, r.Bytes = rate, int64(rate/8*r.DurationSeconds)
		r.Ends.Local.TCP = []tcpinfo.TCPInfo{{Sender: true, MinRTTSeconds: simulatedRTT, RTTSeconds: simulatedRTT}}
	case traffic.RR:
		r.TransactionsPerSec = 1 / simulatedRTT
	}
	return r, nil
}

// Commit commits on the far host, and loses its answer over some paths.
func (p simulatedPath) Commit(ctx context.Context, ids ...string) error {
	err := p.Client.Commit(ctx, ids...)
	switch {
	case err != nil:
		return err
	case p.pace == "lost":
		return errors.Join(&wire.Error{Op: "receive message", Kind: wire.ErrPeerGone,
			Err: errors.New("nothing heard for 8s")}, p.Close())
	case p.pace == "killed":
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		return self.Kill()
	}
	return nil
}

// holds reports whether a test goes on, because of a change that is in force.
func (p simulatedPath) holds(now windows) bool {
	kind, release, _ := strings.Cut(p.pace, ":")
	changed := kind == "hold" && now.receiver != p.before.receiver || kind == "hold-near" && now.sender != p.before.sender
	return changed && !isThere(release)
}

// windows reads the buffers of both hosts.
func (p simulatedPath) windows(ctx context.Context) (now windows, err error) {
	if now.sender, err = bufferLimit(ctx, live.New(), "sysctl:net.ipv4.tcp_wmem"); err != nil {
		return now, err
	}
	now.receiver, err = bufferLimit(ctx, p.Client, "sysctl:net.ipv4.tcp_rmem")
	return now, err
}

func isThere(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// bufferLimit reads the largest buffer, bytes, that a setting of three numbers allows.
func bufferLimit(ctx context.Context, h interface {
	Read(ctx context.Context, id knob.ID) (knob.Value, error)
}, id knob.ID) (float64, error) {
	v, err := h.Read(ctx, id)
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(v))
	return strconv.ParseFloat(fields[len(fields)-1], 64)
}
