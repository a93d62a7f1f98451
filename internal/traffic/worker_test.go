package traffic

import (
	"math"
	"net"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// socketPair is one TCP connection over loopback.
func socketPair(tb testing.TB) (a, b *net.TCPConn) {
	tb.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	s, err := l.AcceptTCP()
	if err != nil {
		tb.Fatal(err)
	}
	return c.(*net.TCPConn), s
}

// pairOf is two workers at the ends of one connection, not running.
func pairOf(t *testing.T, spec Spec, near, far role) (a, b *worker) {
	t.Helper()
	nearConn, farConn := socketPair(t)
	p := &phase{}
	p.set(measured)
	var workers []*worker
	ca, err := adopt(nearConn, spec.Test == RR, "")
	if err != nil {
		t.Fatal(err)
	}
	cb, err := adopt(farConn, spec.Test == RR, "")
	if err != nil {
		t.Fatal(err)
	}
	workers = []*worker{newWorker(near, ca, spec, p), newWorker(far, cb, spec, p)}
	t.Cleanup(func() { closeWorkers(workers) })
	return workers[0], workers[1]
}

// TestLoopsAllocateNothing counts the allocations of the whole process while both ends run their rounds.
func TestLoopsAllocateNothing(t *testing.T) {
	t.Run("stream", func(t *testing.T) {
		a, b := pairOf(t, Spec{Test: Stream}, sender, receiver)
		if n := testing.AllocsPerRun(500, func() {
			if err := a.send(); err != nil {
				t.Fatal(err)
			}
			for b.bytes.Load() < a.bytes.Load() {
				if err := b.receive(); err != nil {
					t.Fatal(err)
				}
			}
		}); n != 0 {
			t.Errorf("%v allocations per write", n)
		}
	})
	t.Run("rr", func(t *testing.T) {
		a, b := pairOf(t, Spec{Test: RR, RequestBytes: 1, ResponseBytes: 1}, requester, responder)
		ended := make(chan error, 1)
		go func() { ended <- b.run(-1) }()
		if n := testing.AllocsPerRun(500, func() {
			if err := a.request(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations per transaction", n)
		}
		if a.rtt.Count() != 501 { // AllocsPerRun warms up once
			t.Errorf("%d round trips recorded", a.rtt.Count())
		}
		a.phase.set(stopped)
		b.conn.wake()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Run("ping", func(t *testing.T) {
		socket, err := openICMP(loopback, 56)
		if err != nil {
			skip(t, "no icmp here: %v", err)
		}
		defer socket.close()
		p := &phase{}
		p.set(measured)
		w := newWorker(pinger, nil, Spec{Test: Ping}, p)
		w.ping = &pingState{socket: socket, token: Token{7}, ping: pattern(56), ring: make([]pingSent, pingRing)}
		if n := testing.AllocsPerRun(500, func() {
			w.sendPing(0)
			w.takeAnswer(time.Second)
		}); n != 0 {
			t.Errorf("%v allocations per ping", n)
		}
		if w.ping.answered == 0 {
			t.Error("no answer over loopback")
		}
	})
}

// TestProcessorsAreGivenBack lends to several tests at a time, in the order in which they happen to end.
func TestProcessorsAreGivenBack(t *testing.T) {
	own := runtime.GOMAXPROCS(0)
	var p processors
	first, second := p.lend(own+1), p.lend(5)
	if got, want := runtime.GOMAXPROCS(0), own+1+5+spareProcessors; got != want {
		t.Errorf("%d while two tests run, want %d", got, want)
	}
	first()
	if got, want := runtime.GOMAXPROCS(0), max(own, 5+spareProcessors); got != want {
		t.Errorf("%d while one test runs, want %d", got, want)
	}
	second()
	if got := runtime.GOMAXPROCS(0); got != own {
		t.Errorf("%d after the tests, want %d", got, own)
	}
}

// TestTalliesDoNotShareCacheLines puts the counters of two workers at least a cache line from everything else that is written.
func TestTalliesDoNotShareCacheLines(t *testing.T) {
	var w worker
	const line = 64
	if at := unsafe.Offsetof(w.bytes); at < line {
		t.Errorf("counters start at %d", at)
	}
	if end, next := unsafe.Offsetof(w.rttNanos)+unsafe.Sizeof(w.rttNanos), unsafe.Sizeof(w.tally); next-end < 32 {
		t.Errorf("counters end at %d of %d", end, next)
	}
}

func TestWorkersAreSpread(t *testing.T) {
	for _, c := range []struct {
		cpus []int
		r    role
		want []int
	}{
		{nil, sender, []int{-1, -1}},
		{[]int{5}, sender, []int{-1, -1}},
		{[]int{0, 1}, sender, []int{0, 1, 0}},
		{[]int{0, 1}, receiver, []int{1, 0, 1}},
		{[]int{2, 3, 7}, sender, []int{2, 3, 7, 2}},
		{[]int{2, 3, 7}, receiver, []int{7, 3, 2, 7}},
		{[]int{0, 1}, requester, []int{0, 1, 0}},
		{[]int{0, 1}, responder, []int{0, 1, 0}},
	} {
		var got []int
		for i := range c.want {
			got = append(got, cpuOf(c.cpus, c.r, i))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("role %d on %v (-want +got):\n%s", c.r, c.cpus, d)
		}
	}
}

func TestSteadyNeedsDataAndTime(t *testing.T) {
	flat, ramp, slowStart := make([]float64, 20), make([]float64, 20), make([]float64, 20)
	for i := range flat {
		flat[i], ramp[i], slowStart[i] = 100+float64(i%3), float64(5*i), math.Pow(1.3, float64(i))
	}
	for _, c := range []struct {
		name   string
		series []float64
		want   bool
	}{
		{"short", flat[:9], false},
		{"flat", flat, true},
		{"climbing", ramp, false},
		{"slow start", slowStart, false},
		{"nothing flows", make([]float64, 20), false},
		{"climbed, then flat for long", append(append([]float64{}, ramp[:8]...), append(flat, flat...)...), true},
	} {
		if got := steady(c.series); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
