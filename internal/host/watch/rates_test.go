package watch

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/linerate/linerate/internal/host"
)

// TestInterruptRates: by interrupt and CPU, through zero of 32 bits, with a CPU that begins to
// serve, and none of what was not there both times.
func TestInterruptRates(t *testing.T) {
	s := &host.Snapshot{
		Interfaces: []host.Interface{
			{Name: "eth0", Interrupts: []host.Interrupt{{Number: 40},
				{Number: 41, Counts: []host.CPUCount{{CPU: 0, Total: 7}}}, {Number: 42}}}}}
	irq := func(number int, pairs ...uint64) host.Interrupt {
		i := host.Interrupt{Number: number}
		for n := 0; n < len(pairs); n += 2 {
			i.Counts = append(i.Counts, host.CPUCount{CPU: int(pairs[n]), Total: pairs[n+1]})
		}
		return i
	}
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	reading := func(seconds int, all ...host.Interrupt) interrupts {
		return interrupts{at.Add(time.Duration(seconds) * time.Second),
			[]host.CardInterrupts{{Interface: "eth0", Interrupts: all}}}
	}
	interruptRates(s, reading(0, irq(40, 0, 1<<32-10, 1, 100), irq(41, 0, 7)),
		reading(2, irq(40, 0, 10, 1, 100, 5, 1000), irq(42, 0, 1)))
	rate := func(r float64) *float64 { return &r }
	want := []host.Interrupt{
		{Number: 40, PerSec: rate(510), Counts: []host.CPUCount{{CPU: 0, Total: 10, PerSec: rate(10)},
			{CPU: 1, Total: 100, PerSec: rate(0)}, {CPU: 5, Total: 1000, PerSec: rate(500)}}},
		{Number: 41, Counts: []host.CPUCount{{CPU: 0, Total: 7}}},
		{Number: 42},
	}
	if diff := cmp.Diff(want, s.Interfaces[0].Interrupts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	interruptRates(s, reading(2), reading(2)) // A clock that stood still divides nothing.
}

func TestInterruptsRefuses(t *testing.T) {
	s := &host.Snapshot{}
	if err := Interrupts(t.Context(), host.Root{FS: fstest.MapFS{"proc": {}}}, s, time.Nanosecond); !errors.Is(err,
		errors.ErrUnsupported) {
		t.Errorf("an archive: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Interrupts(ctx, host.Root{}, s, time.Hour); err == nil {
		t.Error("an hour has passed")
	}
}
