package host

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/procfs"
)

// TestInterruptRates: by interrupt and CPU, through zero of 32 bits, with a CPU that begins to serve, and none of what was not there both times.
func TestInterruptRates(t *testing.T) {
	s := &Snapshot{Interfaces: []Interface{{Name: "eth0", Interrupts: []Interrupt{{Number: 40}, {Number: 41, Counts: []CPUCount{{CPU: 0, Total: 7}}}, {Number: 42}}}}}
	counts := func(pairs ...uint64) procfs.Interrupt {
		var i procfs.Interrupt
		for n := 0; n < len(pairs); n += 2 {
			i.Counts = append(i.Counts, procfs.CPUCount{CPU: int(pairs[n]), Count: pairs[n+1]})
		}
		return i
	}
	interruptRates(s, map[int]procfs.Interrupt{40: counts(0, 1<<32-10, 1, 100), 41: counts(0, 7)}, map[int]procfs.Interrupt{40: counts(0, 10, 1, 100, 5, 1000), 42: counts(0, 1)}, 2)
	rate := func(r float64) *float64 { return &r }
	want := []Interrupt{
		{Number: 40, PerSec: rate(510), Counts: []CPUCount{{CPU: 0, Total: 10, PerSec: rate(10)}, {CPU: 1, Total: 100, PerSec: rate(0)}, {CPU: 5, Total: 1000, PerSec: rate(500)}}},
		{Number: 41, Counts: []CPUCount{{CPU: 0, Total: 7}}},
		{Number: 42},
	}
	if diff := cmp.Diff(want, s.Interfaces[0].Interrupts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	interruptRates(s, nil, nil, 0) // A clock that stood still divides nothing.
}

func TestWatchRefuses(t *testing.T) {
	s := &Snapshot{}
	if err := (Root{FS: fstest.MapFS{"proc": {}}}).WatchInterrupts(t.Context(), s, time.Nanosecond); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an archive: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (Root{}).WatchInterrupts(ctx, s, time.Hour); err == nil {
		t.Error("an hour has passed")
	}
}
