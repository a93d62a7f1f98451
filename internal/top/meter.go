package top

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/base/sorting"
	"github.com/linerate/linerate/internal/host/sample"
)

// Meter turns successive readings into rates, grouped by interface and processor. It keeps its
// state by the pointer of a series, so that a reading costs one look-up per point. While a reading
// leaves out a counter that is costly to read, its last rate stays.
type Meter struct {
	at         time.Time
	up         time.Duration // since the host's boot: a clock that is never set
	clock      float64       // seconds since the first reading
	series     map[*sample.Series]*gauge
	interfaces map[string]*card
	cpus       map[int]*CPU
	modes      map[int]map[string]float64 // of each processor, seconds each second
	tcp        TCP
	udp        UDP
	drops      places
	met        map[string]bool // names of series that a reading had
}

// basics are the series without which zero means "not read". Every Linux host that shows them has
// them.
var basics = []struct{ name, what string }{
	{"cpu_seconds_total", "the processors: /proc/stat shows no times"},
	{"interface_receive_bytes_total", "the traffic of the interfaces: the kernel shows no counters of theirs"},
	{"tcp_segments_sent_total", "TCP and UDP: /proc/net/snmp shows no counters"},
}

// unread returns a sentence for each part of the host that no reading has shown.
func (m *Meter) unread() []string {
	var all []string
	for _, b := range basics {
		if !m.met[b.name] {
			all = append(all, b.what)
		}
	}
	return all
}

// gauge is one series: its previous value, and what to do with a new one.
type gauge struct {
	before float64
	at     float64 // seconds, by the clock of the meter
	known  bool
	// take gets the count of the interval and its length in seconds, or, for a level, the level and
	// 0.
	take func(value, seconds, total float64)
	gone func()
}

// card is an interface, with its parts by name until they are sorted.
type card struct {
	Interface
	drops, errors places
	queues        map[string]*Queue
	series        int
}

// places are drops by direction and place.
type places map[[2]string]*Drop

func (p places) at(direction, place string) *Drop {
	key := [2]string{direction, place}
	if p[key] == nil {
		p[key] = &Drop{Place: place, Direction: direction}
	}
	return p[key]
}

// list returns copies, the worst first.
func (p places) list() []Drop {
	list := make([]Drop, 0, len(p))
	for _, d := range p {
		list = append(list, *d)
	}
	sorting.Func(list, func(a, b Drop) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Direction, b.Direction),
			cmp.Compare(a.Place, b.Place))
	})
	return list
}

// NewMeter makes a meter without a reading.
func NewMeter() *Meter {
	return &Meter{series: map[*sample.Series]*gauge{}, interfaces: map[string]*card{}, cpus: map[int]*CPU{},
		modes: map[int]map[string]float64{}, drops: places{}, met: map[string]bool{}}
}

// Take returns the rates between the previous reading and this one. It returns false for the first
// reading, and for one that is not later than the previous one. It does not keep the reading.
func (m *Meter) Take(r *sample.Reading) (Reading, bool) {
	seconds := r.Time.Sub(m.at).Seconds()
	if m.up > 0 && r.SinceBoot > 0 {
		seconds = (r.SinceBoot - m.up).Seconds()
	}
	first := m.at.IsZero()
	if !first && seconds <= 0 {
		return Reading{}, false
	}
	m.at, m.up = r.Time, r.SinceBoot
	if !first {
		m.clock += seconds
	}
	for _, s := range r.Ended {
		if g := m.series[s]; g != nil {
			delete(m.series, s)
			g.gone()
		}
	}
	for _, p := range r.Points {
		g := m.series[p.Series]
		if g == nil {
			g = m.meet(p.Series)
			m.series[p.Series] = g
		}
		switch {
		case g.take == nil:
		case p.Series.Metric.Kind == sample.Gauge:
			g.take(p.Value, 0, p.Value)
		case g.known && m.clock > g.at:
			g.take(max(p.Value-g.before, 0), m.clock-g.at, p.Value)
		default:
			// A new counter has counted before this reading, over an unknown time.
			g.take(0, 1, p.Value)
		}
		g.before, g.at, g.known = p.Value, m.clock, true
	}
	if first {
		return Reading{}, false
	}
	return m.reading(r, seconds), true
}

// meet returns the gauge of a new series.
func (m *Meter) meet(s *sample.Series) *gauge {
	g := &gauge{gone: func() {}}
	labels := make(map[string]string, len(s.Values))
	for i, name := range s.Metric.Labels {
		if i < len(s.Values) {
			labels[name] = s.Values[i]
		}
	}
	name, _ := strings.CutPrefix(s.Metric.Name, "linerate_")
	m.met[name] = true
	switch {
	case labels["interface"] != "":
		m.meetInterface(g, name, labels)
	case labels["cpu"] != "":
		m.meetCPU(g, name, labels)
	case name == "host_drops_total":
		d := m.drops.at("", labels["place"])
		g.take = lost(d)
	default:
		if into := m.protocol(name); into != nil {
			g.take = rate(into)
		}
	}
	return g
}

