package browsertest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

type sampled struct {
	labels map[string]string
	value  float64
}

// labelNames are the labels in the order in which they make a key.
var labelNames = []string{"host", "interface", "direction", "place", "kind", "queue", "cpu", "mode", "target",
	"quantile", "test", "q", "switch", "port"}

// key returns the identity of a series. It is written by hand, because every point of every graph
// of every test needs one.
func key(labels map[string]string) string {
	var b strings.Builder
	for _, name := range labelNames {
		b.WriteString(labels[name])
		b.WriteByte(0)
	}
	return b.String()
}

// of returns the series of a metric at a time: the rate of a counter, the value of a gauge.
func (f *fake) of(metric string, t float64) []sampled {
	if f.empty || f.fresh && t < float64(freshSince.Unix()) || t > float64(gapFrom.Unix()) && t < float64(gapTo.Unix()) {
		return nil
	}
	var all []sampled
	add := func(v float64, labels ...string) {
		l := map[string]string{"host": "alpha"}
		for i := 0; i+1 < len(labels); i += 2 {
			l[labels[i]] = labels[i+1]
		}
		all = append(all, sampled{l, v})
	}
	if strings.HasPrefix(metric, "linerate_switch_port_") {
		switch strings.TrimPrefix(metric, "linerate_switch_port_") {
		case "receive_bytes_total", "transmit_bytes_total":
			add(15e6*wave(metric, t), "switch", "core-1", "port", "Gi0/1")
		case "receive_packets_total", "transmit_packets_total":
			add(15e3*wave(metric, t), "switch", "core-1", "port", "Gi0/1")
		case "discards_total":
			add(3*wave(metric, t), "switch", "core-1", "port", "Gi0/1", "direction", "transmit")
		case "errors_total":
			add(0, "switch", "core-1", "port", "Gi0/1", "direction", "receive", "kind", "any")
		}
		return all
	}
	better := t >= float64(changed.Unix())
	for i, name := range f.names() {
		size := 60e6 / float64(i+1)
		in, out := size*wave(name, t), size*0.4*wave(name+"out", t)
		if better && i == 0 {
			in *= 1.6
		}
		if i == 3 {
			in, out = 0, 0
		}
		switch metric {
		case "linerate_interface_receive_bytes_total":
			add(in, "interface", name)
		case "linerate_interface_transmit_bytes_total":
			add(out, "interface", name)
		case "linerate_interface_receive_packets_total":
			add(in/900, "interface", name)
		case "linerate_interface_transmit_packets_total":
			add(out/700, "interface", name)
		case "linerate_interface_receive_multicast_packets_total":
			add(in/40000, "interface", name)
		case "linerate_interface_up":
			add(1, "interface", name)
		case "linerate_interface_errors_total":
			add(0, "interface", name, "direction", "receive", "kind", "crc")
		case "linerate_interface_drops_total":
			ring := 0.0
			if i == 0 && !better {
				ring = 40 * noise("ring", t) * wave("ring", t)
			}
			add(ring, "interface", name, "direction", "receive", "place", "ring")
			add(0, "interface", name, "direction", "receive", "place", "kernel")
			if i == 0 {
				add(4*noise("qdisc", t), "interface", name, "direction", "transmit", "place", "qdisc")
			}
		case "linerate_queue_interrupts_total":
			if i < 2 {
				for q := range 12 {
					add(6000*wave(name+strconv.Itoa(q), t)/float64(q+1), "interface", name, "queue",
						fmt.Sprintf("rx-%d", q))
				}
			}
		}
	}
	for cpu := range 4 {
		c := strconv.Itoa(cpu)
		switch metric {
		case "linerate_cpu_seconds_total":
			busy := 0.0
			for i, mode := range []string{"user", "system", "softirq", "irq", "iowait"} {
				v := []float64{0.12, 0.09, 0.16, 0.02, 0.01}[i] * wave(mode+c, t)
				if cpu == 1 && mode == "softirq" {
					v *= 3
				}
				busy += v
				add(v, "cpu", c, "mode", mode)
			}
			add(1-busy, "cpu", c, "mode", "idle")
		case "linerate_cpu_card_interrupts_total":
			add(9000*wave("irq"+c, t)/float64(cpu+1), "cpu", c)
		}
	}
	switch metric {
	case "linerate_tcp_retransmits_total":
		add(6 * noise("retransmits", t) * wave("r", t))
	case "linerate_tcp_timeouts_total":
		add(math.Floor(noise("timeouts", t) * 1.2))
	case "linerate_host_drops_total":
		add(0, "place", "softnet")
	}
	if strings.HasPrefix(metric, "linerate_measurement_") {
		// One each half hour: it is seen in the half minute after it.
		if math.Mod(t, 1800) > 300 {
			return nil
		}
		for i, target := range []string{"beta", "gamma"} {
			switch metric {
			case "linerate_measurement_rtt_seconds":
				add(0.0004*float64(i+1)*wave(target, t), "target", target, "quantile", "0.5", "test", "ping",
					"direction", "both")
				add(0.0011*float64(i+1)*wave(target, t), "target", target, "quantile", "0.99", "test", "ping",
					"direction", "both")
			case "linerate_measurement_throughput_bits_per_second":
				add(9.4e8*(0.9+0.1*noise(target, t)), "target", target, "test", "stream", "direction", "transmit")
			case "linerate_measurement_loss_ratio":
				add(0, "target", target, "test", "stream", "direction", "transmit")
			}
		}
	}
	return all
}

