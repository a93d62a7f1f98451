package perf_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/linerate/linerate/internal/kernel/perf"
)

// record builds one record of a ring.
func record(kind uint32, misc uint16, body ...uint64) []byte {
	b := binary.NativeEndian.AppendUint32(nil, kind)
	b = binary.NativeEndian.AppendUint16(b, misc)
	b = binary.NativeEndian.AppendUint16(b, uint16(8+8*len(body)))
	for _, w := range body {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	return b
}

// sampleBody has the fields in the kernel's order: ip, pid and tid, time, cpu, period, chain.
func sampleBody(chain ...uint64) []uint64 {
	ids := binary.NativeEndian.Uint64(slices.Concat(binary.NativeEndian.AppendUint32(nil, 42),
		binary.NativeEndian.AppendUint32(nil, 43)))
	cpu := binary.NativeEndian.Uint64(slices.Concat(binary.NativeEndian.AppendUint32(nil, 3), make([]byte, 4)))
	return append([]uint64{0xffffffff81000010, ids, 1e9, cpu, 1_003_009, uint64(len(chain))}, chain...)
}

func TestDecode(t *testing.T) {
	const kernel, user = ^uint64(0) - 127, ^uint64(0) - 511
	name := binary.NativeEndian.Uint64([]byte("bpf_pro\x00"))
	length := binary.NativeEndian.Uint64(slices.Concat(binary.NativeEndian.AppendUint32(nil, 0x80), make([]byte, 4)))
	ring := slices.Concat(
		record(9, 1, sampleBody(kernel, 0xffffffff81000010, 0xffffffff81000200, user, 0x400000)...),
		record(2, 0, 7, 11),
		record(5, 0, 1, 2, 3),
		record(17, 0, 0xffffffffc0000000, length, name),
		record(1234, 0, 1, 2), // of a later kernel
		record(9, 2, sampleBody()...),
	)
	var samples []perf.Sample
	var symbols []perf.Symbol
	lost, stopped := uint64(0), 0
	err := perf.Decode(ring, perf.Visitor{
		Sample: func(s perf.Sample) { s.Chain = slices.Clone(s.Chain); samples = append(samples, s) },
		Symbol: func(s perf.Symbol) { symbols = append(symbols, s) },
		Lost:   func(n uint64) { lost += n }, Throttle: func() { stopped++ },
	})
	if err != nil || len(samples) != 2 || lost != 11 || stopped != 1 {
		t.Fatalf("%v, %d samples, %d lost, %d throttled", err, len(samples), lost, stopped)
	}
	s := samples[0]
	if s.CPU != 3 || s.PID != 42 || s.TID != 43 || s.Mode != perf.ModeKernel || s.Nanos != 1e9 || s.Period != 1_003_009 ||
		!slices.Equal(s.Chain, []uint64{0xffffffff81000010, 0xffffffff81000200}) {
		t.Errorf("%+v", s)
	}
	if samples[1].Mode != perf.ModeUser || len(samples[1].Chain) != 0 {
		t.Errorf("%+v", samples[1])
	}
	if want := []perf.Symbol{{Address: 0xffffffffc0000000, Length: 0x80, Name: "bpf_pro"}}; !slices.Equal(symbols, want) {
		t.Errorf("%+v", symbols)
	}
}

// TestDecodeRefuses checks that impossible lengths are errors, and that whole records before them
// count.
func TestDecodeRefuses(t *testing.T) {
	good := record(9, 1, sampleBody()...)
	long := record(9, 1, sampleBody()...)
	binary.NativeEndian.PutUint64(long[8+40:], 1<<60) // a chain that does not fit
	for name, bad := range map[string][]byte{
		"half a header": {1, 2, 3}, "no length": record(0, 0)[:6], "too long": record(9, 1, 1)[:12],
		"zero": make([]byte, 16), "short sample": record(9, 1, 1, 2), "chain": long, "lost": record(2, 0, 1),
	} {
		n := 0
		err := perf.Decode(slices.Concat(good, bad), perf.Visitor{Sample: func(perf.Sample) { n++ }})
		if !errors.Is(err, perf.ErrRecord) || n != 1 {
			t.Errorf("%s: %v after %d samples", name, err, n)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(record(9, 1, sampleBody(^uint64(0)-127, 1, 2)...))
	f.Add(record(17, 0, 1, 2, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = perf.Decode(b, perf.Visitor{Sample: func(s perf.Sample) {
			if len(s.Chain) > len(b)/8 {
				t.Errorf("a chain of %d in %d bytes", len(s.Chain), len(b))
			}
		}, Symbol: func(perf.Symbol) {}, Lost: func(uint64) {}, Throttle: func() {}})
	})
}

// TestOpenRefuses checks what would hang a machine or watch nothing, before the kernel is asked.
func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		o    perf.Options
		want error
	}{
		"frequency as period": {perf.Options{Event: perf.CPUClock(), Period: 997, CPUs: []int{0}}, perf.ErrPeriod},
		"too fast": {perf.Options{Event: perf.CPUClock(), Period: uint64(100 * time.Microsecond), CPUs: []int{0}},
			perf.ErrPeriod},
		"no period": {perf.Options{Event: perf.Events()[0], CPUs: []int{0}}, perf.ErrPeriod},
		"no cpu":    {perf.Options{Event: perf.CPUClock(), Period: 1e6}, nil},
	} {
		s, err := perf.Open(c.o)
		if err == nil {
			s.Close()
			t.Errorf("%s: opened", name)
			continue
		}
		// Other systems refuse everything.
		if c.want != nil && !errors.Is(err, c.want) && !errors.Is(err, perf.ErrNotSupported) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
