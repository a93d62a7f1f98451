package traffic

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/traffic/echo"
	"github.com/linerate/linerate/internal/traffic/engine"
)

// withEcho gives the far end of a world an echo server on loopback.
func (w *world) withEcho(t *testing.T) {
	t.Helper()
	w.far.Echo = listenEcho(t)
}

func listenEcho(t *testing.T) *echo.Server {
	t.Helper()
	server, err := echo.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// onlyLinux skips tests that need sockets that share a port.
func onlyLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the far side of a udp test needs Linux")
	}
}

// TestTransactionsWithAPause checks that the connection rests before each request, and that the
// rest is in no round trip. On a busy machine a round trip may take longer than a short rest, but
// not longer than a rest of any length; and a test ends late, so the time that it measured bounds
// the number of its round trips.
func TestTransactionsWithAPause(t *testing.T) {
	t.Parallel()
	spec := shortSpec(RR)
	spec.ResponseBytes = 64 << 10
	for spec.Gap = 50 * time.Millisecond; ; spec.Gap *= 2 {
		spec.Duration = 6 * spec.Gap
		r := run(t, newWorld(t), spec, nil)
		most := r.DurationSeconds/spec.Gap.Seconds() + 1
		switch {
		case r.RTT != nil && float64(r.RTT.Count) > most:
			t.Fatalf("round trips %+v in %v s with a rest of %v", r.RTT, r.DurationSeconds, spec.Gap)
		case r.RTT != nil && r.RTT.Count > 0 && r.RTT.Min < spec.Gap.Seconds():
			return
		case spec.Gap > time.Second:
			t.Fatalf("round trips %+v with a rest of %v, as if the rest were in them", r.RTT, spec.Gap)
		}
	}
}

func TestDatagramsAllWays(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	for _, direction := range []Direction{Up, Down, Bidir} {
		for _, streams := range []int{1, 5} {
			t.Run(fmt.Sprintf("%s/%d", direction, streams), func(t *testing.T) {
				t.Parallel()
				spec := shortSpec(UDP)
				spec.Direction, spec.Streams, spec.RatePacketsPerSec, spec.PacketBytes = direction, streams, 2000, 100
				spec.WarmUp = 100 * time.Millisecond
				w := newWorld(t)
				w.withEcho(t)
				// Not every interval: on a busy machine some are empty.
				counted := func(r *Result) bool {
					return r.UDP != nil && r.Bytes > 0 && r.Pacing != nil && r.Pacing.Gaps != nil &&
						slices.ContainsFunc(r.Intervals, func(i Interval) bool {
							return i.PacketsPerSec > 0 && i.ThroughputBitsPerSec > 0
						})
				}
				r := runUntil(t, w, spec, counted, nil)
				u := r.UDP
				if u == nil || u.Sent == 0 || u.Received+u.Lost != u.Sent || u.Duplicates == nil ||
					*u.Duplicates != 0 || u.Reordered == nil {
					t.Fatalf("%+v", u)
				}
				if (direction == Bidir) != (u.Up != nil && u.Down != nil) {
					t.Errorf("up %+v, down %+v", u.Up, u.Down)
				}
				if r.Bytes != int64(u.Received)*100 || r.ThroughputBitsPerSec <= 0 || r.PacketsPerSec <= 0 ||
					r.LossRatio == nil {
					t.Errorf("%+v", r)
				}
				var explained uint64
				for _, l := range r.Losses {
					explained += l.Packets
				}
				if explained != u.Lost {
					t.Errorf("lost %d, explained %+v", u.Lost, r.Losses)
				}
				if r.Pacing == nil || r.Pacing.Gaps == nil || r.Pacing.AchievedBitsPerSec <= 0 ||
					r.Pacing.Method == "" {
					t.Errorf("pacing %+v", r.Pacing)
				}
				if !strings.HasPrefix(r.Method, "udp, ") || u.Batch == "" || r.LocalAddress != "127.0.0.1" {
					t.Errorf("method %q, batch %q, from %s", r.Method, u.Batch, r.LocalAddress)
				}
				if !counted(r) {
					t.Errorf("intervals %+v", r.Intervals)
				}
			})
		}
	}
}

