package engine

import (
	"net"
	"runtime"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// socketPair returns one TCP connection over loopback.
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

// connPair returns socketPair, adopted.
func connPair(tb testing.TB, o ConnOptions) (a, b *Conn) {
	tb.Helper()
	near, far := socketPair(tb)
	a, err := Adopt(near, o)
	if err != nil {
		tb.Fatal(err)
	}
	b, err = Adopt(far, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(a.Close)
	tb.Cleanup(b.Close)
	return a, b
}

// TestLoopsAllocateNothing counts the allocations of the whole process while both ends run their
// rounds.
func TestLoopsAllocateNothing(t *testing.T) {
	t.Run("stream", func(t *testing.T) {
		near, far := connPair(t, ConnOptions{})
		p := &Phase{}
		p.Set(Measured)
		ws, err := NewStreamSender(p, near, StreamOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wr, err := NewStreamReceiver(p, far, StreamOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s, r := ws.body.(*streamSender), wr.body.(*streamReceiver)
		hurry(s, r)
		if n := testing.AllocsPerRun(500, func() {
			if err := s.round(ws); err != nil {
				t.Fatal(err)
			}
			for wr.Bytes.Load() < ws.Bytes.Load() {
				if err := r.round(wr); err != nil {
					t.Fatal(err)
				}
			}
		}); n != 0 {
			t.Errorf("%v allocations per write", n)
		}
	})
	t.Run("transaction", func(t *testing.T) {
		near, far := connPair(t, ConnOptions{NoDelay: true})
		p := &Phase{}
		p.Set(Measured)
		o := TransactionOptions{RequestBytes: 1, ResponseBytes: 1}
		wq, err := NewRequester(p, near, o)
		if err != nil {
			t.Fatal(err)
		}
		wa, err := NewResponder(p, far, o)
		if err != nil {
			t.Fatal(err)
		}
		q := wq.body.(*requester)
		ended := make(chan error, 1)
		go func() { ended <- wa.Run(-1) }()
		if n := testing.AllocsPerRun(500, func() {
			if err := q.round(wq); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations per transaction", n)
		}
		if wq.RTT.Count() != 501 { // AllocsPerRun warms up once
			t.Errorf("%d round trips recorded", wq.RTT.Count())
		}
		p.Set(Stopped)
		wa.Wake()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestProcessorsAreGivenBack lends to several tests at a time, in the order in which they happen to
// end.
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

// TestTalliesDoNotShareCacheLines puts the counters of two workers at least a cache line from
// everything else that is written.
func TestTalliesDoNotShareCacheLines(t *testing.T) {
	var w Worker
	const line = 64
	if at := unsafe.Offsetof(w.Bytes); at < line {
		t.Errorf("counters start at %d", at)
	}
	if size := unsafe.Sizeof(w.Tally); size%line != 0 {
		t.Errorf("counters fill %d bytes", size)
	}
}

func TestWorkersAreSpread(t *testing.T) {
	for _, c := range []struct {
		cpus []int
		r    Role
		want []int
	}{
		{nil, Sender, []int{-1, -1}},
		{[]int{5}, Sender, []int{-1, -1}},
		{[]int{0, 1}, Sender, []int{0, 1, 0}},
		{[]int{0, 1}, Receiver, []int{1, 0, 1}},
		{[]int{2, 3, 7}, Sender, []int{2, 3, 7, 2}},
		{[]int{2, 3, 7}, Receiver, []int{7, 3, 2, 7}},
		{[]int{0, 1}, Requester, []int{0, 1, 0}},
		{[]int{0, 1}, Responder, []int{0, 1, 0}},
	} {
		var got []int
		for i := range c.want {
			got = append(got, CPUOf(c.cpus, c.r, i))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("role %d on %v (-want +got):\n%s", c.r, c.cpus, d)
		}
	}
}
