package switches

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/switches/mib"
	"github.com/linerate/linerate/internal/host/sample"
)

func gauge(name, help string, labels ...string) *sample.Metric {
	return &sample.Metric{Name: name, Kind: sample.Gauge, Labels: append([]string{"switch"}, labels...), Help: help}
}

func counter(name, help string, labels ...string) *sample.Metric {
	return &sample.Metric{Name: name, Kind: sample.Counter, Labels: append([]string{"switch", "port"}, labels...),
		Help: help}
}

var (
	answers = gauge("linerate_switch_up", "1 if the switch answered the last reading, otherwise 0 (SNMP).")
	uptime  = gauge("linerate_switch_uptime_seconds", "How long the agent of the switch has run (sysUpTime).")
	took    = gauge("linerate_switch_read_seconds", "How long the last reading of the switch took.")

	info = gauge("linerate_switch_port_info",
		"1; the labels say what an operator wrote, the duplex mode and the neighbour (ifAlias, dot3StatsDuplexStatus, LLDP).",
		"port", "alias", "duplex", "neighbour")
	portUp  = gauge("linerate_switch_port_up", "1 if the port has a link, otherwise 0 (ifOperStatus).", "port")
	speedOf = gauge("linerate_switch_port_speed_bits_per_second",
		"Speed of the port (ifHighSpeed, or ifSpeed); absent if the switch does not say it.", "port")

	inBytes = counter("linerate_switch_port_receive_bytes_total",
		"Bytes that the port received (ifHCInOctets, or ifInOctets).")
	outBytes = counter("linerate_switch_port_transmit_bytes_total",
		"Bytes that the port sent (ifHCOutOctets, or ifOutOctets).")
	inPackets = counter("linerate_switch_port_receive_packets_total",
		"Frames that the port received intact (ifHCInUcastPkts and its kin).")
	outPackets = counter("linerate_switch_port_transmit_packets_total",
		"Frames that the port was asked to send (ifHCOutUcastPkts and its kin).")
	discards = counter("linerate_switch_port_discards_total",
		"Intact frames that the switch dropped: transmit, because a queue was full (ifOutDiscards), "+
			"receive, mostly by its rules (ifInDiscards).",
		"direction")
	errorsTotal = counter("linerate_switch_port_errors_total",
		"Damaged or unsendable frames; kind any is all of a direction (ifInErrors, "+
			"ifOutErrors), others are parts of it (EtherLike-MIB).",
		"direction", "kind")
	pauses = counter("linerate_switch_port_pause_frames_total",
		"Pause frames of flow control (dot3InPauseFrames, dot3OutPauseFrames).", "direction")
)

// Metrics returns the metrics of switches.
func Metrics() []*sample.Metric {
	return []*sample.Metric{answers, uptime, took, info, portUp, speedOf, inBytes, outBytes, inPackets, outPackets,
		discards, errorsTotal, pauses}
}

// figure is a series of a port that counters add up to.
type figure struct {
	metric   *sample.Metric
	labels   []string // behind switch and port
	counters []mib.Counter
	always   bool // also while it is zero
}

// figures of a port. Most ports never have an error of most kinds, so those series begin with their
// first.
var figures = []figure{
	{inBytes, nil, []mib.Counter{mib.InBytes}, true},
	{outBytes, nil, []mib.Counter{mib.OutBytes}, true},
	{inPackets, nil, framesIn, true},
	{outPackets, nil, framesOut, true},
	{discards, []string{"receive"}, []mib.Counter{mib.InDiscards}, true},
	{discards, []string{"transmit"}, []mib.Counter{mib.OutDiscards}, true},
	{errorsTotal, []string{"receive", "any"}, []mib.Counter{mib.InErrors}, true},
	{errorsTotal, []string{"transmit", "any"}, []mib.Counter{mib.OutErrors}, true},
	{errorsTotal, []string{"receive", "fcs"}, []mib.Counter{mib.FCSErrors}, false},
	{errorsTotal, []string{"receive", "alignment"}, []mib.Counter{mib.AlignmentErrors}, false},
	{errorsTotal, []string{"receive", "symbol"}, []mib.Counter{mib.SymbolErrors}, false},
	{errorsTotal, []string{"receive", "too-long"}, []mib.Counter{mib.TooLong}, false},
	{errorsTotal, []string{"receive", "internal"}, []mib.Counter{mib.InternalReceive}, false},
	{errorsTotal, []string{"transmit", "late-collision"}, []mib.Counter{mib.LateCollisions}, false},
	{errorsTotal, []string{"transmit", "excessive-collisions"}, []mib.Counter{mib.ExcessiveCollisions}, false},
	{errorsTotal, []string{"transmit", "carrier"}, []mib.Counter{mib.CarrierSense}, false},
	{errorsTotal, []string{"transmit", "internal"}, []mib.Counter{mib.InternalTransmit}, false},
	{pauses, []string{"receive"}, []mib.Counter{mib.InPause}, false},
	{pauses, []string{"transmit"}, []mib.Counter{mib.OutPause}, false},
}

