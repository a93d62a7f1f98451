package cards

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/tcpinfo"
	"github.com/linerate/linerate/internal/traffic"
)

// gigabit is a NIC without a fault, for tests to change.
func gigabit(change ...func(*host.Interface)) host.Interface {
	x := host.Interface{
		Name: "eth0", Driver: "igb", Up: true, Carrier: true, MTUBytes: 1500, SpeedBitsPerSec: 1e9, Duplex: "full",
		TxQueueLen: 1000,
		Rings:      &host.Rings{Rx: host.Ring{Current: 256, Max: 4096}, Tx: host.Ring{Current: 256, Max: 4096}},
		Interrupts: []host.Interrupt{{Number: 40, Name: "eth0"}},
		Layers:     host.Layers{Kind: "physical"},
	}
	for _, f := range change {
		f(&x)
	}
	return x
}

// snapshot is a host with these interfaces.
func snapshot(all ...host.Interface) *host.Snapshot {
	return &host.Snapshot{Name: "box", OS: "linux", Kernel: "6.12.0", Interfaces: all}
}

// counts are counters of eth0, or of others by their full name.
type counts map[string]uint64

func (c counts) of(name string) map[string]uint64 {
	all := make(map[string]uint64)
	for k, v := range c {
		if !strings.Contains(k, ".") {
			k = "nic." + name + "." + k
		}
		all[k] = v
	}
	return all
}

// idle and full are the times of two CPUs over 3 s: nearly idle, and the second one in softirqs all
// the time.
func idle() []host.CPUTimes {
	return []host.CPUTimes{{CPU: 0, User: 0.1, Idle: 2.9}, {CPU: 1, SoftIRQ: 0.6, System: 0.3, Idle: 2.1}}
}

func full() []host.CPUTimes {
	return []host.CPUTimes{{CPU: 0, User: 0.1, Idle: 2.9}, {CPU: 1, IRQ: 0.3, SoftIRQ: 1.7, System: 0.9, Idle: 0.1}}
}

// watched is a host that was observed for 3 s.
func watched(x host.Interface, c counts, change ...func(*evidence.Span)) *evidence.Span {
	s := &evidence.Span{Side: "near", Host: snapshot(x), Seconds: 3, Counters: c.of(x.Name), CPUs: idle()}
	for _, f := range change {
		f(s)
	}
	return s
}

// sinceBoot is a host with counters of the 40 days since boot.
func sinceBoot(s *evidence.Span) {
	s.SinceBoot, s.Seconds = true, 40*86400
}

func busy(s *evidence.Span) { s.CPUs = full() }

// loadedBy makes a span that of a stream to this host at a rate in bits per second, with a share of
// retransmitted segments.
func loadedBy(rate, lost float64, d traffic.Direction) func(*evidence.Span) {
	return func(s *evidence.Span) {
		segments := rate * 3 / 8 / 1448
		r := &evidence.Run{Test: traffic.Stream, Direction: d, DurationSeconds: 3, Streams: 1,
			Bytes: int64(rate * 3 / 8), ThroughputBitsPerSec: rate}
		r.Ends.Local.TCP = []tcpinfo.TCPInfo{{Sender: true, BusySeconds: 3, SegsOut: uint64(segments),
			RetransSegs: uint64(segments * lost)}}
		s.Run = r
		x := s.Host.Interfaces[0]
		s.End = &evidence.End{Name: s.Side, Host: s.Host, Card: &x}
	}
}

// want is the expected result of a rule: nothing, or a severity and words of the title.
type want struct {
	severity evidence.Severity // empty: nothing
	title    string
}

// check compares a finding with the expected one, and checks what every finding must have.
func check(t *testing.T, x *evidence.Finding, w want) {
	t.Helper()
	switch {
	case x == nil && w.severity == "":
		return
	case x == nil:
		t.Fatalf("nothing found, want a %s", w.severity)
	case w.severity == "":
		t.Fatalf("found %s: %s", x.Severity, x.Title)
	}
	if x.Severity != w.severity || !strings.Contains(x.Title, w.title) {
		t.Errorf("%s: %s\nwant %s with %q", x.Severity, x.Title, w.severity, w.title)
	}
	if x.Confidence <= 0 || x.Confidence > 0.98 || x.Where == "" || len(x.Evidence) == 0 || x.Remedy.Text == "" ||
		x.Remedy.Proof == "" || !strings.HasSuffix(x.Title, ".") {
		t.Errorf("not whole: confidence %v, where %q, %d pieces of evidence, title %q", x.Confidence, x.Where,
			len(x.Evidence), x.Title)
	}
	for _, text := range append([]string{x.Title, x.Remedy.Text, x.Remedy.Proof}, x.Rejected...) {
		if first := text[:1]; first < "A" || first > "Z" || !strings.HasSuffix(text, ".") {
			t.Errorf("not a sentence: %q", text)
		}
	}
	for _, said := range x.Rejected {
		if !strings.ContainsAny(said, "0123456789") && !strings.HasPrefix(said, "Not measured") {
			t.Errorf("rejected without a number: %q", said)
		}
	}
	for _, e := range x.Evidence {
		if e.Name == "" || e.Source == "" {
			t.Errorf("evidence without name or source: %+v", e)
		}
	}
	for _, s := range x.Remedy.Settings {
		if len(s.Levels) == 0 || len(s.Levels) > 5 || s.Why == "" || s.Side == "" {
			t.Errorf("candidate %+v", s)
		}
	}
	if _, err := json.Marshal(x); err != nil { // a NaN or an infinity
		t.Error(err)
	}
	if all := fmt.Sprintf("%+v", x); strings.Contains(all, "NaN") || strings.Contains(all, "Inf") {
		t.Errorf("a number that is none: %s", all)
	}
}

