package sample_test

import (
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/host/sample"
	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/nltest"
)

// between is what others say before and after each of two readings of ours: what we say came in
// between must be no less than what they saw between the inner two and no more than between the
// outer ones.
type between struct{ outer0, inner0, inner1, outer1 float64 }

func (b between) holds(v float64) bool {
	const rounding = 1e-6 // of seconds and microseconds as floating-point numbers
	return v >= b.inner1-b.inner0-rounding && v <= b.outer1-b.outer0+rounding
}

// surrounded takes two readings with work between them, and another reading before and after each.
func surrounded[T any](t *testing.T, s *sample.Sampler, other func() T, work func()) (first, last *sample.Index,
	others [4]T) {
	t.Helper()
	others[0] = other()
	first = sample.NewIndex(read(t, s).Points)
	others[1] = other()
	work()
	others[2] = other()
	last = sample.NewIndex(read(t, s).Points)
	others[3] = other()
	return first, last, others
}

// chatter makes the namespace count: connections, datagrams without a receiver, a datagram too many
// for its buffer.
func chatter(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	nltest.Must(t, err)
	defer func() { _ = listener.Close() }()
	for range 5 {
		out, err := net.Dial("tcp4", listener.Addr().String())
		nltest.Must(t, err)
		in, err := listener.Accept()
		nltest.Must(t, err)
		_, err = out.Write(make([]byte, 10000))
		nltest.Must(t, err)
		_, err = in.Read(make([]byte, 10000))
		nltest.Must(t, err)
		nltest.Must(t, in.Close())
		nltest.Must(t, out.Close())
	}
	sink, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	nltest.Must(t, err)
	defer func() { _ = sink.Close() }()
	nltest.Must(t, sink.SetReadBuffer(1))
	source, err := net.Dial("udp4", sink.LocalAddr().String())
	nltest.Must(t, err)
	defer func() { _ = source.Close() }()
	for range 50 {
		_, err = source.Write(make([]byte, 1400))
		nltest.Must(t, err)
	}
}

// What ip(8) says of all interfaces, with traffic that is counted, dropped and unwanted.
func TestAgreesWithIP(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	inWorld(t, func(w *world) {
		w.pair("a", "a1")
		w.pair("b", "b1")
		nltest.Must(t, w.c.SetUp("lo"))
		type stats map[string]map[string]float64 // rx, tx
		ask := func() map[string]stats {
			out, ok := nltest.OtherSays(t, "ip", "-s", "-s", "-j", "link")
			if !ok {
				t.Fatal("ip -s -s -j link failed")
			}
			var links []struct {
				Name  string `json:"ifname"`
				Stats stats  `json:"stats64"`
			}
			nltest.Must(t, json.Unmarshal([]byte(out), &links))
			byName := make(map[string]stats)
			for _, l := range links {
				byName[l.Name] = l.Stats
			}
			return byName
		}
		first, last, others := surrounded(t, w.s, ask, func() {
			w.send("a", 300)
			w.send("b1", 20)
			chatter(t)
			nltest.Must(t, w.c.SetDown("a1"))
			nltest.Must(t, w.c.SetUp("a1"))
		})
		moved, compared := 0, 0
		for name := range others[0] {
			for _, c := range []struct{ direction, column, metric, where, what string }{
				{"rx", "bytes", "linerate_interface_receive_bytes_total", "", ""},
				{"rx", "packets", "linerate_interface_receive_packets_total", "", ""},
				{"rx", "multicast", "linerate_interface_receive_multicast_packets_total", "", ""},
				{"tx", "bytes", "linerate_interface_transmit_bytes_total", "", ""},
				{"tx", "packets", "linerate_interface_transmit_packets_total", "", ""},
				{"rx", "dropped", "linerate_interface_drops_total", "receive", "kernel"},
				{"tx", "dropped", "linerate_interface_drops_total", "transmit", "kernel"},
				{"rx", "errors", "linerate_interface_errors_total", "receive", "other"},
				{"tx", "errors", "linerate_interface_errors_total", "transmit", "other"},
				{"tx", "carrier_changes", "linerate_interface_carrier_changes_total", "", ""},
			} {
				labels := []string{name}
				if c.where != "" {
					labels = append(labels, c.where, c.what)
				}
				was, ok := first.Value(c.metric, labels...)
				now, ok2 := last.Value(c.metric, labels...)
				if !ok || !ok2 {
					t.Errorf("no %s of %s", c.metric, name)
					continue
				}
				var b between
				for i, at := range []*float64{&b.outer0, &b.inner0, &b.inner1, &b.outer1} {
					*at = others[i][name][c.direction][c.column]
				}
				if !b.holds(now - was) {
					t.Errorf("%s of %s: %g here, %g to %g there", c.metric, name, now-was, b.inner1-b.inner0,
						b.outer1-b.outer0)
				}
				compared++
				if now > was {
					moved++
				}
			}
		}
		if compared < 50 || moved < 12 {
			t.Errorf("%d figures compared, of which %d moved", compared, moved)
		}
	})
}

