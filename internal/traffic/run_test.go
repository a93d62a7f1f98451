package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/traffictest"
)

func run(t *testing.T, w *world, spec Spec, progress func(Interval)) *Result {
	t.Helper()
	done := w.serve(t.Context())
	r, err := Run(t.Context(), w.link, spec, progress)
	if err != nil {
		t.Fatalf("near: %v", err)
	}
	if err := <-done; err != nil {
		t.Fatalf("far: %v", err)
	}
	return r
}

// shortSpec is as short as a test may be.
func shortSpec(test Test) Spec {
	return Spec{Test: test, Duration: 300 * time.Millisecond, Interval: 100 * time.Millisecond}
}

func TestStreamAllWays(t *testing.T) {
	t.Parallel()
	for _, direction := range []Direction{Up, Down, Bidir} {
		for _, streams := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d", direction, streams), func(t *testing.T) {
				t.Parallel()
				spec := shortSpec(Stream)
				spec.Direction, spec.Streams = direction, streams
				spec.WarmUp = 100 * time.Millisecond
				var live []Interval
				r := runUntil(t, newWorld(t), spec, flowed, &live)
				if r.ThroughputBitsPerSec <= 0 || r.Bytes <= 0 {
					t.Errorf("throughput %v, bytes %d", r.ThroughputBitsPerSec, r.Bytes)
				}
				if direction == Bidir && (r.UpBitsPerSec <= 0 || r.DownBitsPerSec <= 0) {
					t.Errorf("bidir: up %v, down %v", r.UpBitsPerSec, r.DownBitsPerSec)
				}
				if r.DurationSeconds < 0.3 {
					t.Errorf("measured %v s", r.DurationSeconds)
				}
				if r.WarmUpSeconds < 0.1 {
					t.Errorf("warm-up of %v s", r.WarmUpSeconds)
				}
				if len(live) != len(r.Intervals) || len(live) < 2 || !live[0].Omitted || live[len(live)-1].Omitted {
					t.Errorf("live %d, final %d intervals: %+v", len(live), len(r.Intervals), r.Intervals)
				}
				// Not every interval: on a busy machine some are empty.
				flows := func(i Interval) bool { return i.ThroughputBitsPerSec > 0 && i.EndSeconds > i.StartSeconds }
				if !slices.ContainsFunc(r.Intervals, flows) {
					t.Errorf("intervals %+v", r.Intervals)
				}
				checkEnds(t, r)
			})
		}
	}
}

// runUntil runs a test whose result has what measured asks for; see [traffictest.Longer]. Live gets
// the intervals of the test whose result is returned; nil: not needed.
func runUntil(t *testing.T, w *world, spec Spec, measured func(*Result) bool, live *[]Interval) *Result {
	t.Helper()
	var seen []Interval
	r := traffictest.Longer(spec.Duration, func(window time.Duration) *Result {
		spec.Duration, seen = window, nil
		return run(t, w, spec, func(i Interval) { seen = append(seen, i) })
	}, measured)
	if live != nil {
		*live = seen
	}
	return r
}

// flowed reports whether bytes arrived on every connection while the test's own threads ran: the
// kernel takes and confirms bytes without them.
func flowed(r *Result) bool {
	for _, e := range []End{r.Ends.Local, r.Ends.Remote} {
		if runtime.GOOS == "linux" && e.TestCPUSeconds == 0 {
			return false
		}
		for _, i := range e.TCP {
			if i.Sender && i.BytesAcked == 0 || !i.Sender && i.BytesReceived == 0 {
				return false
			}
		}
	}
	return r.Bytes > 0 && (r.Direction != Bidir || r.UpBitsPerSec > 0 && r.DownBitsPerSec > 0)
}

// answered reports whether a test has the time of a round trip.
func answered(r *Result) bool { return r.RTT != nil && r.RTT.Count > 0 }

func checkEnds(t *testing.T, r *Result) {
	t.Helper()
	for name, e := range map[string]End{"local": r.Ends.Local, "remote": r.Ends.Remote} {
		if e.CPUSeconds <= 0 || e.CPUSeconds > 2*max(1, r.DurationSeconds) || e.CPUSecondsPerGigabyte <= 0 {
			t.Errorf("%s: cpu %v s, %v s/GB", name, e.CPUSeconds, e.CPUSecondsPerGigabyte)
		}
		if len(e.Drops) != 2 || e.Drops[0].Place != "TcpExt.TCPBacklogDrop" || e.Drops[0].Total != 3 ||
			e.Drops[1].Total != 1 {
			t.Errorf("%s: drops %+v", name, e.Drops)
		}
		if _, ok := e.Counters["softnet.dropped"]; ok || e.Counters["Tcp.RetransSegs"] != 2 {
			t.Errorf("%s: counters %v", name, e.Counters)
		}
		if runtime.GOOS != "linux" {
			continue
		}
		if e.TestCPUSeconds <= 0 || e.TestCPUSecondsPerGigabyte <= 0 {
			t.Errorf("%s: the test's own threads used %v s, %v s/GB", name, e.TestCPUSeconds,
				e.TestCPUSecondsPerGigabyte)
		}
		wantTCP := r.Streams
		if r.Direction == Bidir {
			wantTCP *= 2
		}
		if len(e.TCP) != wantTCP {
			t.Errorf("%s: %d connections", name, len(e.TCP))
		}
		for _, i := range e.TCP {
			if i.SndMSSBytes < 500 || !i.WScaleOK || i.CongestionControl == "" || i.SndBufBytes == 0 ||
				i.RcvBufBytes == 0 {
				t.Errorf("%s: %+v", name, i)
			}
			if i.Sender && (i.BytesAcked == 0 || i.MeanCwndBytes == 0) {
				t.Errorf("%s sender: %+v", name, i)
			}
			if !i.Sender && i.BytesReceived == 0 {
				t.Errorf("%s receiver: %+v", name, i)
			}
		}
	}
	if runtime.GOOS == "linux" && (r.RetransmitsTotal == nil || r.MSSBytes == 0 || r.MTUBytes == 0 ||
		r.CongestionControl == "") {
		t.Errorf("path: %+v", r)
	}
}