// rate stores a count per second, or a level.
func rate(into *float64) func(value, seconds, total float64) {
	return func(value, seconds, _ float64) { *into = per(value, seconds) }
}

func per(value, seconds float64) float64 {
	if seconds > 0 {
		return value / seconds
	}
	return value
}

func lost(d *Drop) func(value, seconds, total float64) {
	return func(value, seconds, total float64) { d.Rate, d.Total = per(value, seconds), total }
}

func (m *Meter) protocol(name string) *float64 {
	return map[string]*float64{
		"tcp_segments_sent_total":         &m.tcp.Sent,
		"tcp_segments_received_total":     &m.tcp.Received,
		"tcp_retransmits_total":           &m.tcp.Retransmits,
		"tcp_timeouts_total":              &m.tcp.Timeouts,
		"tcp_out_of_order_total":          &m.tcp.OutOfOrder,
		"tcp_listen_overflows_total":      &m.tcp.ListenOverflows,
		"tcp_resets_sent_total":           &m.tcp.Resets,
		"tcp_connections":                 &m.tcp.Connections,
		"udp_datagrams_received_total":    &m.udp.Received,
		"udp_datagrams_sent_total":        &m.udp.Sent,
		"udp_receive_buffer_errors_total": &m.udp.ReceiveBufferErrors,
	}[name]
}

func (m *Meter) meetInterface(g *gauge, name string, labels map[string]string) {
	key := labels["interface"]
	c := m.interfaces[key]
	if c == nil {
		c = &card{drops: places{}, errors: places{}, queues: map[string]*Queue{}}
		c.Name = key
		m.interfaces[key] = c
	}
	c.series++
	undo := func() {}
	g.gone = func() {
		undo()
		// Another interface may have the name by now.
		if c.series--; c.series == 0 && m.interfaces[key] == c {
			delete(m.interfaces, key)
		}
	}
	bits := func(into *float64) func(value, seconds, total float64) {
		return func(value, seconds, _ float64) { *into = 8 * per(value, seconds) }
	}
	switch name {
	case "interface_receive_bytes_total":
		g.take = bits(&c.Receive)
	case "interface_transmit_bytes_total":
		g.take = bits(&c.Transmit)
	case "interface_receive_packets_total":
		g.take = rate(&c.ReceivePackets)
	case "interface_transmit_packets_total":
		g.take = rate(&c.TransmitPackets)
	case "interface_receive_multicast_packets_total":
		g.take = rate(&c.ReceiveMulticast)
	case "interface_drops_total":
		g.take = lost(c.drops.at(labels["direction"], labels["place"]))
		undo = func() { delete(c.drops, [2]string{labels["direction"], labels["place"]}) }
	case "interface_errors_total":
		g.take = lost(c.errors.at(labels["direction"], labels["kind"]))
		undo = func() { delete(c.errors, [2]string{labels["direction"], labels["kind"]}) }
	case "interface_up":
		g.take = func(value, _, _ float64) { c.Up = value > 0 }
	case "interface_speed_bits_per_second":
		speed := new(float64)
		g.take = func(value, _, _ float64) { *speed, c.Speed = value, speed }
		undo = func() { c.Speed = nil }
	case "interface_mtu_bytes":
		g.take = func(value, _, _ float64) { c.MTU = int64(value) }
	case "interface_carrier_changes_total":
		g.take = func(_, _, total float64) { c.CarrierChanges = total }
	case "interface_info":
		g.take = func(_, _, _ float64) {
			c.Driver, c.Kind, c.Parent = labels["driver"], labels["kind"],
				labels["parent"]
		}
	case "qdisc_drops_total", "qdisc_requeues_total", "qdisc_overlimits_total", "qdisc_backlog_bytes":
		if c.Qdisc == nil {
			c.Qdisc = &Qdisc{}
		}
		g.take = rate(map[string]*float64{"qdisc_drops_total": &c.Qdisc.Drops,
			"qdisc_requeues_total":   &c.Qdisc.Requeues,
			"qdisc_overlimits_total": &c.Qdisc.Overlimit, "qdisc_backlog_bytes": &c.Qdisc.Backlog}[name])
	case "queue_packets_total", "queue_bytes_total", "queue_drops_total", "queue_interrupts_total":
		g.take = c.queue(labels["queue"], name)
		undo = func() { delete(c.queues, labels["queue"]) }
	}
}

// queue returns where a counter of a queue is stored. A figure that the driver does not count stays
// absent.
func (c *card) queue(label, name string) func(value, seconds, total float64) {
	q := c.queues[label]
	if q == nil {
		q = &Queue{Queue: label}
		c.queues[label] = q
	}
	into := new(float64)
	switch name {
	case "queue_packets_total":
		q.Packets = into
	case "queue_bytes_total":
		q.Bits = into
		return func(value, seconds, _ float64) { *into = 8 * per(value, seconds) }
	case "queue_drops_total":
		q.Drops = into
	case "queue_interrupts_total":
		q.Interrupts = into
	}
	return rate(into)
}

