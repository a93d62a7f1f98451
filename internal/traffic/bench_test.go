package traffic

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/stats"
	"github.com/linerate/linerate/internal/sys"
)

// The benchmarks put the engine's loops and plain goroutines over package net side by side in one run, in the order A B B A, so that
// what else the machine does hits both. The ratio is the result; the absolute numbers belong to the machine.

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

// engineSlice runs the two roles over one connection for d and returns bytes received or transactions per second.
func engineSlice(tb testing.TB, spec Spec, near, far role, d time.Duration) float64 {
	return bufferSlice(tb, spec, near, far, 0, d)
}

// bufferSlice is engineSlice with buffers of another size; 0 is the engine's own.
func bufferSlice(tb testing.TB, spec Spec, near, far role, bytes int, d time.Duration) float64 {
	a, b := socketPair(tb)
	p := &phase{}
	var workers []*worker
	for conn, r := range map[*net.TCPConn]role{a: near, b: far} {
		c, err := adopt(conn, spec.Test == RR, "")
		if err != nil {
			tb.Fatal(err)
		}
		w := newWorker(r, c, spec, p)
		switch {
		case bytes > 0 && r == sender:
			w.out = pattern(bytes)
		case bytes > 0 && r == receiver:
			w.in = make([]byte, bytes)
		}
		workers = append(workers, w)
	}
	cpus, _ := sys.AllowedCPUs() // none: unpinned
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() {
			if err := w.run(cpuOf(cpus, w.role, 0)); err != nil {
				tb.Error(err)
			}
		})
	}
	start := time.Now()
	time.Sleep(d)
	var n int64
	for _, w := range workers {
		switch w.role {
		case receiver:
			n = w.bytes.Load()
		case requester:
			n = w.transactions.Load()
		}
	}
	elapsed := time.Since(start).Seconds()
	p.set(stopped)
	closeWakeAll(workers)
	wg.Wait()
	closeWorkers(workers)
	return float64(n) / elapsed
}

func closeWakeAll(workers []*worker) {
	for _, w := range workers {
		w.conn.wake()
	}
}

// netStream is bulk TCP as a plain Go program does it.
func netStream(tb testing.TB, d time.Duration) float64 {
	a, b := socketPair(tb)
	defer a.Close()
	go func() {
		buf := pattern(sendBytes)
		for {
			if _, err := a.Write(buf); err != nil {
				return
			}
		}
	}()
	defer b.Close()
	buf := make([]byte, receiveBytes)
	start := time.Now()
	n := 0
	for time.Since(start) < d {
		m, err := b.Read(buf)
		n += m
		if err != nil {
			tb.Fatal(err)
		}
	}
	return float64(n) / time.Since(start).Seconds()
}

// netRR is request/response as a plain Go program does it.
func netRR(tb testing.TB, d time.Duration) float64 {
	a, b := socketPair(tb)
	defer a.Close()
	go func() {
		defer b.Close()
		_, _ = io.Copy(echoByByte{b}, b) // ends with the connection
	}()
	buf := make([]byte, 1)
	start := time.Now()
	n := 0
	for time.Since(start) < d {
		if _, err := a.Write(buf); err != nil {
			tb.Fatal(err)
		}
		if _, err := a.Read(buf); err != nil {
			tb.Fatal(err)
		}
		n++
	}
	return float64(n) / time.Since(start).Seconds()
}

// echoByByte keeps io.Copy from splicing in the kernel, which no server that looks at its requests could do.
type echoByByte struct{ w io.Writer }

func (e echoByByte) Write(p []byte) (int, error) { return e.w.Write(p) }

// compare runs slices of both kinds in turn and reports medians and the median of the ratios.
func compare(b *testing.B, unit string, scale float64, engine, plain func() float64) {
	var e, p, ratios []float64
	for b.Loop() {
		e1, p1, p2, e2 := engine(), plain(), plain(), engine()
		e, p = append(e, e1, e2), append(p, p1, p2)
		ratios = append(ratios, (e1+e2)/(p1+p2))
	}
	b.ReportMetric(stats.Median(e)/scale, "engine-"+unit)
	b.ReportMetric(stats.Median(p)/scale, "net-"+unit)
	b.ReportMetric(stats.Median(ratios), "ratio")
	b.ReportMetric(0, "ns/op")
}

const slice = 250 * time.Millisecond

func BenchmarkStream(b *testing.B) {
	spec := Spec{Test: Stream}
	compare(b, "MB/s", 1e6,
		func() float64 { return engineSlice(b, spec, sender, receiver, slice) },
		func() float64 { return netStream(b, slice) })
}

func BenchmarkRequestResponse(b *testing.B) {
	spec := Spec{Test: RR, RequestBytes: 1, ResponseBytes: 1}
	compare(b, "trans/s", 1,
		func() float64 { return engineSlice(b, spec, requester, responder, slice) },
		func() float64 { return netRR(b, slice) })
}

// BenchmarkStreamBuffer finds the size of one system call that carries most.
func BenchmarkStreamBuffer(b *testing.B) {
	for _, kib := range []int{32, 64, 128, 256, 512} {
		b.Run(fmt.Sprintf("KiB=%d", kib), func(b *testing.B) {
			var rates []float64
			for b.Loop() {
				rates = append(rates, bufferSlice(b, Spec{Test: Stream}, sender, receiver, kib<<10, slice))
			}
			b.ReportMetric(stats.Median(rates)/1e6, "MB/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}
