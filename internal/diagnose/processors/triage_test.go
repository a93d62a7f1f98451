package processors

import (
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/watch"
)

// interrupted is a host of four CPUs with the given load on CPU 0 and one interrupt of eth0 on it.
func interrupted(user, softirq, perSec, frames, size float64, change func(*host.Interface)) *evidence.Span {
	s := span(map[string]uint64{
		"nic.eth0.rx_packets": uint64(3 * perSec * frames), "nic.eth0.rx_bytes": uint64(3 * perSec * frames * size),
	}, cpu(0, user, 0.02, softirq, 0), cpu(1, 0.02, 0.02, 0, 0), cpu(2, 0.01, 0.01, 0, 0), cpu(3, 0, 0.01, 0, 0))
	card := host.Interface{Name: "eth0", Driver: "igb", MTUBytes: 1500, Coalesce: map[string]uint32{"rx-usecs": 3},
		Queues: []host.Queue{{Name: "rx-0", RPSCPUs: "0"}}}
	if change != nil {
		change(&card)
	}
	s.Host.Interfaces = []host.Interface{card}
	s.Interrupts = []watch.CardInterrupt{{Interface: "eth0", Total: uint64(3 * perSec),
		Interrupt: host.Interrupt{Number: 45, Name: "eth0-rx-0",
			Counts: []host.CPUCount{{CPU: 0, Total: uint64(3 * perSec)}}}}}
	s.PerCPU = []watch.CPU{{CPUTimes: host.CPUTimes{CPU: 0}, Interrupts: uint64(3 * perSec),
		Packets: uint64(3 * perSec * frames)}}
	return s
}

// TestTriage checks the answers for typical hosts.
func TestTriage(t *testing.T) {
	for _, c := range []struct {
		name    string
		span    *evidence.Span
		matters bool
		class   string
		helps   string // ways out that help, in order
		knob    string // knob of the first of them
	}{
		{"a quiet host", interrupted(0.01, 0.01, 50, 2, 100, nil), false, "idle", "", ""},
		{"a storm of small interrupts", interrupted(0, 0.95, 80_000, 1.2, 200, nil), true, "packets",
			"coalescing steering", "ethtool:eth0/coalesce.rx-usecs"},
		{"the same on a card without the call",
			interrupted(0, 0.95, 80_000, 1.2, 200, func(i *host.Interface) { i.Driver, i.Coalesce = "e1000", nil }),
			true, "packets",
			"coalescing steering", "module:e1000/InterruptThrottleRate"},
		{"full frames, well gathered", interrupted(0, 0.95, 8000, 40, 1500, nil), true, "packets", "steering mtu",
			"queue:eth0/rx-0/rps_cpus"},
		{"the same on a card with idle queues",
			interrupted(0, 0.95, 8000, 40, 1500,
				func(i *host.Interface) { i.Channels = &host.Channels{Combined: 1, MaxCombined: 8} }), true, "packets",
			"steering mtu", "ethtool:eth0/channels.combined"},
		{"frames handed up one by one",
			interrupted(0, 0.95, 8000, 40, 1500,
				func(i *host.Interface) { i.Features = map[string]host.Feature{"rx-gro": {}} }), true, "packets",
			"steering offloads", "queue:eth0/rx-0/rps_cpus"},
		{"a program", interrupted(0.97, 0.01, 500, 10, 1000, nil), false, "programs", "programs", ""},
		{"a program that gives way", func() *evidence.Span {
			s := interrupted(0.97, 0.01, 500, 10, 1000, nil)
			s.CPUs[0] = niced(s.CPUs[0])
			return s
		}(), false, "idle", "", ""},
		{"half busy", interrupted(0, 0.60, 8000, 40, 300, nil), false, "packets", "steering",
			"queue:eth0/rx-0/rps_cpus"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Examine(c.span)
			if got.Matters != c.matters || got.CPUs[0].Class != c.class {
				t.Errorf("matters %v with %s, want %v with %s: %s", got.Matters, got.CPUs[0].Class, c.matters, c.class,
					got.Verdict)
			}
			var helps []string
			var first string
			for _, w := range got.WaysOut {
				if w.Why == "" || w.Helps && !strings.HasSuffix(w.Why, ".") {
					t.Errorf("%s: why %q", w.Way, w.Why)
				}
				if w.Helps {
					helps = append(helps, w.Way)
					if len(helps) == 1 {
						first = string(w.Knob)
					}
				}
			}
			if s := strings.Join(helps, " "); s != c.helps || first != c.knob {
				t.Errorf("helps %q by %q, want %q by %q: %+v", s, first, c.helps, c.knob, got.WaysOut)
			}
			if len(got.Steps) != 4 {
				t.Errorf("steps %q", got.Steps)
			}
		})
	}
}

// TestTriageOfNothing checks the answer for a kernel that reports nothing.
func TestTriageOfNothing(t *testing.T) {
	for _, s := range []*evidence.Span{{}, {Host: &host.Snapshot{}, Seconds: 3},
		{Interrupts: []watch.CardInterrupt{{Interface: "eth0", Total: 5}}}} {
		if got := Examine(s); got.Verdict == "" || len(got.Steps) == 0 || got.CPUs == nil || got.WaysOut == nil {
			t.Errorf("%+v", got)
		}
	}
}
