package transfer

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/experiment/tune"
	"github.com/linerate/linerate/internal/host/drops"
	"github.com/linerate/linerate/internal/lab/guest/guesttest"
	"github.com/linerate/linerate/internal/storage/nfs/mount"
)

// plan is a bench of short segments.
func plan() mount.Plan {
	return mount.Plan{Base: mount.Spec{Source: serverIP + ":/", Version: "4.2"}, Read: true, Size: 4 << 20,
		Segment: 200 * time.Millisecond, Patience: 20 * time.Second}
}

func opened(t *testing.T, p mount.Plan) *mount.Bench {
	t.Helper()
	e, err := mount.Ping(t.Context(), serverIP, 2049, 3, time.Minute)
	must(t, err)
	b, err := mount.OpenBench(p, e)
	must(t, err)
	return b
}

// swept runs a sweep over the kernel's client, and checks that nothing remains of it.
func swept(t *testing.T, s *server, b *bench, p mount.Plan, o Options) *Result {
	t.Helper()
	began := time.Now()
	o.Read, o.Write = p.Read, p.Write
	o.Config = tune.DefaultConfig()
	o.Config.Seed = 3
	r, err := Run(t.Context(), b, p.Base, o)
	if e := b.Close(t.Context()); e != nil || err != nil {
		t.Fatal(err, e)
	}
	unmounted(t)
	if f := s.files(); len(f) > 0 {
		t.Errorf("left in the export: %q", f)
	}
	for _, x := range r.Sweep {
		t.Logf("note: rsize %d wsize %d nconnect %d read-ahead %d: %.3f MB/s in %d segments, %d frames, %d out of order, "+
			"%d resent, drops %v, waits %s", x.ReadSize, x.WriteSize, x.Connections, x.ReadAhead>>10, x.Throughput/1e6,
			x.Segments, x.ReadFrames, x.OutOfOrder, x.Resent+x.TCPRetransmits, x.Drops, x.Waits)
	}
	for _, x := range r.Outcome.Trials {
		t.Logf("note: %s %s → %s %s: %s: %s", x.Knob, x.From, x.To, x.Effect, x.Verdict, x.Reason)
	}
	t.Logf("note: best %s read-ahead %d, final %v, losses from %d; %d segments in %.1f s of the guest's time: %s",
		r.Best.Options(), r.Best.ReadAhead>>10, r.Outcome.Final, r.LossesFrom, len(r.Outcome.Segments),
		time.Since(began).Seconds(), r.Outcome.Reason)
	return r
}

// pointOf returns the point of a read size.
func pointOf(t *testing.T, r *Result, size int64) Point {
	t.Helper()
	i := slices.IndexFunc(r.Sweep, func(p Point) bool { return p.ReadSize == size })
	if i < 0 {
		t.Fatalf("no segment with rsize %d", size)
	}
	return r.Sweep[i]
}

// A mount has what it asked for, the wire carries what was read, and nothing remains.
func TestGuestMeasures(t *testing.T) {
	testenv.Need(t, testenv.Long)
	if !guesttest.In(t) {
		return
	}
	s := newServer(t, 1<<20)
	p := plan()
	p.Write = true
	b := opened(t, p)
	f, err := b.Prepare(t.Context())
	must(t, err)
	if f.FileBytes < 1<<20 || f.Default.ReadSize == 0 || f.Default.Version != "4.2" || f.Ends.RoundTrip <= 0 {
		t.Errorf("facts %+v", f)
	}
	want := mount.Spec{Source: p.Base.Source, Version: "4.2", ReadSize: 16384, WriteSize: 8192, Connections: 4,
		ReadAhead: 1 << 20}
	x, err := b.Measure(t.Context(), want)
	must(t, err)
	if got := (mount.Effective{Version: "4.2", Protocol: "tcp", ReadSize: 16384, WriteSize: 8192, Connections: 4,
		ReadAhead: 1 << 20}); x.Effective != got {
		t.Errorf("%+v, want %+v", x.Effective, got)
	}
	if x.Read.Bytes == 0 || x.WireRead < uint64(x.Read.Bytes) || x.Write.Bytes == 0 || x.Requests < 200 || x.Resent > 0 ||
		x.ServerCache != mount.ServerWarm {
		t.Errorf("%+v", x)
	}
	must(t, b.Close(t.Context()))
	unmounted(t)
	if names := s.files(); len(names) > 0 {
		t.Errorf("left in the export: %q", names)
	}
}

// The write-up's weak card (S16): it holds three frames and one on its slow bus. A transfer of two
// pages is six frames, and costs three times as much as one of a page or more, with the drops that
// explain it. The sweep keeps the smaller one.
func TestGuestWeakCard(t *testing.T) {
	testenv.Need(t, testenv.Long)
	if !guesttest.In(t) {
		return
	}
	s := newServer(t, 8<<10)
	sh(t, "ethtool -K "+s.near+" gro off")
	s.in("ethtool -K " + s.card + " tso off gso off")
	sh(t, "ip link add ifb7 type ifb")
	defer sh(t, "ip link del ifb7")
	sh(t, "ip link set ifb7 up")
	sh(t, "tc qdisc add dev ifb7 root tbf rate 16mbit burst 1600 limit 4600")
	sh(t, "tc qdisc add dev "+s.near+" handle ffff: ingress")
	defer sh(t, "tc qdisc del dev "+s.near+" ingress")
	sh(t, "tc filter add dev "+s.near+" parent ffff: matchall action mirred egress redirect dev ifb7")
	p := plan()
	p.Direct, p.Size = true, 256<<10
	r := swept(t, s, &bench{opened(t, p)}, p, Options{Factors: []Factor{ReadSize}, Card: Card{Name: s.near, MTU: 1500}})
	if r.Facts.Default.ReadSize != 8<<10 || r.Best.ReadSize != 4<<10 || r.LossesFrom != 8<<10 {
		t.Errorf("default %d, best %d, losses from %d", r.Facts.Default.ReadSize, r.Best.ReadSize, r.LossesFrom)
	}
	if f := r.Outcome.Final; f == nil || f.Low <= 1 {
		t.Errorf("final %v", f)
	}
	small, large := pointOf(t, r, 4<<10), pointOf(t, r, 8<<10)
	lost := func(d drops.Drop) bool { return d.Place == "qdisc.ifb7.drops" && d.Total > 0 }
	if small.ReadFrames != 3 || large.ReadFrames != 6 || slices.ContainsFunc(small.Drops, lost) ||
		!slices.ContainsFunc(large.Drops, lost) || small.Throughput < 3*large.Throughput {
		t.Errorf("small %+v, large %+v", small, large)
	}
}

// bench is the bench of the kernel's client on a card of QEMU, which repeats its count of missed
// packets at each reading: where TCP saw no gap, the count is an old one.
type bench struct{ *mount.Bench }

func (b *bench) Measure(ctx context.Context, s mount.Spec) (mount.Sample, error) {
	out, err := b.Bench.Measure(ctx, s)
	if out.OutOfOrder == 0 {
		out.Drops = slices.DeleteFunc(out.Drops, func(d drops.Drop) bool { return d.Stage == drops.Ring })
	}
	return out, err
}
