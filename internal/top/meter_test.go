package top_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hostmodel "github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/top"
)

// host is a sampler's memory of hand-made series.
type host struct {
	series map[string]*sample.Series
	values map[string]float64
	at     time.Duration
	ended  []*sample.Series
}

func newHost() *host {
	return &host{series: map[string]*sample.Series{}, values: map[string]float64{}, at: 1000 * time.Second}
}

// set gives a series a value. The metric is one of the catalogue, which a renamed one would leave.
func (h *host) set(t *testing.T, value float64, name string, labels ...string) {
	t.Helper()
	key := name
	for _, l := range labels {
		key += " " + l
	}
	if h.series[key] == nil {
		at := slices.IndexFunc(sample.Metrics(), func(m *sample.Metric) bool { return m.Name == "linerate_"+name })
		if at < 0 {
			t.Fatalf("there is no metric linerate_%s", name)
		}
		m := sample.Metrics()[at]
		if len(m.Labels) != len(labels) {
			t.Fatalf("%s has the labels %q, not %q", name, m.Labels, labels)
		}
		h.series[key] = &sample.Series{Metric: m, Values: labels}
	}
	h.values[key] = value
}

// end takes the series of an interface away.
func (h *host) end(name string) {
	for key, s := range h.series {
		if s.Metric.Labels != nil && s.Metric.Labels[0] == "interface" && s.Values[0] == name {
			h.ended = append(h.ended, s)
			delete(h.series, key)
			delete(h.values, key)
		}
	}
}

func (h *host) reading(after time.Duration) *sample.Reading {
	h.at += after
	r := &sample.Reading{Time: reporttest.Noon.Add(h.at), SinceBoot: h.at, Ended: h.ended}
	h.ended = nil
	for key, s := range h.series {
		r.Points = append(r.Points, sample.Point{Series: s, Value: h.values[key]})
	}
	return r
}

func find(t *testing.T, r top.Reading, name string) top.Interface {
	t.Helper()
	at := slices.IndexFunc(r.Interfaces, func(i top.Interface) bool { return i.Name == name })
	if at < 0 {
		t.Fatalf("%s is not there: %+v", name, r.Interfaces)
	}
	return r.Interfaces[at]
}

// TestMeter: counters become rates over the time that really went by, levels stay levels, and each
// arrives where it belongs.
func TestMeter(t *testing.T) {
	h, m := newHost(), top.NewMeter()
	moment := func(n float64) {
		h.set(t, 1e6*n, "interface_receive_bytes_total", "eth0")
		h.set(t, 1000*n, "interface_transmit_packets_total", "eth0")
		h.set(t, 1, "interface_up", "eth0")
		h.set(t, 1e9, "interface_speed_bits_per_second", "eth0")
		h.set(t, 1, "interface_info", "eth0", "e1000e", "ethernet", "")
		h.set(t, 50*n, "interface_drops_total", "eth0", "receive", "ring")
		h.set(t, 7*n, "interface_errors_total", "eth0", "receive", "crc")
		h.set(t, 300, "qdisc_backlog_bytes", "eth0")
		h.set(t, 20*n, "qdisc_overlimits_total", "eth0")
		h.set(t, 600*n, "queue_packets_total", "eth0", "rx-0")
		h.set(t, 90*n, "queue_interrupts_total", "eth0", "rx-0")
		h.set(t, 30*n, "cpu_seconds_total", "0", "idle")
		h.set(t, 10*n, "cpu_seconds_total", "0", "softirq")
		h.set(t, 44*n, "cpu_card_interrupts_total", "0")
		h.set(t, 6*n, "softnet_time_squeezes_total", "0")
		h.set(t, 100*n, "tcp_segments_sent_total")
		h.set(t, 5*n, "tcp_retransmits_total")
		h.set(t, 12, "tcp_connections")
		h.set(t, 3*n, "host_drops_total", "softnet")
	}
	moment(1)
	if _, ok := m.Take(h.reading(0)); ok {
		t.Error("one reading has rates")
	}
	moment(3)
	r, ok := m.Take(h.reading(2 * time.Second))
	if !ok {
		t.Fatal("two readings have no rates")
	}
	i := find(t, r, "eth0")
	for what, figures := range map[string][2]float64{
		"receive": {i.Receive, 8e6}, "packets": {i.TransmitPackets, 1000}, "speed": {*i.Speed, 1e9},
		"share": {*i.Share, 0.008},
		"drops": {i.Drops[0].Rate, 50}, "drops in all": {i.Drops[0].Total, 150}, "errors": {i.Errors[0].Rate, 7},
		"backlog": {i.Qdisc.Backlog, 300}, "overlimits": {i.Qdisc.Overlimit, 20}, "queue": {*i.Queues[0].Packets, 600},
		"interrupts": {*i.Queues[0].Interrupts, 90},
		"idle":       {r.CPUs[0].Busy, 0.25}, "softirq": {r.CPUs[0].Softirq, 0.25},
		"card interrupts": {r.CPUs[0].CardInterrupts, 44}, "squeezes": {r.CPUs[0].Squeezes, 6},
		"segments": {r.TCP.Sent, 100}, "retransmits": {r.TCP.Retransmits, 5},
		"share of them": {r.TCP.Retransmitted, 0.05}, "connections": {r.TCP.Connections, 12},
		"softnet": {r.Drops[0].Rate, 3}, "interval": {r.Seconds, 2},
	} {
		if math.Abs(figures[0]-figures[1]) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, figures[0], figures[1])
		}
	}
	if !i.Up || i.Driver != "e1000e" || i.Kind != "ethernet" || i.Drops[0].Place != "ring" ||
		i.Errors[0].Place != "crc" || i.Queues[0].Bits != nil {
		t.Errorf("interface: %+v", i)
	}
	if _, ok := m.Take(h.reading(0)); ok {
		t.Error("no time, and yet there are rates")
	}
	// What was given stays as it was.
	moment(103)
	if _, ok := m.Take(h.reading(time.Second)); !ok || i.Receive != 8e6 || *i.Queues[0].Packets != 600 ||
		i.Drops[0].Rate != 50 {
		t.Errorf("a reading has changed by the next: %+v", i)
	}
}