// TestNothingKnown checks that no rule crashes on, or reports, an unknown host or a host whose
// kernel counts nothing.
func TestNothingKnown(t *testing.T) {
	vm := watched(gigabit(), nil)
	vm.Host.Virtualization = "kvm"
	spans := map[string]*evidence.Span{
		"no host":           {Side: "near", Seconds: 3},
		"no counters":       watched(gigabit(), nil),
		"a bare interface":  watched(host.Interface{Name: "eth0"}, nil),
		"no time":           watched(gigabit(), counts{"rx_packets": 5}, func(s *evidence.Span) { s.Seconds = 0 }),
		"since boot":        watched(gigabit(), nil, sinceBoot),
		"a virtual machine": vm,
		"no processors": watched(gigabit(), counts{"rx_packets": 1e6, "rx_bytes": 1e9},
			func(s *evidence.Span) { s.CPUs = nil }),
		"a run without cards": {Side: "far", Run: &evidence.Run{Test: traffic.Stream}, End: &evidence.End{}},
	}
	for name, s := range spans {
		for _, r := range Rules() {
			if r.Span == nil {
				continue
			}
			if x := r.Span(s); x != nil {
				t.Errorf("%s: %s: %s", name, x.Code, x.Title)
			}
		}
	}
}

// TestHealthyLoad checks that a NIC that carries a gigabit with a few losses of every kind gives no
// finding, watched or loaded.
func TestHealthyLoad(t *testing.T) {
	c := counts{
		"rx_packets": 243_000, "rx_bytes": 368e6, "tx_packets": 60_000, "tx_bytes": 4e6, "rx_missed_errors": 1,
		"tx_dropped": 1, "rx_crc_errors": 1,
		"qdisc.eth0.drops": 3, "ethtool.eth0.rx_flow_control_xoff": 3, "irq.40": 24_000, "Tcp.InCsumErrors": 1,
		"Tcp.InSegs": 240_000,
	}
	for name, s := range map[string]*evidence.Span{
		"watched":        watched(gigabit(), c),
		"full processor": watched(gigabit(), c, busy),
		"receiver":       watched(gigabit(), c, loadedBy(941e6, 1e-4, traffic.Down)),
		"sender":         watched(gigabit(), c, loadedBy(941e6, 1e-4, traffic.Up)),
		"since boot":     watched(gigabit(), c, sinceBoot),
	} {
		for _, r := range Rules() {
			if r.Span == nil {
				continue
			}
			if x := r.Span(s); x != nil {
				t.Errorf("%s: %s: %s", name, x.Code, x.Title)
			}
		}
	}
}

// TestTallies checks that the queues of one direction add up, and that packets counted twice do
// not.
func TestTallies(t *testing.T) {
	x := gigabit()
	s := watched(x, counts{"rx_packets": 1e6, "rx_missed_errors": 40, "ethtool.eth0.rx_missed_errors": 40,
		"ethtool.eth0.rx_queue_0_drops":   30,
		"ethtool.eth0.rx_queue_1_drops":   30,
		"ethtool.eth0.rx_no_buffer_count": 900, "nic.eth1.rx_missed_errors": 999})
	got, ok := card{&s.Host.Interfaces[0], s}.lost("ring-full")
	if !ok || got.n != 60 || got.counter != "drops of all rx queues" {
		t.Errorf("%+v %v", got, ok)
	}
	// A snapshot has the same counts in other places.
	x.Symptoms = []host.Symptom{{Counter: "rx_missed_errors", Total: 70, Class: "ring-full"}}
	s = watched(x, nil, sinceBoot)
	if got, ok := (card{&s.Host.Interfaces[0], s}).lost("ring-full"); !ok || got.n != 70 {
		t.Errorf("%+v %v", got, ok)
	}
}

// with adds to counters.
func (c counts) with(more counts) counts {
	all := maps.Clone(c)
	maps.Copy(all, more)
	return all
}