// TestDatagramsOverrun floods a far socket whose buffer holds only some packets: the loss is exact,
// and the socket explains it.
func TestDatagramsOverrun(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	w := newWorld(t)
	w.withEcho(t)
	spec := shortSpec(UDP)
	spec.PacketBytes, spec.WindowBytes = 1000, 4096
	r := runUntil(t, w, spec, func(r *Result) bool { return r.UDP.Sent > 0 }, nil)
	u := r.UDP
	if u.Sent == 0 || u.Received+u.Lost != u.Sent {
		t.Fatalf("%+v", u)
	}
	var explained uint64
	for _, l := range r.Losses {
		explained += l.Packets
	}
	if explained != u.Lost {
		t.Errorf("lost %d, explained %+v", u.Lost, r.Losses)
	}
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	for _, spec := range []Spec{
		{Test: Stream, Direction: Up, Bytes: 10_000_019, Streams: 3},
		{Test: Stream, Direction: Down, Bytes: 10_000_019},
		{Test: Stream, Direction: Bidir, Bytes: 10_000_019, Streams: 2},
		{Test: UDP, Direction: Up, Bytes: 1_000_000, PacketBytes: 1000, RateBitsPerSec: 80e6, Streams: 2},
		{Test: UDP, Direction: Bidir, Bytes: 1_000_000, PacketBytes: 1000, RateBitsPerSec: 80e6},
	} {
		t.Run(fmt.Sprintf("%s/%s", spec.Test, spec.Direction), func(t *testing.T) {
			w := newWorld(t)
			w.withEcho(t)
			t.Parallel()
			spec.Duration = 5 * time.Minute
			r := run(t, w, spec, nil)
			want := spec.Bytes
			if spec.Direction == Bidir {
				want *= 2
			}
			if r.UDP != nil {
				want -= int64(r.UDP.Lost) * 1000
			}
			if r.Bytes != want || r.ThroughputBitsPerSec <= 0 {
				t.Errorf("%d bytes instead of %d in %v s at %v bits/s", r.Bytes, want, r.DurationSeconds,
					r.ThroughputBitsPerSec)
			}
			// An amount without an end of its own would take all of its time.
			if r.DurationSeconds <= 0 || r.DurationSeconds >= spec.Duration.Seconds() {
				t.Errorf("took %v s", r.DurationSeconds)
			}
		})
	}
}

// TestChosenPortsAreFreeAgain repeats tests from one port at once: neither end may leave a
// connection behind that still blocks the port.
func TestChosenPortsAreFreeAgain(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	port := testenv.FreePorts(t, 1)
	w := newWorld(t)
	for _, spec := range []Spec{
		{Test: Stream, Direction: Up}, {Test: Stream, Direction: Down}, {Test: Stream, Direction: Bidir}, {Test: RR},
		{Test: Stream, Bytes: 1e6}, {Test: Stream, Bytes: 1e6, Direction: Down},
	} {
		spec.Duration, spec.SourcePort = 100*time.Millisecond, port
		if spec.Bytes > 0 {
			spec.Duration = 5 * time.Minute
		}
		for range 3 {
			// A thread that gets no processor time within its window moves nothing: take a longer one.
			r := run(t, w, spec, nil)
			for longer := spec; r.Bytes == 0 && r.TransactionsPerSec == 0; r = run(t, w, longer, nil) {
				if longer.Duration *= 2; longer.Duration > 10*time.Second {
					t.Fatalf("%+v: %+v", spec, r)
				}
			}
		}
	}
}

// TestSmallAmountsHaveARate sends amounts that may arrive before the far end has opened its window.
func TestSmallAmountsHaveARate(t *testing.T) {
	onlyLinux(t)
	w := newWorld(t)
	for _, direction := range []Direction{Up, Down, Bidir} {
		for _, bytes := range []int64{1, 1000, 100_000} {
			r := run(t, w, Spec{Test: Stream, Direction: direction, Bytes: bytes, Duration: 5 * time.Minute}, nil)
			// No loopback moves a megabyte faster than its memory can be written, 1 Tb/s at most.
			if r.ThroughputBitsPerSec <= 0 || r.ThroughputBitsPerSec > 1e12 || r.DurationSeconds <= 0 {
				t.Errorf("%s, %d bytes: %g b/s in %g s", direction, bytes, r.ThroughputBitsPerSec, r.DurationSeconds)
			}
		}
	}
}

func TestAmountThatTakesTooLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := shortSpec(Stream)
	spec.Bytes, spec.RateBitsPerSec = 1<<40, 8e6
	r := run(t, w, spec, nil)
	if r.Bytes >= spec.Bytes || !strings.Contains(strings.Join(r.Warnings, "\n"), "of 1099511627776 bytes") {
		t.Errorf("%d bytes, warnings %q", r.Bytes, r.Warnings)
	}
}

