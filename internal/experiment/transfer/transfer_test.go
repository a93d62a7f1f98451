package transfer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/storage/nfs/mount"
)

// world simulates an export: a round trip, a link, a ring that loses what does not fit, and what
// the server grants.
type world struct {
	random      *rand.Rand
	noise       float64       // standard deviation of the logarithm
	roundTrip   time.Duration // of a call
	link        float64       // bytes per second
	perConn     float64       // bytes per second of one connection
	ring        int           // frames; 0: none is lost
	lossTime    float64       // seconds that a lost transfer takes more
	most        int64         // size that the server grants
	shared      int           // connections of an earlier mount; 0: none
	refuse      map[string]error
	fail        func(segment int) error
	segments    int
	mounts      int
	cached      bool // the client's cache answers
	serverCache mount.ServerCache
}

func (w *world) granted(s mount.Spec) mount.Effective {
	or := func(n, otherwise int64) int64 {
		if n > 0 {
			return min(n, w.most)
		}
		return otherwise
	}
	e := mount.Effective{Version: s.Version, Protocol: "tcp", ReadSize: or(s.ReadSize, w.most),
		WriteSize: or(s.WriteSize, w.most), Connections: max(1, s.Connections), ReadAhead: s.ReadAhead}
	if s.Protocol != "" {
		e.Protocol = s.Protocol
	}
	if e.ReadAhead == 0 {
		e.ReadAhead = 128 << 10
	}
	if w.shared > 0 {
		e.Connections = w.shared
	}
	return e
}

func (w *world) Prepare(context.Context) (mount.Facts, error) {
	return mount.Facts{Default: w.granted(mount.Spec{Version: "4.2"}), File: "f", FileBytes: 1 << 30}, nil
}

func (w *world) Try(_ context.Context, s mount.Spec) (mount.Effective, error) {
	w.mounts++
	if err := w.refuse[s.Protocol]; err != nil {
		return mount.Effective{}, fmt.Errorf("mount: %w", err)
	}
	return w.granted(s), nil
}

// Measure has one phase of reads: the window in flight is read-ahead, at least a call.
func (w *world) Measure(_ context.Context, s mount.Spec) (mount.Sample, error) {
	w.segments++
	if w.fail != nil {
		if err := w.fail(w.segments); err != nil {
			return mount.Sample{}, err
		}
	}
	e := w.granted(s)
	window := float64(max(e.ReadSize, e.ReadAhead))
	line := min(w.link, w.perConn*float64(e.Connections))
	took := window/line + w.roundTrip.Seconds()*1.0 + 20e-6*window/float64(e.ReadSize)
	out := mount.Sample{Spec: s, Effective: e, Requests: 1000, Waits: "network", ServerCache: w.serverCache}
	if frames := math.Ceil(float64(e.ReadSize) / 1448); w.ring > 0 && int(frames) > w.ring {
		took += w.lossTime * window / float64(e.ReadSize)
		out.Drops = []drops.Drop{{Place: "nic.eth0.rx_missed_errors", Total: uint64(frames) - uint64(w.ring),
			Stage: drops.Ring}}
	}
	rate := window / took * math.Exp(w.noise*w.random.NormFloat64())
	out.Read = mount.Moved{Bytes: int64(rate), Seconds: 1}
	out.WireRead = uint64(out.Read.Bytes)
	if w.cached {
		out.WireRead /= 2
	}
	out.Write = out.Read
	return out, nil
}

func sweep(t *testing.T, w *world, base mount.Spec, o Options) (*Result, error) {
	t.Helper()
	w.random = rand.New(rand.NewPCG(1, 2))
	base.Source, base.Version = "fs:/export", "4.2"
	o.Config, o.Read = tune.DefaultConfig(), true
	o.Config.Seed = 7
	return Run(t.Context(), w, base, o)
}

func quiet() *world {
	return &world{noise: 0.03, roundTrip: 300 * time.Microsecond, link: 110e6, perConn: 1e9, most: mount1M}
}

const mount1M = 1 << 20