func TestRequestResponse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ streams, request, response int }{{1, 1, 1}, {4, 100, 5000}, {1, 300_000, 1}} {
		t.Run(fmt.Sprintf("%d/%d/%d", c.streams, c.request, c.response), func(t *testing.T) {
			spec := shortSpec(RR)
			spec.Streams, spec.RequestBytes, spec.ResponseBytes = c.streams, c.request, c.response
			r := runUntil(t, newWorld(t), spec, answered, nil)
			if r.TransactionsPerSec <= 0 || r.RTT == nil {
				t.Fatalf("%+v", r)
			}
			d := r.RTT
			if d.Count == 0 || d.Min <= 0 || d.Min > d.P50 || d.P50 > d.P99 || d.P99 > d.Max {
				t.Errorf("distribution %+v", d)
			}
		})
	}
}

func TestSteadyStateIsFound(t *testing.T) {
	t.Parallel()
	for _, spec := range []Spec{
		{Test: Stream, Direction: Up}, {Test: Stream, Direction: Down}, {Test: Stream, Direction: Bidir}, {Test: RR},
	} {
		t.Run(fmt.Sprintf("%s/%s", spec.Test, spec.Direction), func(t *testing.T) {
			t.Parallel()
			spec.Duration, spec.Interval, spec.WarmUp = 300*time.Millisecond, 100*time.Millisecond, -1
			r := run(t, newWorld(t), spec, nil)
			if r.WarmUpSeconds < 0.5 {
				t.Errorf("steady after %v s", r.WarmUpSeconds)
			}
			if !r.Intervals[0].Omitted {
				t.Errorf("first interval %+v", r.Intervals[0])
			}
		})
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	server := listenEcho(t)
	for _, c := range []struct{ method, peer string }{{"icmp echo", "127.0.0.1"}, {"icmp echo", "::1"},
		{"udp echo", "no address"}} {
		t.Run(c.method+" "+c.peer, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.far.Echo, w.link.PeerIP = server, c.peer
			if c.method == "udp echo" {
				// A name has no address for ICMP, so only the way over UDP is left.
				w.link.Echo = fmt.Sprintf("127.0.0.1:%d", server.Port())
			} else if fd, _, err := sys.OpenEcho(netip.Addr{}, netip.MustParseAddr(c.peer)); err != nil {
				testenv.Missing(t, testenv.Network, "no ICMP: ", err)
			} else {
				_ = sys.Close(fd)
			}
			spec := shortSpec(Ping)
			spec.Gap = 5 * time.Millisecond
			r := runUntil(t, w, spec, answered, nil)
			if !strings.HasPrefix(r.Method, c.method) || r.RTT == nil || r.RTT.Count == 0 || r.PacketsPerSec <= 0 {
				t.Errorf("%s: rtt %+v, %v packets/s", r.Method, r.RTT, r.PacketsPerSec)
			}
			if r.LossRatio == nil || *r.LossRatio < 0 || *r.LossRatio > 1 {
				t.Errorf("loss %v", r.LossRatio)
			}
		})
	}
}

func TestPingWithoutAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link.PeerIP = "no address"
	done := w.serve(t.Context())
	_, err := Run(t.Context(), w.link, shortSpec(Ping), nil)
	if err == nil || !errors.Is(err, ErrNoAnswer) {
		t.Errorf("near: %v", err)
	}
	if err := <-done; !errors.Is(err, errStopped) {
		t.Errorf("far: %v", err)
	}
}

// TestChannelStaysInStep runs a refused test, a cancelled one and a good one over the same channel.
func TestChannelStaysInStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.far.Limits.MaxStreams = 2

	spec := shortSpec(Stream)
	spec.Streams = 3
	done := w.serve(t.Context())
	_, err := Run(t.Context(), w.link, spec, nil)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "3 streams are more than the 2 this host allows") {
		t.Errorf("refused: %v", err)
	}
	if err := <-done; err == nil {
		t.Error("far: no error for a refused test")
	}

	spec.Streams, spec.Duration = 1, time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	done = w.serve(t.Context())
	_, err = Run(ctx, w.link, spec, func(Interval) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := <-done; !errors.Is(err, errStopped) || errors.Is(err, ErrPeerGone) {
		t.Errorf("far: %v", err)
	}

	if r := runUntil(t, w, shortSpec(RR), answered, nil); r.TransactionsPerSec == 0 {
		t.Errorf("%+v", r)
	}
}

func TestFarCancelEndsTheTest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := w.serve(ctx)
	spec := shortSpec(Stream)
	spec.Duration = time.Minute
	_, err := Run(t.Context(), w.link, spec, func(Interval) { cancel() })
	if !errors.Is(err, ErrFar) || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("near: %v", err)
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("far: %v", err)
	}
}
