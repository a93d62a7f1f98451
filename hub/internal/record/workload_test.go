package record_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/linerate/linerate/hub/internal/record"
	"github.com/linerate/linerate/internal/host/sample"
)

// workload makes the readings of a host with traffic: busy, idle and bursty interfaces, queues,
// CPUs and protocols.
type workload struct {
	random *rand.Rand
	things []thing
	points []sample.Point
	second int
}

// thing advances its points by one second.
type thing struct {
	from, to int
	advance  func(w *workload, points []sample.Point)
}

func counter(name string, labels ...string) *sample.Metric {
	return &sample.Metric{Name: name, Kind: sample.Counter, Labels: labels}
}

// newWorkload makes a workload of interfaces, of which every fifth is busy, queues and CPUs.
func newWorkload(interfaces, queues, cpus int) *workload {
	w := &workload{random: rand.New(rand.NewPCG(1, 2))}
	var (
		rxBytes, txBytes = counter("linerate_interface_receive_bytes_total", "interface"),
			counter("linerate_interface_transmit_bytes_total", "interface")
		rxPackets, txPackets = counter("linerate_interface_receive_packets_total", "interface"),
			counter("linerate_interface_transmit_packets_total", "interface")
		multicast = counter("linerate_interface_receive_multicast_packets_total", "interface")
		drops     = counter("linerate_interface_drops_total", "interface", "direction", "place")
		errs      = counter("linerate_interface_errors_total", "interface", "direction", "kind")
		levels    []*sample.Metric
		qdisc     []*sample.Metric
		queue     []*sample.Metric
	)
	for _, n := range []string{"up", "speed_bits_per_second", "mtu_bytes", "carrier_changes_total", "info"} {
		levels = append(levels, &sample.Metric{Name: "linerate_interface_" + n, Kind: sample.Gauge,
			Labels: []string{"interface"}})
	}
	for _, n := range []string{"drops_total", "requeues_total", "overlimits_total", "backlog_bytes"} {
		qdisc = append(qdisc, counter("linerate_qdisc_"+n, "interface"))
	}
	for _, n := range []string{"packets_total", "bytes_total", "drops_total", "interrupts_total"} {
		queue = append(queue, counter("linerate_queue_"+n, "interface", "queue"))
	}
	for i := range interfaces {
		name := fmt.Sprintf("eth%d", i)
		ss := []*sample.Series{series(rxBytes, name), series(txBytes, name), series(rxPackets, name),
			series(txPackets, name), series(multicast, name)}
		for _, m := range qdisc {
			ss = append(ss, series(m, name))
		}
		for _, place := range []string{"ring", "fifo", "kernel"} {
			ss = append(ss, series(drops, name, "receive", place), series(drops, name, "transmit", place))
		}
		for _, kind := range []string{"crc", "length", "frame", "carrier", "aborted", "window", "other"} {
			ss = append(ss, series(errs, name, "receive", kind), series(errs, name, "transmit", kind))
		}
		for _, m := range levels {
			ss = append(ss, series(m, name))
		}
		// The busiest interface carries 9 Gb/s, the next ones less; many carry some packets each
		// second and some none.
		peak := 1.1e9 * math.Pow(0.72, float64(i))
		w.add(ss, func(w *workload, p []sample.Point) {
			if w.second == 0 {
				p[len(p)-4].Value, p[len(p)-3].Value, p[len(p)-1].Value = 10e9, 1500, 1
				p[len(p)-5].Value = 1
			}
			day := 0.6 + 0.4*math.Sin(float64(w.second)/86400*2*math.Pi)
			for d := range 2 {
				rate := peak * day * math.Exp(0.25*w.random.NormFloat64()) / float64(1+2*d)
				size := 500 + 700*w.random.Float64()
				packets := math.Floor(rate / size)
				if packets == 0 && w.random.IntN(10) == 0 {
					packets = 1
				}
				p[d].Value += math.Floor(packets * size)
				p[2+d].Value += packets
			}
			if w.random.IntN(3) == 0 {
				p[4].Value++ // multicast
			}
			if i < 8 && w.random.IntN(60) == 0 { // drops at the ring now and then, on the busy ones
				p[9].Value += float64(w.random.IntN(200))
			}
			if i < 3 {
				p[8].Value = math.Floor(w.random.Float64() * 20000) // backlog
			}
		})
	}
	for i := range queues {
		name := fmt.Sprintf("rx-%d", i)
		w.add([]*sample.Series{series(queue[0], "eth0", name), series(queue[1], "eth0", name),
			series(queue[2], "eth0", name), series(queue[3], "eth0", name)},
			func(w *workload, p []sample.Point) {
				packets := math.Floor(20000 * w.random.Float64())
				p[0].Value += packets
				p[1].Value += math.Floor(packets * (500 + 700*w.random.Float64()))
				p[3].Value += math.Floor(4000 + 2000*w.random.Float64())
			})
	}
	var seconds = counter("linerate_cpu_seconds_total", "cpu", "mode")
	var perCPU []*sample.Metric
	for _, n := range []string{"linerate_cpu_card_interrupts_total", "linerate_softnet_packets_total",
		"linerate_softnet_dropped_total", "linerate_softnet_time_squeezes_total",
		"linerate_softnet_received_rps_total"} {
		perCPU = append(perCPU, counter(n, "cpu"))
	}
	softirqs := counter("linerate_cpu_softirqs_total", "cpu", "kind")
	for i := range cpus {
		cpu := fmt.Sprint(i)
		var ss []*sample.Series
		for _, mode := range []string{"user", "nice", "system", "irq", "softirq", "iowait", "steal", "idle"} {
			ss = append(ss, series(seconds, cpu, mode))
		}
		for _, m := range perCPU {
			ss = append(ss, series(m, cpu))
		}
		ss = append(ss, series(softirqs, cpu, "net_rx"), series(softirqs, cpu, "net_tx"))
		var ticks [8]int
		w.add(ss, func(w *workload, p []sample.Point) {
			busy := [8]int{w.random.IntN(10), 0, w.random.IntN(8), 0, 10 + w.random.IntN(20), 0, 0, 0}
			left := 100
			for m, n := range busy {
				ticks[m] += n
				left -= n
			}
			ticks[7] += left
			for m, n := range ticks {
				p[m].Value = float64(n) / 100
			}
			interrupts := math.Floor(8000 + 4000*w.random.Float64())
			p[8].Value += interrupts
			p[9].Value += math.Floor(20 * interrupts * w.random.Float64())
			if w.random.IntN(20) == 0 {
				p[11].Value++
			}
			p[13].Value += interrupts
			p[14].Value += math.Floor(50 * w.random.Float64())
		})
	}
	var tcp []*sample.Series
	for _, n := range []string{"segments_sent_total", "segments_received_total", "retransmits_total", "timeouts_total",
		"listen_overflows_total", "connections"} {
		tcp = append(tcp, series(counter("linerate_tcp_"+n)))
	}
	w.add(tcp, func(w *workload, p []sample.Point) {
		p[0].Value += math.Floor(50000 * w.random.Float64())
		p[1].Value += math.Floor(50000 * w.random.Float64())
		p[2].Value += float64(w.random.IntN(3))
		p[5].Value = float64(100 + w.random.IntN(20))
	})
	return w
}

