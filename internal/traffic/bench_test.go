package traffic

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/stats"
	"github.com/linerate/linerate/internal/sys"
)

// The benchmarks put the engine's loops and plain goroutines over package net side by side in one run, in the order A B B A, so that
// what else the machine does hits both. The ratio is the result; the absolute numbers belong to the machine. The far ends run in a
// process of their own: inside one process the Go scheduler switches between both ends without the kernel, which no two hosts can do.

// benchFar is the environment variable that makes the test binary a far end. TestMain looks at it.
const benchFar = "LINERATE_BENCH_FAR"

// slice is how long one loop runs at a time.
const slice = 250 * time.Millisecond

// The first byte on a connection says what the far end is to do with the rest.
const (
	engineSink = 's'
	engineEcho = 'e'
	netSink    = 'S'
	netEcho    = 'E'
)

// playBenchFar is the far process: it prints its address and serves until its standard input ends, which it does with its parent.
func playBenchFar() {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println(l.Addr())
	go func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			go serveBench(c)
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end as well
}

func serveBench(c *net.TCPConn) {
	defer c.Close()
	var kind [1]byte
	if _, err := io.ReadFull(c, kind[:]); err != nil {
		return
	}
	buf := make([]byte, receiveBytes)
	switch kind[0] {
	case engineSink:
		runBenchWorker(c, Spec{Test: Stream}, receiver)
	case engineEcho:
		runBenchWorker(c, Spec{Test: RR, RequestBytes: 1, ResponseBytes: 1}, responder)
	case netSink:
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
		}
	case netEcho:
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			if _, err := c.Write(buf[:n]); err != nil {
				return
			}
		}
	}
}

// runBenchWorker runs one engine loop until the other end closes.
func runBenchWorker(c *net.TCPConn, spec Spec, r role) {
	conn, err := adopt(c, spec.Test == RR, "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer conn.close()
	cpus, _ := sys.AllowedCPUs() // none: unpinned
	_ = newWorker(r, conn, spec, &phase{}).run(cpuOf(cpus, r, 0))
}

// startFar starts the far process and gives its address.
func startFar(b *testing.B) string {
	b.Helper()
	far := exec.CommandContext(b.Context(), os.Args[0])
	far.Env = append(os.Environ(), benchFar+"=1")
	far.Stderr = os.Stderr
	in, err := far.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := far.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := far.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = far.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(addr)
}

func dialBench(b *testing.B, addr string, kind byte) *net.TCPConn {
	b.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.Write([]byte{kind}); err != nil {
		b.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// engineSlice runs one engine loop for a slice and gives bytes sent or transactions per second.
func engineSlice(b *testing.B, addr string, spec Spec, r role, kind byte, bufferBytes int) float64 {
	conn, err := adopt(dialBench(b, addr, kind), spec.Test == RR, "")
	if err != nil {
		b.Fatal(err)
	}
	defer conn.close()
	p := &phase{}
	w := newWorker(r, conn, spec, p)
	if bufferBytes > 0 {
		w.out = pattern(bufferBytes)
	}
	cpus, _ := sys.AllowedCPUs() // none: unpinned
	start := time.Now()
	stop := time.AfterFunc(slice, func() { p.set(stopped) })
	defer stop.Stop()
	if err := w.run(cpuOf(cpus, r, 0)); err != nil {
		b.Fatal(err)
	}
	return float64(w.bytes.Load()+w.transactions.Load()) / time.Since(start).Seconds()
}

// netSlice is the same loop as a plain Go program has it.
func netSlice(b *testing.B, addr string, kind byte) float64 {
	c := dialBench(b, addr, kind)
	defer c.Close()
	buf := pattern(1)
	if kind == netSink {
		buf = pattern(sendBytes)
	}
	n := 0
	start := time.Now()
	for time.Since(start) < slice {
		m, err := c.Write(buf)
		if err == nil && kind == netEcho {
			_, err = io.ReadFull(c, buf)
		}
		if err != nil {
			b.Fatal(err)
		}
		n += m
	}
	return float64(n) / time.Since(start).Seconds()
}

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

func BenchmarkStream(b *testing.B) {
	addr := startFar(b)
	compare(b, "MB/s", 1e6,
		func() float64 { return engineSlice(b, addr, Spec{Test: Stream}, sender, engineSink, 0) },
		func() float64 { return netSlice(b, addr, netSink) })
}

func BenchmarkRequestResponse(b *testing.B) {
	addr := startFar(b)
	spec := Spec{Test: RR, RequestBytes: 1, ResponseBytes: 1}
	compare(b, "trans/s", 1,
		func() float64 { return engineSlice(b, addr, spec, requester, engineEcho, 0) },
		func() float64 { return netSlice(b, addr, netEcho) })
}

// BenchmarkStreamBuffer finds the size of one write that carries most.
func BenchmarkStreamBuffer(b *testing.B) {
	addr := startFar(b)
	for _, kib := range []int{16, 32, 64, 128, 256, 512} {
		b.Run(fmt.Sprintf("KiB=%d", kib), func(b *testing.B) {
			var rates []float64
			for b.Loop() {
				rates = append(rates, engineSlice(b, addr, Spec{Test: Stream}, sender, engineSink, kib<<10))
			}
			b.ReportMetric(stats.Median(rates)/1e6, "MB/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}