// A ring of 40 frames holds reads of 32 KiB and not of 64 KiB: the sweep ends at 32 KiB with an
// interval that excludes no gain, and says from which size on packets were lost.
func TestFindsTheRing(t *testing.T) {
	w := quiet()
	w.ring, w.lossTime = 40, 0.01
	r, err := sweep(t, w, mount.Spec{}, Options{Factors: []Factor{ReadSize},
		Card: Card{Name: "eth0", MTU: 1500, Ring: 40}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Best.ReadSize > 32<<10 || r.Best.ReadSize < 16<<10 || r.LossesFrom != 64<<10 {
		t.Errorf("best %+v, losses from %d", r.Best, r.LossesFrom)
	}
	if f := r.Outcome.Final; f == nil || f.Low < 1.01 || f.High < f.Ratio {
		t.Errorf("final %+v", f)
	}
	for _, p := range r.Sweep {
		if fits := p.ReadFrames <= 40; p.Fits == nil || *p.Fits != fits || (len(p.Drops) > 0) == fits ||
			p.Throughput <= 0 || p.Segments == 0 {
			t.Errorf("point %+v", p)
		}
	}
}

// With 300 ms of round trip and narrow connections, read-ahead and connections help only together
// with large reads.
func TestFindsWhatALongPathNeeds(t *testing.T) {
	w := quiet()
	w.roundTrip, w.perConn = 300*time.Millisecond, 4e6
	r, err := sweep(t, w, mount.Spec{ReadSize: 16 << 10}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Best.ReadAhead < 8<<20 || r.Best.Connections < 4 || r.Outcome.Final.Low < 5 {
		t.Errorf("best %+v, final %+v", r.Best, r.Outcome.Final)
	}
	if strings.Contains(r.Best.Options(), "read_ahead") || !strings.Contains(r.Best.Options(), "nconnect=") {
		t.Errorf("options %q", r.Best.Options())
	}
}

// Where no option matters, nothing is kept, in each of forty worlds but at most two.
func TestKeepsNothingUseless(t *testing.T) {
	kept := 0
	for seed := range uint64(40) {
		w := quiet()
		w.roundTrip, w.noise = 0, 0.05
		w.random = rand.New(rand.NewPCG(seed, 3))
		cfg := tune.DefaultConfig()
		cfg.Seed = seed
		r, err := Run(t.Context(), flat{w}, mount.Spec{Source: "fs:/x", Version: "4.2"},
			Options{Read: true, Write: true, Config: cfg})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Outcome.Kept) > 0 {
			kept++
		}
	}
	if kept > 2 {
		t.Errorf("%d of 40 kept something", kept)
	}
}

// flat is a world whose rate depends on nothing.
type flat struct{ *world }

func (f flat) Measure(_ context.Context, s mount.Spec) (mount.Sample, error) {
	m := mount.Moved{Bytes: int64(100e6 * math.Exp(f.noise*f.random.NormFloat64())), Seconds: 1}
	return mount.Sample{Spec: s, Effective: f.granted(s), Read: m, Write: m, WireRead: uint64(m.Bytes)}, nil
}

// What a server does not grant, connections that an earlier mount decides, and a protocol that the
// kernel lacks are refused with the reason.
func TestRefusals(t *testing.T) {
	w := quiet()
	w.most, w.shared = 64<<10, 2
	w.refuse = map[string]error{"udp": syscall.EINVAL}
	w.random = rand.New(rand.NewPCG(1, 2))
	r, err := Run(t.Context(), w, mount.Spec{Source: "fs:/x", Version: "3", ReadSize: 64 << 10}, Options{Read: true,
		Factors: []Factor{ReadSize, Connections, Protocol}, Sizes: []int64{1 << 20}, Config: tune.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		f      Factor
		reason string
	}{{ReadSize, "65536 is granted"}, {Connections, "an earlier mount of this server decides"},
		{Protocol, "invalid argument"}} {
		i := slices.IndexFunc(r.Outcome.Trials, func(x tune.Trial) bool { return factorOf(x.Knob) == want.f })
		if i < 0 {
			t.Errorf("%s was not tried", want.f)
			continue
		}
		if x := r.Outcome.Trials[i]; x.Verdict != tune.Refused || !strings.Contains(x.Reason, want.reason) {
			t.Errorf("%s: %s, %q; want %q", want.f, x.Verdict, x.Reason, want.reason)
		}
	}
	if len(r.Outcome.Kept) > 0 || r.Best.ReadSize != 64<<10 {
		t.Errorf("kept %+v, best %+v", r.Outcome.Kept, r.Best)
	}
}

// A server that goes away, hangs or loses the export in the middle ends the sweep with ErrGone;
// what was measured stays.
func TestServerGoesAway(t *testing.T) {
	for _, sign := range []error{mount.ErrSilent, syscall.ESTALE, syscall.ECONNREFUSED, syscall.EIO,
		syscall.ENOENT} {
		for _, at := range []int{1, 15, 60} {
			w := quiet()
			w.ring, w.lossTime = 40, 0.01
			w.fail = func(n int) error {
				if n >= at {
					return fmt.Errorf("read f: %w", sign)
				}
				return nil
			}
			r, err := sweep(t, w, mount.Spec{}, Options{})
			if !errors.Is(err, ErrGone) || !errors.Is(err, sign) || strings.Count(err.Error(), "went away") != 1 {
				t.Errorf("%v at %d: %v", sign, at, err)
			}
			if r == nil || r.Outcome.State != tune.StateUndone || len(r.Outcome.Kept) > 0 || len(r.Outcome.Segments) != at-1 {
				t.Errorf("%v at %d: %+v", sign, at, r)
			}
		}
	}
}

// An interrupt is no server that went away.
func TestInterrupted(t *testing.T) {
	w := quiet()
	ctx, cancel := context.WithCancel(t.Context())
	w.random = rand.New(rand.NewPCG(1, 2))
	w.fail = func(n int) error {
		if n == 5 {
			cancel()
		}
		return ctx.Err()
	}
	r, err := Run(ctx, w, mount.Spec{Source: "fs:/x", Version: "4.2"}, Options{Read: true, Config: tune.DefaultConfig()})
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrGone) || len(r.Outcome.Kept) > 0 {
		t.Errorf("%v, %+v", err, r.Outcome)
	}
}

// Reads that this host's cache answered do not count.
func TestClientCacheIsDiscarded(t *testing.T) {
	w := quiet()
	w.cached = true
	r, err := sweep(t, w, mount.Spec{}, Options{})
	if err != nil || !r.Outcome.Unreliable || len(r.Sweep) != 0 {
		t.Errorf("%v, %+v", err, r.Outcome)
	}
	if s := r.Outcome.Segments; len(s) == 0 || !strings.Contains(s[0].Discard, "client's cache") {
		t.Errorf("segments %+v", s)
	}
}

// TestLost: what a card missed, and the gap behind it, are one loss.
func TestLost(t *testing.T) {
	missed := []drops.Drop{{Place: "nic.eth0.rx_missed_errors", Total: 5}}
	for _, c := range []struct {
		p    Point
		want uint64
	}{
		{Point{}, 0},
		{Point{Drops: missed, OutOfOrder: 5}, 5},
		{Point{Drops: missed, OutOfOrder: 40}, 40}, // the path lost some too
		{Point{Drops: missed}, 5},
		{Point{Drops: missed, Resent: 1, TCPRetransmits: 2}, 8}, // calls, and what this host sent
	} {
		if got := c.p.Lost(); got != c.want {
			t.Errorf("%+v: %d, want %d", c.p, got, c.want)
		}
	}
}

func TestLossesFrom(t *testing.T) {
	at := func(size int64, lost uint64) Point {
		return Point{Effective: mount.Effective{ReadSize: size}, OutOfOrder: lost}
	}
	for _, c := range []struct {
		points []Point
		want   int64
	}{
		{nil, 0},
		{[]Point{at(4096, 0), at(8192, 0)}, 0},
		{[]Point{at(4096, 3), at(8192, 9)}, 0}, // at every size
		{[]Point{at(4096, 0), at(8192, 2), at(16384, 5)}, 8192},
		{[]Point{at(4096, 0), at(8192, 2), at(16384, 0)}, 0}, // not a matter of size
		{[]Point{at(4096, 0), at(8192, 2), at(8192, 0), at(16384, 1)}, 16384},
		{[]Point{at(4096, 1), at(8192, 171)}, 8192}, // a stray
		{[]Point{at(4096, 10), at(8192, 171)}, 0},   // more than that
	} {
		if got := lossesFrom(c.points); got != c.want {
			t.Errorf("%+v: %d, want %d", c.points, got, c.want)
		}
	}
}

func TestKnobs(t *testing.T) {
	for _, f := range Factors() {
		if got := factorOf(knobOf("fs:/a/rsize", f)); got != f {
			t.Errorf("%s: %s", f, got)
		}
	}
	if f := factorOf("nfs:fs:/x/other"); f != "" {
		t.Error(f)
	}
	for _, v := range []knob.Value{"x", "-1", "0", ""} {
		if s := with(mount.Spec{}, ReadSize, v); s != nil {
			t.Errorf("%q: %+v", v, s)
		}
	}
}