func series(m *sample.Metric, values ...string) *sample.Series {
	return &sample.Series{Metric: m, Values: values}
}

func (w *workload) add(ss []*sample.Series, advance func(*workload, []sample.Point)) {
	t := thing{from: len(w.points), to: len(w.points) + len(ss), advance: advance}
	for _, s := range ss {
		w.points = append(w.points, sample.Point{Series: s})
	}
	w.things = append(w.things, t)
}

// next returns the reading of the next second.
func (w *workload) next(at time.Time) *sample.Reading {
	for _, t := range w.things {
		t.advance(w, w.points[t.from:t.to])
	}
	w.second++
	return &sample.Reading{Time: at, Points: w.points}
}

// tested are the series of tests that check each value.
var tested = counter("linerate_test_total", "series")

// valueOf is the value of series j in second i: neighbours differ, so torn, lost and double samples
// show.
func valueOf(i, j int) float64 { return float64(i*(j%97+1) + j) }

// some appends seconds of many series.
func some(t *testing.T, s *record.Store, many, from, seconds int) {
	t.Helper()
	var ss []*sample.Series
	for j := range many {
		ss = append(ss, series(tested, fmt.Sprint(j)))
	}
	for i := from; i < from+seconds; i++ {
		r := &sample.Reading{Time: noon.Add(time.Duration(i) * time.Second)}
		for j, one := range ss {
			r.Points = append(r.Points, sample.Point{Series: one, Value: valueOf(i, j)})
		}
		if err := s.Append(r); err != nil {
			t.Fatal(err)
		}
	}
}