func TestConnections(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	for _, streams := range []int{1, 3} {
		w := newWorld(t)
		spec := shortSpec(CRR)
		spec.Streams, spec.RequestBytes, spec.ResponseBytes = streams, 100, 200
		r := runUntil(t, w, spec, answered, nil)
		if r.TransactionsPerSec <= 0 || r.RTT == nil || r.RTT.Count == 0 {
			t.Errorf("%d streams: %+v", streams, r)
		}
		if r.RemoteAddress != "127.0.0.1" || r.Ends.Local.CPUSecondsPerMillion <= 0 {
			t.Errorf("%d streams: to %q, cost %+v", streams, r.RemoteAddress, r.Ends.Local)
		}
	}
}

func TestPingsBesideATest(t *testing.T) {
	t.Parallel()
	onlyLinux(t)
	for _, test := range []Test{Stream, RR, UDP} {
		t.Run(string(test), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.withEcho(t)
			w.link.PeerIP = "127.0.0.1"
			spec := shortSpec(test)
			spec.ProbeGap = 5 * time.Millisecond
			if test == UDP {
				spec.RateBitsPerSec = 1e6
			}
			seen := func(r *Result) bool {
				return slices.ContainsFunc(r.Intervals, func(i Interval) bool { return i.ProbeRTTSeconds > 0 })
			}
			r := runUntil(t, w, spec, func(r *Result) bool { return seen(r) && answered(r) }, nil)
			if !seen(r) {
				t.Errorf("no round trip in %+v", r.Intervals)
			}
			if !answered(r) {
				t.Fatalf("round trips %+v", r.RTT)
			}
		})
	}
}

// TestDistributionOfOneKind: the round trips of a transaction test are of its transactions alone,
// whatever pings ran beside it.
func TestDistributionOfOneKind(t *testing.T) {
	worker := func(roundTrips int) *engine.Worker {
		w := &engine.Worker{RTT: stats.NewHistogram()}
		for range roundTrips {
			w.RTT.Record(1000)
		}
		return w
	}
	pings := worker(7)
	s := &sampler{cast: cast{workers: []*engine.Worker{worker(5), worker(6), {}, pings}, beside: pings}}
	own, all := s.distribution(Spec{Test: RR}.Bulk()), s.distribution(Spec{Test: Stream}.Bulk())
	if own.Count != 11 || all.Count != 18 {
		t.Errorf("%d round trips of a transaction test, %d of a stream", own.Count, all.Count)
	}
}

func TestOptionsReachTheSockets(t *testing.T) {
	onlyLinux(t)
	w := newWorld(t)
	spec := shortSpec(Stream)
	spec.SendMethod, spec.ReceiveMethod, spec.WindowBytes, spec.Congestion = "copy", "copy", 100_000, "reno"
	cpus, err := sys.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	cpu := cpus[len(cpus)-1]
	spec.NearCPUs, spec.FarCPUs = []int{cpu}, []int{cpu}
	r := runUntil(t, w, spec, flowed, nil)
	if r.SendMethod != "copy" || r.ReceiveMethod != "copy" || r.CongestionControl != "reno" {
		t.Errorf("send %q, receive %q, congestion control %q", r.SendMethod, r.ReceiveMethod, r.CongestionControl)
	}
	for name, e := range map[string]End{"near": r.Ends.Local, "far": r.Ends.Remote} {
		if b := e.TCP[0].RcvBufBytes; b != 200_000 {
			t.Errorf("%s: receive buffer of %d bytes", name, b)
		}
		if len(e.Placement) != 1 || e.Placement[0] != (Placement{Stream: 0, CPU: cpu}) {
			t.Errorf("%s: placement %+v", name, e.Placement)
		}
		if e.UserSeconds+e.SystemSeconds+e.SoftIRQSeconds+e.IRQSeconds < 0.99*e.CPUSeconds ||
			e.CPUSecondsPerMillion <= 0 {
			t.Errorf("%s: cost %+v", name, e)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	noEcho := shortSpec(UDP)
	foreign := shortSpec(Stream)
	foreign.FarCPUs = []int{8191}
	for _, c := range []struct {
		name string
		spec Spec
		far  func(*Responder)
		want string
	}{
		{"no udp port", noEcho, func(*Responder) {}, "has no udp port for tests"},
		{"no such processor", foreign, func(*Responder) {}, "processor"},
		{"crr of an unknown client", shortSpec(CRR), func(r *Responder) { r.PeerIP = "" },
			"does not know your address"},
	} {
		w := newWorld(t)
		c.far(&w.far)
		done := w.serve(t.Context())
		if _, err := Run(t.Context(), w.link, c.spec, nil); !errors.Is(err, ErrRefused) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: near: %v", c.name, err)
		}
		if err := <-done; err == nil {
			t.Errorf("%s: far: no error", c.name)
		}
	}
	near := shortSpec(Stream)
	near.NearCPUs = []int{8191}
	if _, err := Run(t.Context(), newWorld(t).link, near, nil); !errors.Is(err, ErrBadSpec) {
		t.Errorf("near processor: %v", err)
	}
}

// TestEveryByteIsCharged compares what the far end charges with what the test is known to have
// moved.
func TestEveryByteIsCharged(t *testing.T) {
	t.Parallel()
	const amount = 3_000_000
	for name, c := range map[string]struct {
		spec Spec
		want func(*Result) int64 // at least
		most int64               // 0: no limit
	}{
		"an amount up": {Spec{Test: Stream, Streams: 2, Bytes: amount}, func(*Result) int64 { return amount }, amount},
		"one way down": {Spec{Test: Stream, Direction: Down, Duration: 200 * time.Millisecond},
			func(r *Result) int64 { return r.Bytes }, 0},
		"both ways": {Spec{Test: Stream, Direction: Bidir, Bytes: amount}, func(*Result) int64 { return 2 * amount },
			2 * amount},
		"transactions": {
			Spec{Test: RR, Duration: 100 * time.Millisecond, RequestBytes: 100, ResponseBytes: 900},
			func(r *Result) int64 { return int64(r.TransactionsPerSec*r.DurationSeconds+0.5) * 1000 }, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var charged int64
			calls := 0
			w.far.Spend = func(n int64) error {
				calls++
				charged += n
				if n < 0 {
					t.Errorf("%d bytes given back", n)
				}
				return nil
			}
			r := run(t, w, c.spec, nil)
			// On a busy machine the backlog of a socket whose reader is not running may overflow
			// and drop the first packets of a connection; TCP sends them again after 200 ms, which
			// is all of the window.
			for again := 0; again < 5 && c.want(r) == 0; again++ {
				charged, calls = 0, 0
				r = run(t, w, c.spec, nil)
			}
			if want := c.want(r); want == 0 || charged < want || c.most > 0 && charged > c.most || calls < 2 {
				t.Errorf("charged %d bytes in %d calls, the test has moved %d", charged, calls, want)
			}
		})
	}
}

