package link

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// plain returns a buffer of one Ethernet frame of the given length that carries a number.
func plain(length, number int) []byte {
	b := make([]byte, headerLen+length)
	binary.BigEndian.PutUint16(b[headerLen+12:], 0x88b5) // local experimental ethertype
	setNumber(b, number)
	return b
}

func setNumber(buf []byte, number int) {
	binary.BigEndian.PutUint64(buf[headerLen+ethernetLen:], uint64(number))
}

func number(buf []byte) int { return int(binary.BigEndian.Uint64(buf[headerLen+ethernetLen:])) }

func newLine(t testing.TB, p Params) *Line {
	t.Helper()
	l, err := NewLine(p)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// drain takes out all frames that are due until a time, and calls each with the time they were due.
func drain(l *Line, until time.Duration, each func(at time.Duration, buf []byte)) {
	for {
		at, ok := l.Next()
		if !ok || at > until {
			return
		}
		buf := l.Pop(at)
		each(at, buf)
		l.Recycle(buf)
	}
}

const forever = time.Duration(math.MaxInt64)

func TestLineRateIsExact(t *testing.T) {
	for _, rate := range []float64{64e3, 1e6, 99_999_999, 1e9, 941_482_444, 40e9} {
		l := newLine(t, Params{RateBitsPerSec: rate, QueueBytes: 1 << 40, DelaySeconds: 0.01})
		const n = 2000
		var wire int64
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range n {
			length := 22 + rng.IntN(1493)
			wire += int64(max(60, length) + 24)
			l.Push(0, plain(length, i))
		}
		var last time.Duration
		drain(l, forever, func(at time.Duration, _ []byte) { last = at })
		want := float64(wire) * 8 / rate * 1e9
		if got := float64(last - 10*time.Millisecond); math.Abs(got-want) > 1.5 {
			t.Errorf("rate %v: %d frames of %d wire bytes took %v ns, want %v", rate, n, wire, got, want)
		}
	}
}

func TestLineCarries941MegabitOfTCP(t *testing.T) {
	l := newLine(t, Params{RateBitsPerSec: 1e9, QueueBytes: 1 << 40})
	var payload int
	var last time.Duration
	buf := superFrame(tcp4, 44*1448, 1448)
	for range 1000 {
		l.Push(0, buf)
		drain(l, forever, func(at time.Duration, _ []byte) { last = at })
		payload += 44 * 1448
	}
	if rate := float64(payload) * 8 / last.Seconds(); math.Abs(rate-1e9*1448/1538) > 1e3 {
		t.Errorf("payload rate %.0f bits per second, want %.0f", rate, 1e9*1448/1538)
	}
}

func TestLineIdleWireForgetsNothingButTime(t *testing.T) {
	l := newLine(t, Params{RateBitsPerSec: 1e6, DelaySeconds: 0.001})
	l.Push(0, plain(101, 0)) // 125 wire bytes: 1 ms
	l.Push(time.Second, plain(101, 1))
	var times []time.Duration
	drain(l, forever, func(at time.Duration, _ []byte) { times = append(times, at) })
	if times[0] != 2*time.Millisecond || times[1] != time.Second+2*time.Millisecond {
		t.Errorf("frames arrived at %v", times)
	}
}

func TestLineDelayJitterAndOrder(t *testing.T) {
	const delay, jitter = 10 * time.Millisecond, 4 * time.Millisecond
	for _, reorder := range []bool{false, true} {
		l := newLine(t, Params{DelaySeconds: delay.Seconds(), JitterSeconds: jitter.Seconds(),
			Reorder: reorder, Seed: 7})
		const n = 20_000
		sent := make([]time.Duration, n)
		for i := range n {
			sent[i] = time.Duration(i) * time.Millisecond
			l.Push(sent[i], plain(60, i))
		}
		var sum float64
		var late, prev time.Duration
		swaps, before := 0, -1
		low, high := time.Hour, time.Duration(0)
		drain(l, forever, func(at time.Duration, buf []byte) {
			i := number(buf)
			late = at - sent[i]
			low, high = min(low, late), max(high, late)
			sum += late.Seconds()
			if i < before {
				swaps++
			}
			if at < prev {
				t.Fatalf("frame %d came out at %v after one at %v", i, at, prev)
			}
			before, prev = i, at
		})
		if reorder != (swaps > 0) {
			t.Errorf("reorder %v: %d frames passed another", reorder, swaps)
		}
		if low < delay-jitter || high > delay+jitter {
			t.Errorf("reorder %v: delays from %v to %v, want within %v ± %v", reorder, low, high, delay, jitter)
		}
		if mean := sum / n; reorder && math.Abs(mean-delay.Seconds()) > 1e-4 {
			t.Errorf("mean delay %v s, want %v", mean, delay.Seconds())
		}
	}
}

func TestLineLossFraction(t *testing.T) {
	for _, p := range []float64{0, 1e-4, 0.01, 0.3, 1} {
		l := newLine(t, Params{LossRatio: p, Seed: 3})
		// Short segments: the draw is per segment, and copying payload takes most of the time.
		const frames = 5000
		buf := superFrame(tcp4, 44*20, 20)
		for range frames {
			l.Push(0, buf)
			drain(l, forever, func(time.Duration, []byte) {})
		}
		c := l.Counters()
		n := float64(frames * 44)
		if got, dev := float64(c.DroppedLoss), math.Sqrt(n*p*(1-p)); math.Abs(got-n*p) > 4*dev {
			t.Errorf("loss %v: %v of %v segments lost, want %v ± %v", p, got, n, n*p, 4*dev)
		}
		conserved(t, c)
	}
}

// conserved checks that every segment that went in is accounted for.
func conserved(t *testing.T, c Counters) {
	t.Helper()
	if out := c.OutPackets + c.WaitingPackets + c.DroppedLoss + c.DroppedQueue + c.DroppedTooLong + c.DroppedPolicer +
		c.DroppedInvalid; out != c.InPackets {
		t.Errorf("%d segments in, %d accounted for: %+v", c.InPackets, out, c)
	}
}

func TestLineSameSeedSameFate(t *testing.T) {
	fate := func(seed uint64) (lost []int) {
		l := newLine(t, Params{LossRatio: 0.05, JitterSeconds: 0.001, DelaySeconds: 0.002, Seed: seed})
		next := 0
		for i := range 1000 {
			l.Push(time.Duration(i), plain(100, i))
		}
		drain(l, forever, func(_ time.Duration, buf []byte) {
			for ; next < number(buf); next++ {
				lost = append(lost, next)
			}
			next++
		})
		return lost
	}
	a, b, c := fate(1), fate(1), fate(2)
	if len(a) == 0 || !equal(a, b) || equal(a, c) {
		t.Errorf("seed 1 lost %v then %v, seed 2 %v", a, b, c)
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestLineQueueLimit(t *testing.T) {
	const limit = 50_000
	l := newLine(t, Params{RateBitsPerSec: 1e8, QueueBytes: limit})
	rng := rand.New(rand.NewPCG(5, 6))
	now, deepest := time.Duration(0), int64(0)
	for i := range 20_000 {
		now += time.Duration(rng.IntN(250_000)) // offered: somewhat more than the line carries
		if i%3 == 0 {
			l.Push(now, superFrame(tcp6, rng.IntN(8000)+1, 1428))
		} else {
			l.Push(now, plain(22+rng.IntN(1490), i))
		}
		deepest = max(deepest, l.Backlog(now))
		if l.Backlog(now) > limit {
			t.Fatalf("%d bytes wait, limit %d", l.Backlog(now), limit)
		}
		drain(l, now, func(time.Duration, []byte) {})
		conserved(t, l.Counters())
	}
	c := l.Counters()
	if c.DroppedQueue == 0 || deepest < limit*9/10 {
		t.Errorf("queue never filled: deepest %d, %+v", deepest, c)
	}
	// A tail drop takes the end of a train and leaves its beginning.
	l = newLine(t, Params{RateBitsPerSec: 1e8, QueueBytes: 10*1538 + 100})
	l.Push(0, superFrame(tcp4, 44*1448, 1448))
	if c := l.Counters(); c.DroppedQueue != 34 || c.WaitingPackets != 10 {
		t.Errorf("queue for ten segments: %+v", c)
	}
	// A queue smaller than a frame still passes one at a time.
	l = newLine(t, Params{RateBitsPerSec: 1e8, QueueBytes: 1})
	l.Push(0, plain(1000, 0))
	l.Push(0, plain(1000, 1))
	if c := l.Counters(); c.WaitingPackets != 1 || c.DroppedQueue != 1 {
		t.Errorf("queue of one byte: %+v", c)
	}
}

func TestLineMTU(t *testing.T) {
	l := newLine(t, Params{MTUBytes: 1500})
	l.Push(0, plain(1514, 0))
	l.Push(0, plain(1515, 1))
	l.Push(0, superFrame(tcp4, 10*1448, 1448))
	l.Push(0, superFrame(tcp4, 10*1449, 1449))
	if c := l.Counters(); c.WaitingPackets != 11 || c.DroppedTooLong != 11 {
		t.Errorf("%+v", c)
	}
}

func TestLineHole(t *testing.T) {
	l := newLine(t, Params{HoleBytes: 1400})
	for length := 1399; length <= 1402; length++ {
		l.Push(0, plain(ethernetLen+length, length))
	}
	l.Push(0, superFrame(tcp4, 4*1448, 1448)) // 1500-byte packets, every one
	l.Push(0, superFrame(tcp4, 4*1348, 1348)) // 1400-byte packets
	c := l.Counters()
	if c.DroppedTooLong != 2+4 || c.WaitingPackets != 2+4 {
		t.Errorf("%+v, want 6 dropped too long and 6 waiting", c)
	}
	conserved(t, c)
}

// Bursts must not change how much is lost, only how the losses are spread.
func TestLineLossBursts(t *testing.T) {
	const n, share, mean = 400_000, 0.02, 8.0
	l := newLine(t, Params{LossRatio: share, LossBurst: mean, Seed: 7})
	var lost, runs, last int
	last = -1
	buf := plain(100, 0)
	for i := range n {
		setNumber(buf, i)
		l.Push(0, buf)
		drain(l, forever, func(_ time.Duration, buf []byte) {
			if gap := number(buf) - last - 1; gap > 0 {
				lost += gap
				runs++
			}
			last = number(buf)
		})
	}
	// The number of runs is about 1000 and its deviation 3 %; the bound is five deviations.
	if got := float64(lost) / n; math.Abs(got-share) > 0.15*share {
		t.Errorf("lost %.4f, want %v", got, share)
	}
	// Adjacent runs count as one, which at this share lengthens them by 2 %.
	if got := float64(lost) / float64(runs); math.Abs(got-mean) > 0.15*mean {
		t.Errorf("runs of %.2f, want %v", got, mean)
	}
	conserved(t, l.Counters())
}

func TestLinePolicer(t *testing.T) {
	const rate, burst = 10e6, 20_000
	l := newLine(t, Params{PoliceBitsPerSec: rate, PoliceBurstBytes: burst})
	// Twice the rate for ten seconds, as 1000-byte frames: one in 400 µs.
	const n = 25_000
	buf := plain(1000, 0)
	for i := range n {
		now := time.Duration(i) * 400 * time.Microsecond
		setNumber(buf, i)
		l.Push(now, buf)
		// A policer has no queue: a frame comes out when it went in.
		drain(l, forever, func(at time.Duration, buf []byte) {
			if at != now || number(buf) != i {
				t.Fatalf("frame %d came out at %v, frame %d went in at %v", number(buf), at, i, now)
			}
		})
	}
	c := l.Counters()
	want := (10*rate/8 + burst) / 1000
	if got := float64(c.InPackets - c.DroppedPolicer); math.Abs(got-want) > 2 {
		t.Errorf("%v frames passed, want %v: those that the bucket held and those that came in", got, want)
	}
	conserved(t, l.Counters())

	// As many segments of a super-frame pass as find tokens, and a full bucket passes all of a
	// smaller super-frame.
	l = newLine(t, Params{PoliceBitsPerSec: rate, PoliceBurstBytes: burst})
	l.Push(0, superFrame(tcp4, 10*1448, 1448))
	if c := l.Counters(); c.DroppedPolicer != 0 || c.WaitingPackets != 10 {
		t.Errorf("%+v, want all ten segments through", c)
	}
	l.Push(0, superFrame(tcp4, 10*1448, 1448)) // 1514 bytes each; 20000 − 15140 are left
	if c := l.Counters(); c.DroppedPolicer != 7 || c.WaitingPackets != 13 {
		t.Errorf("%+v, want three more segments through and seven dropped", c)
	}
	conserved(t, l.Counters())
}

func TestLineKeepsContentAndReusesBuffers(t *testing.T) {
	l := newLine(t, Params{DelaySeconds: 0.001})
	a, b := plain(60, 1), superFrame(tcp4, 30_000, 1448)
	now := time.Duration(0)
	cycle := func() {
		l.Push(now, a)
		l.Push(now, b)
		now += time.Millisecond
		if got := l.Pop(now); !bytes.Equal(got, a) {
			t.Fatal("small frame changed")
		} else {
			l.Recycle(got)
		}
		if got := l.Pop(now); !bytes.Equal(got, b) {
			t.Fatal("super-frame changed")
		} else {
			l.Recycle(got)
		}
	}
	cycle()
	if n := testing.AllocsPerRun(100, cycle); n != 0 {
		t.Errorf("%v allocations per two frames", n)
	}
}

func TestParamsCheck(t *testing.T) {
	for _, p := range []Params{
		{RateBitsPerSec: -1}, {RateBitsPerSec: 10}, {RateBitsPerSec: math.NaN()}, {DelaySeconds: -1},
		{DelaySeconds: math.Inf(1)},
		{JitterSeconds: 0.1}, {LossRatio: 1.1}, {LossRatio: math.NaN()}, {QueueBytes: -1}, {MTUBytes: 10},
		{LossBurst: 0.5}, {LossBurst: math.NaN()}, {HoleBytes: -1}, {HoleBytes: 20},
		{PoliceBitsPerSec: 10}, {PoliceBitsPerSec: 1e6}, {PoliceBitsPerSec: 1e6, PoliceBurstBytes: 1000},
		{PoliceBurstBytes: 1000},
	} {
		if _, err := NewLine(p); err == nil {
			t.Errorf("%+v accepted", p)
		}
	}
	if q := (Params{RateBitsPerSec: 1e9, DelaySeconds: 0.01}).Queue(); q != 2_500_000 {
		t.Errorf("default queue of 1 Gb/s and 20 ms round trip: %d", q)
	}
}

func BenchmarkLine(b *testing.B) {
	for name, buf := range map[string][]byte{"frame=1514": plain(1514, 0),
		"frame=64k": superFrame(tcp4, 44*1448, 1448)} {
		b.Run(name, func(b *testing.B) {
			l := newLine(b, Params{RateBitsPerSec: 1e9, DelaySeconds: 0.001, QueueBytes: 1 << 40})
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				l.Push(l.busy, buf)
				drain(l, l.busy, func(time.Duration, []byte) {})
			}
		})
	}
}