// The whole reading of package host, by its own parsers.
func TestAgreesWithHostCounters(t *testing.T) {
	inWorld(t, func(w *world) {
		nltest.Must(t, w.c.SetUp("lo"))
		ask := func() *host.Counters {
			c, err := host.Root{}.Counters()
			nltest.Must(t, err)
			return c
		}
		first, last, others := surrounded(t, w.s, ask, func() { chatter(t) })
		type pair struct {
			metric string
			labels []string
			of     func(c *host.Counters) float64
		}
		sum := func(names ...string) func(c *host.Counters) float64 {
			return func(c *host.Counters) float64 {
				total := 0.0
				for _, name := range names {
					total += float64(c.Values[name])
				}
				return total
			}
		}
		pairs := []pair{
			{"linerate_tcp_segments_sent_total", nil, sum("Tcp.OutSegs")},
			{"linerate_tcp_segments_received_total", nil, sum("Tcp.InSegs")},
			{"linerate_tcp_retransmits_total", nil, sum("Tcp.RetransSegs")},
			{"linerate_tcp_timeouts_total", nil, sum("TcpExt.TCPTimeouts")},
			{"linerate_tcp_listen_overflows_total", nil, sum("TcpExt.ListenOverflows")},
			{"linerate_tcp_active_opens_total", nil, sum("Tcp.ActiveOpens")},
			{"linerate_tcp_passive_opens_total", nil, sum("Tcp.PassiveOpens")},
			{"linerate_udp_datagrams_received_total", nil, sum("Udp.InDatagrams", "Udp6.InDatagrams")},
			{"linerate_udp_datagrams_sent_total", nil, sum("Udp.OutDatagrams", "Udp6.OutDatagrams")},
			{"linerate_udp_receive_buffer_errors_total", nil, sum("Udp.RcvbufErrors", "Udp6.RcvbufErrors")},
			{"linerate_host_drops_total", []string{"socket"},
				sum("Udp.RcvbufErrors", "Udp6.RcvbufErrors", "Udp.MemErrors", "Udp6.MemErrors")},
			{"linerate_host_drops_total", []string{"softnet"}, sum("softnet.dropped")},
			{"linerate_host_drops_total", []string{"ip"},
				sum("Ip.InDiscards", "Ip.OutDiscards", "Ip6.InDiscards", "Ip6.OutDiscards")},
			{"linerate_context_switches_total", nil, sum("ctxt")},
			{"linerate_pressure_seconds_total", []string{"cpu", "some"}, func(c *host.Counters) float64 {
				return float64(c.Values["pressure.cpu.some_microseconds"]) * 1e-6
			}},
		}
		for _, cpu := range ask().CPUs {
			id := strconv.Itoa(cpu.CPU)
			if cpu.CPU < 0 {
				continue
			}
			for metric, column := range map[string]string{
				"linerate_softnet_packets_total": "processed", "linerate_softnet_dropped_total": "dropped",
				"linerate_softnet_time_squeezes_total": "time_squeeze",
				"linerate_softnet_received_rps_total":  "received_rps",
			} {
				pairs = append(pairs, pair{metric, []string{id}, sum("softnet." + id + "." + column)})
			}
			pairs = append(pairs,
				pair{"linerate_cpu_softirqs_total", []string{id, "net_rx"}, sum("softirq.NET_RX." + id)},
				pair{"linerate_cpu_softirqs_total", []string{id, "net_tx"}, sum("softirq.NET_TX." + id)})
			for mode, of := range map[string]func(t host.CPUTimes) float64{
				"user":    func(t host.CPUTimes) float64 { return t.User - t.Nice },
				"nice":    func(t host.CPUTimes) float64 { return t.Nice },
				"system":  func(t host.CPUTimes) float64 { return t.System },
				"irq":     func(t host.CPUTimes) float64 { return t.IRQ },
				"softirq": func(t host.CPUTimes) float64 { return t.SoftIRQ },
				"steal":   func(t host.CPUTimes) float64 { return t.Steal },
			} {
				pairs = append(pairs,
					pair{"linerate_cpu_seconds_total", []string{id, mode}, func(c *host.Counters) float64 {
						for _, times := range c.CPUs {
							if times.CPU == cpu.CPU {
								return of(times)
							}
						}
						return 0
					}})
			}
		}
		moved := 0
		for _, p := range pairs {
			was, ok := first.Value(p.metric, p.labels...)
			now, ok2 := last.Value(p.metric, p.labels...)
			b := between{p.of(others[0]), p.of(others[1]), p.of(others[2]), p.of(others[3])}
			if !ok || !ok2 {
				t.Errorf("no %s %q", p.metric, p.labels)
			} else if !b.holds(now - was) {
				t.Errorf("%s %q: %g here, %g to %g there", p.metric, p.labels, now-was, b.inner1-b.inner0,
					b.outer1-b.outer0)
			}
			if now > was {
				moved++
			}
		}
		if moved < 9 {
			t.Errorf("of %d figures %d moved", len(pairs), moved)
		}
	})
}