type portSeries struct {
	figures   []*sample.Series // in the order of figures; nil: not begun
	up, speed *sample.Series
	info      *sample.Series
	hasSpeed  bool
}

type switchSeries struct{ answers, uptime, took *sample.Series }

// Readings returns the readings for the history after a snapshot: the current one, filed under the
// time at, and before it one with the zeros of the series that begin now, filed under the time of
// the reading before; nil if none begins. Without the zero the first growth would be no growth.
func (k *Keeper) Readings(at, before time.Time) (now, zeros *sample.Reading) {
	k.begin()
	k.shown = true
	now = &sample.Reading{Time: at}
	zeros = &sample.Reading{Time: before}
	add := func(s *sample.Series, v float64) { now.Points = append(now.Points, sample.Point{Series: s, Value: v}) }
	add(k.own.answers, 1)
	add(k.own.uptime, k.last.Uptime.Seconds())
	add(k.own.took, k.last.Took.Seconds())
	for _, name := range slices.Sorted(maps.Keys(k.ports)) {
		p := k.ports[name]
		if !p.seen {
			now.Ended = append(now.Ended, p.series.all()...)
			delete(k.ports, name)
			continue
		}
		first := p.series == nil
		if first {
			p.series = &portSeries{figures: make([]*sample.Series, len(figures)),
				up:    &sample.Series{Metric: portUp, Values: []string{k.name, name}},
				speed: &sample.Series{Metric: speedOf, Values: []string{k.name, name}}}
		}
		add(p.series.up, truth(p.last.Up))
		if p.last.Speed > 0 {
			p.series.hasSpeed = true
			add(p.series.speed, p.last.Speed)
		} else if p.series.hasSpeed {
			p.series.hasSpeed = false
			now.Ended = append(now.Ended, p.series.speed)
		}
		if values := k.about(&p.last); p.series.info == nil || !slices.Equal(p.series.info.Values, values) {
			if p.series.info != nil {
				now.Ended = append(now.Ended, p.series.info)
			}
			p.series.info = &sample.Series{Metric: info, Values: values}
		}
		add(p.series.info, 1)
		for i, f := range figures {
			value, known := p.value(f)
			s := p.series.figures[i]
			switch {
			case !known && s != nil:
				now.Ended = append(now.Ended, s)
				p.series.figures[i] = nil
				continue
			case !known || s == nil && !f.always && value == 0:
				continue
			case s == nil:
				s = &sample.Series{Metric: f.metric, Values: append([]string{k.name, name}, f.labels...)}
				p.series.figures[i] = s
				if !first && value > 0 && !before.IsZero() {
					zeros.Points = append(zeros.Points, sample.Point{Series: s})
				}
			}
			add(s, value)
		}
	}
	if len(zeros.Points) == 0 {
		zeros = nil
	}
	return now, zeros
}

// begin makes the series of the switch itself.
func (k *Keeper) begin() {
	if k.own == nil {
		of := func(m *sample.Metric) *sample.Series { return &sample.Series{Metric: m, Values: []string{k.name}} }
		k.own = &switchSeries{of(answers), of(uptime), of(took)}
	}
}

// Silent returns the reading for a switch that did not answer: all but that is unknown now.
func (k *Keeper) Silent(at time.Time) *sample.Reading {
	k.begin()
	r := &sample.Reading{Time: at, Points: []sample.Point{{Series: k.own.answers}}}
	if k.shown {
		k.shown = false
		r.Ended = []*sample.Series{k.own.uptime, k.own.took}
		for _, p := range k.ports {
			r.Ended = append(r.Ended, p.series.all()...)
		}
	}
	return r
}

// value returns the sum of a figure; false if no counter of it is known.
func (p *port) value(f figure) (sum float64, known bool) {
	for _, c := range f.counters {
		if p.known[c] {
			sum, known = sum+p.sums[c], true
		}
	}
	return sum, known
}

func (k *Keeper) about(p *mib.Port) []string {
	return []string{k.name, p.Name, p.Alias, string(p.Duplex), neighbourOf(p)}
}

// neighbourOf names the neighbours of a port in a few words.
func neighbourOf(p *mib.Port) string {
	var all []string
	for _, n := range p.Neighbours {
		name := n.System
		if name == "" {
			name = n.Chassis
		}
		all = append(all, strings.TrimSpace(name+" "+n.Port))
	}
	t := strings.Join(all, ", ")
	const most = 60 // runes: a stored label has at most 256 bytes
	if r := []rune(t); len(r) > most {
		t = string(r[:most]) + "…"
	}
	return t
}

func (s *portSeries) all() []*sample.Series {
	if s == nil {
		return nil
	}
	out := []*sample.Series{s.up, s.speed, s.info}
	for _, f := range s.figures {
		if f != nil {
			out = append(out, f)
		}
	}
	return slices.DeleteFunc(out, func(x *sample.Series) bool { return x == nil })
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