func (m *Meter) meetCPU(g *gauge, name string, labels map[string]string) {
	number, err := strconv.Atoi(labels["cpu"])
	if err != nil {
		return
	}
	c := m.cpus[number]
	if c == nil {
		c = &CPU{CPU: number}
		m.cpus[number], m.modes[number] = c, map[string]float64{}
	}
	modes, mode := m.modes[number], labels["mode"]
	switch name {
	case "cpu_seconds_total":
		g.take = func(value, seconds, _ float64) { modes[mode] = per(value, seconds) }
		g.gone = func() { delete(m.cpus, number); delete(m.modes, number) }
	case "cpu_card_interrupts_total":
		g.take = rate(&c.CardInterrupts)
	case "cpu_softirqs_total":
		if labels["kind"] == "net_rx" {
			g.take = rate(&c.NetRX)
		} else {
			g.take = rate(&c.NetTX)
		}
	case "softnet_packets_total":
		g.take = rate(&c.Packets)
	case "softnet_dropped_total":
		g.take = rate(&c.Dropped)
	case "softnet_time_squeezes_total":
		g.take = rate(&c.Squeezes)
	case "softnet_received_rps_total":
		g.take = rate(&c.RPS)
	}
}

// reading returns sorted copies, because the meter's own values change with the next reading.
func (m *Meter) reading(r *sample.Reading, seconds float64) Reading {
	out := Reading{Time: r.Time.UTC().Truncate(time.Millisecond), Seconds: seconds, TCP: m.tcp, UDP: m.udp,
		Drops: m.drops.list(), Warnings: append(slices.Clone(r.Warnings), m.unread()...),
		NoTCP: !m.met["tcp_segments_sent_total"], Interfaces: make([]Interface, 0, len(m.interfaces)),
		CPUs: make([]CPU, 0, len(m.cpus))}
	if m.tcp.Sent > 0 {
		out.TCP.Retransmitted = min(m.tcp.Retransmits/m.tcp.Sent, 1)
	}
	for _, c := range m.interfaces {
		out.Interfaces = append(out.Interfaces, c.copied())
	}
	for _, h := range r.Happened {
		out.Events = append(out.Events, Event{Time: h.Time.UTC(), Change: string(h.Change),
			Interface: h.Interface, Text: h.Text})
	}
	sorting.Func(out.Interfaces, func(a, b Interface) int { return natural(a.Name, b.Name) })
	for number, c := range m.cpus {
		one, times := *c, m.modes[number]
		// The kernel counts CPU time in ticks; a share is relative to what it counted, not to the
		// interval.
		total := 0.0
		for _, t := range times {
			total += t
		}
		if total > 0 {
			one.User, one.System = (times["user"]+times["nice"])/total, times["system"]/total
			one.Softirq, one.IRQ, one.Steal = times["softirq"]/total, times["irq"]/total, times["steal"]/total
			one.Busy = min(max(1-(times["idle"]+times["iowait"])/total, 0), 1)
		}
		out.CPUs = append(out.CPUs, one)
	}
	sorting.Func(out.CPUs, func(a, b CPU) int { return cmp.Compare(a.CPU, b.CPU) })
	return out
}

func (c *card) copied() Interface {
	one := c.Interface
	one.Drops, one.Errors = c.drops.list(), c.errors.list()
	one.Speed = copied(c.Speed)
	if c.Speed != nil && *c.Speed > 0 {
		share := max(c.Receive, c.Transmit) / *c.Speed
		one.Share = &share
	}
	if c.Qdisc != nil {
		q := *c.Qdisc
		one.Qdisc = &q
	}
	one.Queues = make([]Queue, 0, len(c.queues))
	for _, q := range c.queues {
		one.Queues = append(one.Queues, Queue{Queue: q.Queue, Packets: copied(q.Packets),
			Bits: copied(q.Bits), Drops: copied(q.Drops), Interrupts: copied(q.Interrupts)})
	}
	sorting.Func(one.Queues, func(a, b Queue) int { return natural(a.Queue, b.Queue) })
	return one
}

func copied(x *float64) *float64 {
	if x == nil {
		return nil
	}
	y := *x
	return &y
}

// natural compares names so that eth2 comes before eth10.
func natural(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] == b[i] {
			continue
		}
		if x, y := digits(a, i), digits(b, i); x != "" && y != "" {
			if d := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); d != 0 {
				return d
			}
		}
		break
	}
	return cmp.Compare(a, b)
}

// digits returns the number that contains character i of s, without leading zeros; empty: none
// does.
func digits(s string, i int) string {
	digit := func(j int) bool { return j >= 0 && j < len(s) && '0' <= s[j] && s[j] <= '9' }
	begin, end := i, i
	for digit(begin - 1) {
		begin--
	}
	for digit(end) {
		end++
	}
	return strings.TrimLeft(s[begin:end], "0")
}
