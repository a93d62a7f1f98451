package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/drops"
)

func TestSpan(t *testing.T) {
	type reading struct {
		counters   *host.Counters
		interrupts interrupts
	}
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	count := func(pairs ...uint64) []host.CPUCount {
		var counts []host.CPUCount
		for i := 0; i < len(pairs); i += 2 {
			counts = append(counts, host.CPUCount{CPU: int(pairs[i]), Total: pairs[i+1]})
		}
		return counts
	}
	before := reading{
		counters: &host.Counters{Time: at,
			Values: map[string]uint64{"softirq.NET_RX.1": 100, "softnet.1.processed": 1000, "softnet.1.dropped": 7},
			CPUs:   []host.CPUTimes{{CPU: -1, SoftIRQ: 5}, {CPU: 1, SoftIRQ: 5}}},
		interrupts: interrupts{at, []host.CardInterrupts{
			{Interface: "eth0", Interrupts: []host.Interrupt{
				{Number: 40, Name: "eth0-rx-0", Counts: count(0, 10, 1, 1<<32-5)},
				{Number: 41, Name: "eth0-rx-1", Counts: count(0, 9)}, {Number: 42, Name: "old", Counts: count(0, 9)},
			}},
			{Interface: "eth0_rep",
				Interrupts: []host.Interrupt{{Number: 40, Name: "eth0-rx-0", Counts: count(0, 10, 1, 1<<32-5)}}},
		}},
	}
	after := reading{
		counters: &host.Counters{Time: at.Add(2 * time.Second),
			Values: map[string]uint64{"softirq.NET_RX.1": 160, "softnet.1.processed": 1900, "softnet.1.dropped": 9,
				"ethtool.eth0.rx_queue_0_drops": 4}, Drivers: map[string]string{"eth0": "igb"},
			CPUs: []host.CPUTimes{{CPU: -1, SoftIRQ: 6}, {CPU: 1, SoftIRQ: 6}}},
		interrupts: interrupts{at.Add(2 * time.Second), []host.CardInterrupts{
			{Interface: "eth0", Interrupts: []host.Interrupt{
				{Number: 40, Name: "eth0-rx-0", Counts: count(0, 10, 1, 5, 7, 30)},
				{Number: 41, Name: "eth0-rx-1", Counts: count(0, 9)}, {Number: 42, Name: "new", Counts: count(0, 99)},
			}},
			{Interface: "eth0_rep",
				Interrupts: []host.Interrupt{{Number: 40, Name: "eth0-rx-0", Counts: count(0, 10, 1, 5, 7, 30)}}},
		}},
	}
	got := span(before.counters, after.counters, before.interrupts, after.interrupts)
	if got.Seconds != 2 || got.Counters.Values["softnet.1.processed"] != 900 {
		t.Errorf("%v s, %v", got.Seconds, got.Counters.Values)
	}
	// The driver's own counters are understood, because the reading says whose they are.
	if d := cmp.Diff([]drops.Drop{{Place: "ethtool.eth0.rx_queue_0_drops", Total: 4, Stage: drops.Ring}},
		got.Drops); d != "" {
		t.Errorf("drops (-want +got):\n%s", d)
	}
	wantCPUs := []CPU{{CPUTimes: host.CPUTimes{CPU: 1, SoftIRQ: 1}, NetRx: 60, Packets: 900, Dropped: 2,
		Interrupts: 10}}
	if d := cmp.Diff(wantCPUs, got.CPUs); d != "" {
		t.Errorf("processors (-want +got):\n%s", d)
	}
	// Interrupts that did not occur are left out, and so are those that got another handler
	// meanwhile.
	rate := func(v float64) *float64 { return &v }
	interrupt := func(card string) CardInterrupt {
		return CardInterrupt{Interface: card, Queue: "rx-0", Total: 40, Interrupt: host.Interrupt{
			Number: 40, Name: "eth0-rx-0", PerSec: rate(20),
			Counts: []host.CPUCount{{CPU: 1, Total: 10, PerSec: rate(5)}, {CPU: 7, Total: 30, PerSec: rate(15)}},
		}}
	}
	if d := cmp.Diff([]CardInterrupt{interrupt("eth0"), interrupt("eth0_rep")}, got.Interrupts); d != "" {
		t.Errorf("interrupts (-want +got):\n%s", d)
	}
	// Two readings of one moment have no rates, and no NaN.
	same := span(after.counters, after.counters, after.interrupts, after.interrupts)
	if d := cmp.Diff([]CardInterrupt(nil), same.Interrupts, cmpopts.EquateEmpty()); d != "" || same.Seconds != 0 {
		t.Errorf("%v s, %s", same.Seconds, d)
	}
}

func TestHost(t *testing.T) {
	if _, err := Host(t.Context(), host.Root{FS: fstest.MapFS{"proc/stat": {Data: []byte("cpu 1 2 3 4\n")}}},
		Options{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an archive: %v", err)
	}
	if runtime.GOOS != "linux" {
		if _, err := Host(t.Context(), host.Root{}, Options{}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("on %s: %v", runtime.GOOS, err)
		}
		return
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Host(ended, host.Root{}, Options{Duration: MaxDuration}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	s, err := Host(t.Context(), host.Root{}, Options{Duration: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if s.Seconds <= 0 || len(s.CPUs) == 0 || s.CPUs[0].CPU < 0 || s.Drops == nil || s.Sockets == nil {
		t.Errorf("%v s, processors %+v, drops %v, sockets %v, warnings %q", s.Seconds, s.CPUs, s.Drops,
			s.Sockets, s.Warnings)
	}
	if b, err := json.Marshal(s); err != nil || bytes.Contains(b, []byte("null")) {
		t.Errorf("as a document: %v: %s", err, b)
	}
	if s, err := Host(t.Context(), host.Root{}, Options{Duration: time.Millisecond, Sockets: -1}); err != nil ||
		s.Sockets != nil {
		t.Errorf("sockets that were not requested: %+v, %v", s.Sockets, err)
	}
}