// TestMeterSeesNoSpike where something is new, is gone, comes back under the same name, or is read
// more seldom than the rest.
func TestMeterSeesNoSpike(t *testing.T) {
	h, m := newHost(), top.NewMeter()
	h.set(t, 500, "interface_receive_bytes_total", "eth0")
	h.set(t, 1000, "queue_packets_total", "eth0", "rx-0")
	m.Take(h.reading(0))

	h.set(t, 4e9, "interface_receive_bytes_total", "eth1") // has counted, but not while anybody looked
	r, _ := m.Take(h.reading(time.Second))
	if i := find(t, r, "eth1"); i.Receive != 0 {
		t.Errorf("a new interface has the rate %v", i.Receive)
	}

	h.end("eth1")
	r, _ = m.Take(h.reading(time.Second))
	if len(r.Interfaces) != 1 {
		t.Errorf("an interface that is gone: %+v", r.Interfaces)
	}

	h.end("eth0")
	h.set(t, 9e9, "interface_receive_bytes_total", "eth0") // another card
	r, _ = m.Take(h.reading(time.Second))
	if i := find(t, r, "eth0"); i.Receive != 0 || len(i.Queues) != 0 {
		t.Errorf("another card under the same name: %+v", i)
	}

	// Most readings leave out a costly counter. Its rate remains, and covers the counter's own
	// time.
	h.set(t, 0, "queue_packets_total", "eth0", "rx-0")
	m.Take(h.reading(time.Second))
	key := "queue_packets_total eth0 rx-0"
	kept := h.series[key]
	delete(h.series, key)
	for range 3 {
		m.Take(h.reading(time.Second))
	}
	h.series[key] = kept
	h.set(t, 800, "queue_packets_total", "eth0", "rx-0")
	r, _ = m.Take(h.reading(time.Second))
	if i := find(t, r, "eth0"); *i.Queues[0].Packets != 200 {
		t.Errorf("800 packets in four seconds: %v each second", *i.Queues[0].Packets)
	}
}

// TestMovedBetween: of an interface that is open there are the counters that moved, and which
// processors served which of its interrupts.
func TestMovedBetween(t *testing.T) {
	counters := func(seconds int, rx, missed, other uint64) *hostmodel.Counters {
		return &hostmodel.Counters{Time: reporttest.Noon.Add(time.Duration(seconds) * time.Second),
			Values: map[string]uint64{
				"nic.eth0.rx_packets": rx, "ethtool.eth0.rx_missed": missed, "ethtool.eth0.still": 7,
				"nic.eth01.rx_packets": other, "softirq.NET_RX": other}}
	}
	interrupts := func(onZero, onOne uint64) []hostmodel.CardInterrupts {
		return []hostmodel.CardInterrupts{
			{Interface: "eth1", Interrupts: []hostmodel.Interrupt{
				{Number: 9, Counts: []hostmodel.CPUCount{{CPU: 0, Total: onOne}}}}},
			{Interface: "eth0", Interrupts: []hostmodel.Interrupt{{Number: 44, Name: "idle",
				Counts: []hostmodel.CPUCount{{CPU: 0, Total: 5}}},
				{Number: 45, Name: "eth0-rx-0",
					Counts: []hostmodel.CPUCount{{CPU: 0, Total: onZero}, {CPU: 1, Total: onOne}}}}},
		}
	}
	got := top.MovedBetween("eth0", counters(0, 100, 0, 0), counters(2, 300, 900, 5), interrupts(1000, 50),
		interrupts(1002, 250))
	want := top.Moved{Interface: "eth0",
		Counters: []top.Counter{{Name: "ethtool rx_missed", Rate: 450}, {Name: "nic rx_packets", Rate: 100}},
		Interrupts: []top.Served{{Number: 45, Name: "eth0-rx-0", Rate: 101,
			CPUs: []top.OnCPU{{CPU: 1, Rate: 100}, {CPU: 0, Rate: 1}}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
