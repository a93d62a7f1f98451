package engine

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// hurry makes neither end wait for the other, for tests that send and receive on one thread.
func hurry(s *streamSender, r *streamReceiver) {
	if from, ok := s.from.(lingerer); ok {
		from.linger(false)
	}
	r.gather.off = true
}

// pump sends and receives in turn on one thread until n bytes have arrived.
func pump(t *testing.T, ws, wr *Worker, n int64) {
	t.Helper()
	s, r := ws.body.(*streamSender), wr.body.(*streamReceiver)
	hurry(s, r)
	for wr.Bytes.Load() < n {
		if err := s.round(ws); err != nil {
			t.Fatal(err)
		}
		for wr.Bytes.Load() < ws.Bytes.Load() {
			if err := r.round(wr); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// streamPair returns a sender and a receiver; it skips methods that this system does not have.
func streamPair(t *testing.T, p *Phase, o StreamOptions) (ws, wr *Worker) {
	t.Helper()
	near, far := connPair(t, ConnOptions{})
	ws, err := NewStreamSender(p, near, o)
	if err == nil {
		wr, err = NewStreamReceiver(p, far, o)
	}
	if errors.Is(err, sys.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ws.Close)
	t.Cleanup(wr.Close)
	return ws, wr
}

// TestStreamMethods moves a stream by every method with calls of awkward sizes, compares samples of
// it, and allocates nothing on the way.
func TestStreamMethods(t *testing.T) {
	for _, send := range []SendMethod{SendCopy, SendSendfile, SendSplice, SendAuto} {
		for _, receive := range []ReceiveMethod{ReceiveCopy, ReceiveTruncate, ReceiveAuto} {
			for _, call := range []int{0, 1, 1000, 4096, 65537} {
				t.Run(string(send)+" "+string(receive)+" "+time.Duration(call).String(), func(t *testing.T) {
					p := &Phase{}
					p.Set(Measured)
					ws, wr := streamPair(t, p, StreamOptions{Send: send, Receive: receive, BufferBytes: call})
					if send != SendAuto && ws.Method != string(send) || receive != ReceiveAuto &&
						wr.Method != string(receive) || ws.Method == "" || wr.Method == "" {
						t.Errorf("methods %q and %q", ws.Method, wr.Method)
					}
					size := call
					if size == 0 {
						size = sendBytes
					}
					pump(t, ws, wr, min(2*sampleEvery, 500*int64(size)))
					if v := wr.Verified.Load(); v == 0 || v > wr.Bytes.Load() {
						t.Errorf("%d of %d bytes compared", v, wr.Bytes.Load())
					}
					if call == 0 {
						if n := testing.AllocsPerRun(20, func() { pump(t, ws, wr, wr.Bytes.Load()+1) }); n != 0 {
							t.Errorf("%v allocations per round", n)
						}
					}
				})
			}
		}
	}
}

// TestCorruptPayloadIsFound has another program at the other end, which sends one thing wrong.
func TestCorruptPayloadIsFound(t *testing.T) {
	whole := bytes.Clone(ring()[:8*patternPeriod])
	flipped := bytes.Clone(whole)
	flipped[100] ^= 1
	for _, c := range []struct {
		name    string
		payload []byte
		foreign bool
		want    error
	}{
		{"right", whole, false, io.EOF},
		{"one bit", flipped, false, ErrCorrupt},
		{"lost page", whole[4096:], false, ErrCorrupt},
		{"lost large segment", whole[65536:], false, ErrCorrupt},
		{"page twice", append(bytes.Clone(whole[:4096]), whole...), false, ErrCorrupt},
		{"zeros", make([]byte, 5), false, ErrCorrupt},
		{"not ours", make([]byte, 5), true, io.EOF},
	} {
		for _, receive := range []ReceiveMethod{ReceiveCopy, ReceiveTruncate} {
			t.Run(c.name+" "+string(receive), func(t *testing.T) {
				near, far := socketPair(t)
				adopted, err := Adopt(far, ConnOptions{})
				if err != nil {
					t.Fatal(err)
				}
				p := &Phase{}
				p.Set(Measured)
				w, err := NewStreamReceiver(p, adopted, StreamOptions{Receive: receive, Foreign: c.foreign})
				if errors.Is(err, sys.ErrNotSupported) {
					adopted.Close()
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				go func() {
					_, _ = near.Write(c.payload) // the receiver closes when it has found the fault
					_ = near.Close()
				}()
				if err := w.Run(-1); !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if v := w.Verified.Load(); c.foreign && v != 0 {
					t.Errorf("compared %d bytes of a foreign sender", v)
				}
			})
		}
	}
}

// TestVerifierFollowsTheStream finds a shift by any number of bytes at any position.
func TestVerifierFollowsTheStream(t *testing.T) {
	for _, at := range []int64{0, 1, patternPeriod - 1, patternPeriod, 7*patternPeriod + 4095, 1 << 40} {
		for _, shift := range []int64{0, 1, 1448, 4096, 65536, 16 * 4096} {
			v := newVerifier(false)
			v.skip(int(at))
			from := (at + shift) % patternPeriod
			n, err := v.check(ring()[from : from+2*sampleBytes])
			if (err != nil) != (shift != 0) || shift == 0 && n != sampleBytes {
				t.Errorf("at %d shifted by %d: %d bytes, %v", at, shift, n, err)
			}
		}
	}
}

// TestQuota sends an exact amount over several streams, on threads of their own and on a shared
// one.
func TestQuota(t *testing.T) {
	const total = 3<<20 + 17
	for _, c := range []struct {
		name    string
		streams int
		method  SendMethod
	}{
		{"one", 1, SendAuto},
		{"three", 3, SendCopy},
		{"shared thread", 2*receiversPerThread + 1, SendAuto},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Phase{}
			q := NewQuota(total)
			var ws, wr []*Worker
			for range c.streams {
				a, b := streamPair(t, p, StreamOptions{Send: c.method, Limit: q})
				ws, wr = append(ws, a), append(wr, b)
			}
			if threads := Multiplex(ws, 1); c.streams > receiversPerThread && threads >= c.streams &&
				Name == "tcp, blocking, pinned" {
				t.Errorf("%d threads for %d streams", threads, c.streams)
			}
			Multiplex(wr, 2)
			all := append(ws, wr...)
			ended := make(chan error, len(all))
			for _, w := range all {
				go func() { ended <- w.Run(-1) }()
			}
			select {
			case <-q.Done():
			case err := <-ended:
				t.Fatal(err)
			case <-time.After(time.Minute):
				t.Fatal("quota is not done")
			}
			sum := func(ws []*Worker) (n int64) {
				for _, w := range ws {
					n += w.Bytes.Load()
				}
				return n
			}
			if n := sum(ws); n != total {
				t.Errorf("%d bytes sent", n)
			}
			for wait := time.Now().Add(time.Minute); sum(wr) < total && time.Now().Before(wait); {
				time.Sleep(time.Millisecond)
			}
			if n := sum(wr); n != total {
				t.Errorf("%d bytes received", n)
			}
			p.Set(Stopped)
			for _, w := range all {
				w.Wake()
			}
			for range all {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		})
	}
	select {
	case <-NewQuota(0).Done():
	default:
		t.Error("a quota of nothing is not done")
	}
}

// TestSharedThread lets one stream of many break: the others go on, and each gets its share.
func TestSharedThread(t *testing.T) {
	p := &Phase{}
	p.Set(Measured)
	const n = 3*receiversPerThread + 1
	var ws, wr []*Worker
	for range n {
		a, b := streamPair(t, p, StreamOptions{})
		ws, wr = append(ws, a), append(wr, b)
	}
	threads := Multiplex(append(append([]*Worker{}, ws...), wr...), 1)
	if threads == 2*n {
		t.Skip("no shared threads on this system")
	}
	if threads != 2 {
		t.Fatalf("%d threads", threads)
	}
	broken := make(chan error, 2)
	ended := make(chan error, 2*n)
	for i, w := range append(append([]*Worker{}, ws...), wr...) {
		into := ended
		if i%n == 0 {
			into = broken
		}
		go func() { into <- w.Run(-1) }()
	}
	if err := ws[0].Conn.CloseWrite(); err != nil {
		// the sender can send no more, and the receiver finds the end of the stream
		t.Fatal(err)
	}
	for range 2 {
		if err := <-broken; err == nil {
			t.Error("a broken stream ended without an error")
		}
	}
	for wait := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		served := 1
		for _, w := range wr[1:] {
			if w.Verified.Load() > sampleBytes {
				served++
			}
		}
		if served == n {
			break
		}
		if time.Now().After(wait) {
			t.Fatalf("%d of %d streams were served", served, n)
		}
	}
	p.Set(Stopped)
	for i := 1; i < n; i++ {
		ws[i].Wake()
		wr[i].Wake()
	}
	for range 2*n - 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestGathering keeps the low water mark small beside the receive buffer, and away from slow
// streams.
func TestGathering(t *testing.T) {
	for _, c := range []struct {
		bitsPerSecond, all float64
		buffer, most, want int
	}{
		{0, 0, 6 << 20, maxGatherBytes, 1},
		{1e9, 1e9, 6 << 20, maxGatherBytes, 1},                    // 62.5 kB in 500 µs
		{8e9, 8e9, 6 << 20, maxGatherBytes, 500_000},              // bounded by time
		{40e9, 40e9, 6 << 20, maxGatherBytes, 6 << 20 / 8},        // bounded by the buffer
		{40e9, 40e9, 32 << 20, maxGatherBytes, 1 << 20},           // bounded outright
		{40e9, 40e9, 131072, maxGatherBytes, 1},                   // too small a buffer
		{40e9, 40e9, 512 << 10, maxGatherBytes, minGatherBytes},   // just large enough
		{1e9, 40e9, 32 << 20, maxSharedGatherBytes, 384 << 10},    // one of forty: in bursts at the rate of all
		{100e6, 40e9, 32 << 20, maxSharedGatherBytes, 250_000},    // one of four hundred: not longer than 20 ms
		{1e6, 40e9, 32 << 20, maxSharedGatherBytes, 1},            // a slow one among fast ones
		{100e6, 400e6, 32 << 20, maxSharedGatherBytes, 1},         // slow altogether
		{1e9, 40e9, 1 << 20, maxSharedGatherBytes, (1 << 20) / 8}, // as above, the buffer
	} {
		if got := gatherBytes(c.bitsPerSecond/8, c.all/8, c.buffer, c.most); got != c.want {
			t.Errorf("%.0f of %.0f bit/s with %d bytes: %d, want %d", c.bitsPerSecond, c.all, c.buffer, got, c.want)
		}
	}
}

func TestProbe(t *testing.T) {
	s := ProbeStream()
	if err := s.sends(s.Fastest); err != nil {
		t.Errorf("the fastest way is one that does not work: %s: %v", s.Fastest, err)
	}
	for name, err := range map[string]error{"sendfile": s.Sendfile, "splice": s.Splice, "truncate": s.Truncate} {
		if err != nil && !errors.Is(err, sys.ErrNotSupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, o := range []StreamOptions{{Send: "carrier pigeon"}, {Receive: "carrier pigeon"}} {
		near, far := connPair(t, ConnOptions{})
		if o.Send != "" {
			if _, err := NewStreamSender(&Phase{}, near, o); !errors.Is(err, sys.ErrNotSupported) {
				t.Errorf("an unknown way to send: %v", err)
			}
			continue
		}
		if _, err := NewStreamReceiver(&Phase{}, far, o); !errors.Is(err, sys.ErrNotSupported) {
			t.Errorf("an unknown way to receive: %v", err)
		}
	}
}
