package record

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/kernel/perf"
	"github.com/linerate/linerate/internal/profile"
)

// machine simulates the rings of a machine: samples of stacks that are as unequal in frequency as
// real ones, in the kernel's own records.
type machine struct {
	cpus   int
	rate   int // samples per second and CPU
	stacks [][]uint64
	zipf   *rand.Zipf
	random *rand.Rand
}

const (
	simulatedFunctions = 4000
	simulatedStacks    = 20_000
	simulatedDepth     = 18 // the mean of TCP over veth
	functionBytes      = 0x100
	firstFunction      = uint64(0xffffffff81000000)
)

func newMachine(cpus, rate int) *machine {
	r := rand.New(rand.NewPCG(7, 7))
	m := &machine{cpus: cpus, rate: rate, random: r, zipf: rand.NewZipf(r, 1.1, 1, simulatedStacks-1)}
	for range simulatedStacks {
		chain := make([]uint64, simulatedDepth)
		for i := range chain {
			chain[i] = firstFunction + uint64(r.IntN(simulatedFunctions))*functionBytes + uint64(r.IntN(functionBytes))
		}
		m.stacks = append(m.stacks, chain)
	}
	return m
}

func (m *machine) functions(t testing.TB) *functions {
	var list strings.Builder
	for i := range simulatedFunctions {
		fmt.Fprintf(&list, "%016x T function_%d\n", firstFunction+uint64(i)*functionBytes, i)
	}
	s, err := profile.ReadSymbols(strings.NewReader(list.String()))
	if err != nil {
		t.Fatal(err)
	}
	return &functions{listed: s, close: func() {}}
}

// ring returns the records of one CPU for a time, from a moment on, in nanoseconds.
func (m *machine) ring(cpu int, from, length uint64) []byte {
	var b []byte
	word := binary.NativeEndian
	for at := from; at < from+length; at += uint64(time.Second) / uint64(m.rate) {
		chain := m.stacks[m.zipf.Uint64()]
		begin := len(b)
		b = word.AppendUint32(b, 9)                                  // PERF_RECORD_SAMPLE
		b = word.AppendUint16(b, 1)                                  // kernel
		b = word.AppendUint16(b, uint16(8+48+8*(len(chain)+1)))      // size
		b = word.AppendUint64(b, chain[0])                           // ip
		b = word.AppendUint64(b, 0)                                  // pid, tid: idle
		b = word.AppendUint64(b, at)                                 // time
		b = word.AppendUint64(b, uint64(cpu))                        // cpu
		b = word.AppendUint64(b, uint64(time.Second)/uint64(m.rate)) // period
		b = word.AppendUint64(b, uint64(len(chain)+1))               // chain
		b = word.AppendUint64(b, ^uint64(0)-128+1)                   // PERF_CONTEXT_KERNEL
		for _, ip := range chain {
			b = word.AppendUint64(b, ip)
		}
		if size := int(word.Uint16(b[begin+6:])); size != len(b)-begin {
			panic("a record of another size")
		}
	}
	return b
}

// record feeds a time of the machine into a recording, ring by ring, as [recording.run] does. Each
// is called after each drain.
func (m *machine) record(t testing.TB, d time.Duration, each func(drain, of int)) *profile.Profile {
	r := &recording{builder: profile.NewBuilder("cpu-clock", true), names: make(map[int]string),
		cache: make(map[uint64]place), kernel: m.functions(t)}
	visit := perf.Visitor{Sample: r.sample, Symbol: r.loaded, Lost: func(n uint64) { r.late += n }}
	slices := slicesOf(d)
	drains := int(d / drainEvery)
	for i := range drains {
		for len(r.bounds) < slices && uint64(i)*uint64(drainEvery) >= uint64(len(r.bounds)+1)*uint64(d)/uint64(slices) {
			r.bounds = append(r.bounds, uint64(i)*uint64(drainEvery))
		}
		for cpu := range m.cpus {
			if err := perf.Decode(m.ring(cpu, uint64(i)*uint64(drainEvery), uint64(drainEvery)), visit); err != nil {
				t.Fatal(err)
			}
		}
		if each != nil {
			each(i, drains)
		}
	}
	return r.builder.Finish(profile.Window{Slices: slices, SampleSeconds: 1 / float64(m.rate)})
}

// TestManyCPUs records ten seconds of a machine with 64 CPUs: every sample is billed once, and the
// rings stay within their memory.
func TestManyCPUs(t *testing.T) {
	m := newMachine(64, 199)
	p := m.record(t, 10*time.Second, nil)
	// The last sample of a drain ends in it: 20 of each 100 ms.
	if want := uint64(64 * 100 * 20); p.Samples != want || p.Busy != want || p.Unresolved > 0 || p.StacksCut > 0 {
		t.Errorf("%d samples, %d busy, %d without a name, %d cut, want %d", p.Samples, p.Busy, p.Unresolved, p.StacksCut,
			want)
	}
	sum := uint64(0)
	for _, f := range p.Functions {
		sum += f.Samples
	}
	if sum != p.Busy || len(p.Stacks) < 1000 {
		t.Errorf("functions have %d of %d samples, in %d stacks", sum, p.Busy, len(p.Stacks))
	}
}

// TestHour records an hour of a machine with two CPUs: after the first minutes, which bring the
// stacks, memory does not grow with time.
func TestHour(t *testing.T) {
	testenv.Need(t, testenv.Long)
	heap := func() float64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return float64(s.HeapAlloc) / (1 << 20)
	}
	var early float64
	m := newMachine(2, 199)
	p := m.record(t, time.Hour, func(drain, of int) {
		switch drain {
		case of / 6:
			early = heap()
		case of - 1:
			late := heap()
			t.Logf("%.1f MiB after ten minutes, %.1f MiB after an hour", early, late)
			if late > early+32 || late > 96 {
				t.Errorf("memory grows with time: %.1f MiB after ten minutes, %.1f MiB after an hour", early, late)
			}
		}
	})
	if p.Samples < 1_400_000 || p.Slices != mostSlices {
		t.Errorf("%d samples in %d slices", p.Samples, p.Slices)
	}
}

// BenchmarkSample is what the program itself takes for one sample, beside the interrupt.
func BenchmarkSample(b *testing.B) {
	m := newMachine(1, 1000)
	r := &recording{builder: profile.NewBuilder("cpu-clock", true), names: make(map[int]string),
		cache: make(map[uint64]place), kernel: m.functions(b)}
	ring := m.ring(0, 0, uint64(time.Second))
	b.ResetTimer()
	for b.Loop() {
		if err := perf.Decode(ring, perf.Visitor{Sample: r.sample}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/sample")
}