// evaluate is as much of PromQL as the page asks for. What it does not know is a panic, and so a
// failed test.
func (f *fake) evaluate(e parser.Expr, t float64) []sampled {
	switch e := e.(type) {
	case *parser.ParenExpr:
		return f.evaluate(e.Expr, t)
	case *parser.VectorSelector:
		at := t - e.OriginalOffset.Seconds()
		var found []sampled
		for _, s := range f.of(e.Name, at) {
			if slices.ContainsFunc(e.LabelMatchers,
				func(m *labels.Matcher) bool { return m.Name != "__name__" && !m.Matches(s.labels[m.Name]) }) {
				continue
			}
			if strings.HasSuffix(e.Name, "_total") {
				s.value *= at - float64(changed.Unix()) + 30*86400
			}
			found = append(found, s)
		}
		return found
	case *parser.AggregateExpr:
		return aggregate(e, f.evaluate(e.Expr, t))
	case *parser.Call:
		return f.call(e, t)
	case *parser.BinaryExpr:
		return f.binary(e, t)
	}
	panic(fmt.Sprintf("no answer to %T %s", e, e))
}

func (f *fake) call(e *parser.Call, t float64) []sampled {
	switch e.Func.Name {
	case "max_over_time":
		return f.highest(e.Args[0], t)
	case "rate", "last_over_time":
		inner := *e.Args[0].(*parser.MatrixSelector).VectorSelector.(*parser.VectorSelector)
		found := f.evaluate(&inner, t)
		if e.Func.Name == "rate" {
			for i := range found {
				found[i].value /= t - float64(changed.Unix()) + 30*86400
			}
		}
		return found
	case "timestamp":
		found := f.evaluate(e.Args[0], t)
		for i := range found {
			found[i].value = t
			if f.silent {
				found[i].value -= 200
			}
		}
		return found
	case "label_replace":
		found := f.evaluate(e.Args[0], t)
		for i := range found {
			labels := map[string]string{e.Args[1].(*parser.StringLiteral).Val: e.Args[2].(*parser.StringLiteral).Val}
			for k, v := range found[i].labels {
				labels[k] = v
			}
			found[i].labels = labels
		}
		return found
	}
	panic("no answer to " + e.Func.Name)
}

// highest answers to the highest rate in a window: of the minutes that the hub keeps, or of the
// seconds of a subquery.
func (f *fake) highest(e parser.Expr, t float64) []sampled {
	var name, length = "", 0.0
	var matchers []*labels.Matcher
	switch e := e.(type) {
	case *parser.MatrixSelector:
		of := e.VectorSelector.(*parser.VectorSelector)
		counter, ok := strings.CutSuffix(of.Name, "_peak_per_second")
		if !ok {
			panic("no answer to the maximum of " + of.Name)
		}
		name, matchers, length = counter+"_total", of.LabelMatchers, e.Range.Seconds()
	case *parser.SubqueryExpr:
		of := e.Expr.(*parser.Call).Args[0].(*parser.MatrixSelector).VectorSelector.(*parser.VectorSelector)
		name, matchers, length = of.Name, of.LabelMatchers, e.Range.Seconds()
	}
	found := f.evaluate(&parser.Call{Func: parser.Functions["rate"], Args: parser.Expressions{
		&parser.MatrixSelector{VectorSelector: &parser.VectorSelector{Name: name, LabelMatchers: matchers}}}}, t)
	at := float64(fakeNow.Unix()) - 20*60
	for i := range found {
		found[i].value *= 1.3
		if f.burst && name == "linerate_interface_receive_bytes_total" && found[i].labels["interface"] == f.name(0) &&
			at <= t && at > t-length {
			found[i].value = 5e9
		}
	}
	return found
}

func (f *fake) binary(e *parser.BinaryExpr, t float64) []sampled {
	if n, ok := e.LHS.(*parser.NumberLiteral); ok && e.Op == parser.SUB {
		found := f.evaluate(e.RHS, t)
		for i := range found {
			found[i].value = n.Val - found[i].value
		}
		return found
	}
	left := f.evaluate(e.LHS, t)
	if n, ok := e.RHS.(*parser.NumberLiteral); ok && e.Op == parser.MUL {
		for i := range left {
			left[i].value *= n.Val
		}
		return left
	}
	right := make(map[string]float64)
	var all []sampled
	for _, s := range f.evaluate(e.RHS, t) {
		right[key(s.labels)] = s.value
		all = append(all, s)
	}
	var found []sampled
	for _, s := range left {
		r, ok := right[key(s.labels)]
		switch {
		case e.Op == parser.LOR:
			found = append(found, s)
		case e.Op == parser.SUB && ok:
			s.value -= r
			found = append(found, s)
		case e.Op == parser.LTE && ok && s.value <= r:
			found = append(found, s)
		}
	}
	if e.Op == parser.LOR {
		known := make(map[string]bool)
		for _, s := range left {
			known[key(s.labels)] = true
		}
		for _, s := range all {
			if !known[key(s.labels)] {
				found = append(found, s)
			}
		}
	}
	return found
}

func aggregate(e *parser.AggregateExpr, all []sampled) []sampled {
	groups, order, size := map[string]*sampled{}, []string{}, map[string]float64{}
	for _, s := range all {
		labels := map[string]string{}
		for _, name := range e.Grouping {
			if v := s.labels[name]; v != "" {
				labels[name] = v
			}
		}
		key := key(labels)
		size[key]++
		g := groups[key]
		if g == nil {
			groups[key] = &sampled{labels, s.value}
			order = append(order, key)
			continue
		}
		switch e.Op {
		case parser.SUM, parser.AVG:
			g.value += s.value
		case parser.MAX:
			g.value = max(g.value, s.value)
		case parser.MIN:
			g.value = min(g.value, s.value)
		default:
			panic("no answer to " + e.String())
		}
	}
	var out []sampled
	for _, key := range order {
		if e.Op == parser.AVG {
			groups[key].value /= size[key]
		}
		out = append(out, *groups[key])
	}
	return out
}