// TestRateOfTransactions: what a host allows a test holds for messages too, in each direction, and
// does not end a test of small ones.
func TestRateOfTransactions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec Spec
		most float64
		want bool // refused
	}{
		{Spec{Test: RR, Duration: 5 * time.Minute, RequestBytes: 1 << 20}, 1e6, true},
		{Spec{Test: RR, Duration: 5 * time.Minute, ResponseBytes: 1 << 20}, 1e6, true},
		{Spec{Test: CRR, Duration: 5 * time.Minute, ResponseBytes: 1 << 20}, 1e6, true},
		{Spec{Test: RR, Duration: 200 * time.Millisecond}, 1e9, false},
	} {
		w := newWorld(t)
		w.far.Limits.MaxBitsPerSecond = c.most
		served := w.serve(t.Context())
		_, err := Run(t.Context(), w.link, c.spec, nil)
		if refused := errors.Is(err, ErrRefused) && strings.Contains(err.Error(), "this host allows"); refused != c.want ||
			!c.want && err != nil {
			t.Errorf("%+v: %v", c.spec, err)
		}
		if err := <-served; (err != nil) != c.want {
			t.Errorf("%+v: far side: %v", c.spec, err)
		}
	}
}

// TestNoMoreThanThePurseHolds has a far end that pays until a sum is reached, and a near end that
// gives up and is charged all the same.
func TestNoMoreThanThePurseHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var charged int64
	w.far.Spend = func(n int64) error {
		if charged += n; charged > 1_000_000 {
			return errors.New("your million is used up")
		}
		return nil
	}
	served := w.serve(t.Context())
	_, err := Run(t.Context(), w.link, Spec{Test: Stream, Duration: 5 * time.Minute}, nil)
	if !errors.Is(err, ErrRefused) || !strings.HasSuffix(err.Error(), "your million is used up") {
		t.Errorf("near side: %v", err)
	}
	if err := <-served; err == nil || !strings.Contains(err.Error(), "your million is used up") {
		t.Errorf("far side: %v", err)
	}

	charged = 0
	w = newWorld(t)
	w.far.Spend = func(n int64) error {
		charged += n
		return nil
	}
	served = w.serve(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	// What this end has received, the far end has sent.
	received := func(i Interval) {
		if i.ThroughputBitsPerSec > 0 {
			cancel()
		}
	}
	if _, err := Run(ctx, w.link, Spec{Test: Stream, Direction: Down, Duration: 5 * time.Minute,
		Interval: 100 * time.Millisecond}, received); !errors.Is(err, context.Canceled) {
		t.Fatalf("near side: %v", err)
	}
	if err := <-served; err == nil || charged == 0 {
		t.Errorf("far side: %v, %d bytes charged", err, charged)
	}
}