// broadcast sends datagrams to all of a network, which need no neighbour.
func broadcast(t *testing.T, to string, datagrams int) {
	t.Helper()
	conn, err := net.Dial("udp4", to)
	nltest.Must(t, err)
	defer func() { _ = conn.Close() }()
	for range datagrams {
		if _, err := conn.Write(make([]byte, 500)); err != nil && !errors.Is(err, unix.ENOBUFS) {
			t.Fatal(err)
		}
	}
}

// What tc(8) says of a shaper that drops, also when another one takes its place: its counters begin
// at zero, and ours go on.
func TestAgreesWithTc(t *testing.T) {
	testenv.Need(t, testenv.NetNS, testenv.Peers)
	inWorld(t, func(w *world) {
		w.pair("a", "a1")
		shape := func() { // to nearly nothing: what waits is to wait for as long as a slow machine takes to look
			nltest.Must(t, w.c.ReplaceTBF("a", nl.TBF{RateBitsPerSecond: 80, BurstBytes: 3000, LimitBytes: 3000}))
		}
		value := func(metric string, labels ...string) float64 {
			x := sample.NewIndex(w.read().Points)
			v, ok := x.Value(metric, append([]string{"a"}, labels...)...)
			if !ok {
				t.Fatalf("no %s", metric)
			}
			return v
		}
		drops := func() float64 {
			out, ok := nltest.OtherSays(t, "tc", "-s", "-j", "qdisc", "show", "dev", "a")
			if !ok {
				t.Fatal(out)
			}
			var all []struct {
				Drops float64 `json:"drops"`
			}
			nltest.Must(t, json.Unmarshal([]byte(out), &all))
			return all[0].Drops
		}
		flood := func(least float64) {
			for patience := time.Now().Add(time.Minute); drops() < least; {
				if time.Now().After(patience) {
					t.Fatalf("%g drops, and %g were wanted", drops(), least)
				}
				for range 50 {
					// a full queue says ENOBUFS
					_ = unix.Sendto(w.packet, make([]byte, 1000), 0,
						&unix.SockaddrLinklayer{Ifindex: w.index("a"), Protocol: 0xb588})
				}
			}
		}
		shape()
		w.unchecked = true
		if v := value("linerate_qdisc_drops_total"); v != 0 {
			t.Errorf("begins with %g drops", v)
		}
		flood(20)
		first := drops()
		if v := value("linerate_qdisc_drops_total"); v != first ||
			value("linerate_interface_drops_total", "transmit", "qdisc") != first {
			t.Errorf("%g drops here, %g there", v, first)
		}
		if v := value("linerate_qdisc_backlog_bytes"); v == 0 || v > 3000 {
			t.Errorf("%g bytes wait", v)
		}
		nltest.Must(t, w.c.DeleteRootQdisc("a"))
		r := w.read()
		if _, ok := sample.NewIndex(r.Points).Value("linerate_qdisc_drops_total", "a"); ok {
			t.Error("an interface without a queue has drops of one")
		}
		shape()
		w.read()
		before := value("linerate_qdisc_drops_total")
		flood(20)
		if v := value("linerate_qdisc_drops_total"); v-before != drops() || drops() == 0 {
			t.Errorf("%g drops more here, %g there", v-before, drops())
		}

		// Another discipline, which has dropped more than the former one at the next reading: the
		// new part is not known.
		before, first = value("linerate_qdisc_drops_total"), drops()
		nltest.Must(t, w.c.DeleteRootQdisc("a"))
		shape()
		flood(2 * first)
		if v := value("linerate_qdisc_drops_total"); v != before || drops() < 2*first {
			t.Errorf("%g drops more here, %g there and %g of the former", v-before, drops(), first)
		}
	})
}
