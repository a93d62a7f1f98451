package peak

import (
	"strings"
	"time"

	"github.com/linerate/linerate/internal/host/sample"
)

// counters are those whose peaks the keeper has, of package sample.
var counters = []string{
	"linerate_interface_receive_bytes_total",
	"linerate_interface_transmit_bytes_total",
	"linerate_interface_receive_packets_total",
	"linerate_interface_transmit_packets_total",
	"linerate_interface_receive_multicast_packets_total",
	"linerate_interface_drops_total",
	"linerate_interface_errors_total",
	"linerate_host_drops_total",
	"linerate_tcp_retransmits_total",
	"linerate_tcp_timeouts_total",
}

// Suffix ends the names of all metrics of this package.
const Suffix = "_peak_per_second"

// NameOf returns the name of the peaks of a counter.
func NameOf(counter string) string { return strings.TrimSuffix(counter, "_total") + Suffix }

// Metrics returns the metrics of this package.
func Metrics() []*sample.Metric {
	var all []*sample.Metric
	for _, c := range sample.Metrics() {
		if m := of[c.Name]; m != nil {
			all = append(all, m)
		}
	}
	return all
}

// of has the metric of the peaks of each counter, by the counter's name.
var of = metrics()

func metrics() map[string]*sample.Metric {
	known := make(map[string]*sample.Metric)
	for _, m := range sample.Metrics() {
		known[m.Name] = m
	}
	all := make(map[string]*sample.Metric, len(counters))
	for _, name := range counters {
		all[name] = &sample.Metric{
			Name: NameOf(name), Kind: sample.Gauge, Labels: known[name].Labels,
			Help: "Highest rate of " + name + " between two readings of a minute. No sample: it did not grow.",
		}
	}
	return all
}

// track is what the keeper knows of one counter.
type track struct {
	peak  *sample.Series
	value float64       // of the last reading that had it
	at    time.Duration // of that reading, since boot
	most  float64       // highest rate in the minute under way
}

// Keeper has the peaks of one source of readings. Its zero value is ready. It belongs to one
// goroutine.
type Keeper struct {
	tracks map[*sample.Series]*track
	end    time.Time // of the minute under way
	ended  []*track  // in the minute under way
}

// Take takes the next reading. It returns the reading of a minute that is over, with the peaks of
// that minute, or nil. The caller may keep it.
func (k *Keeper) Take(r *sample.Reading) *sample.Reading {
	end := r.Time.Add(time.Minute - 1).Truncate(time.Minute)
	var over *sample.Reading
	switch {
	case k.tracks == nil:
		k.tracks = make(map[*sample.Series]*track)
	case end.Before(k.end): // the clock was set back: the history has these minutes
		k.clear()
	case end.After(k.end):
		over = k.flush() // no reading at the end of that minute
	}
	k.end = end
	for _, s := range r.Ended {
		if t := k.tracks[s]; t != nil {
			delete(k.tracks, s)
			k.ended = append(k.ended, t)
		}
	}
	for _, p := range r.Points {
		k.point(p, r.SinceBoot)
	}
	if over == nil && r.Time.Equal(end) {
		over = k.flush()
	}
	return over
}

func (k *Keeper) point(p sample.Point, at time.Duration) {
	t := k.tracks[p.Series]
	if t == nil {
		m := of[p.Series.Metric.Name]
		if m == nil {
			return
		}
		k.tracks[p.Series] = &track{peak: &sample.Series{Metric: m, Values: p.Series.Values}, value: p.Value, at: at}
		return
	}
	if grown, took := p.Value-t.value, at-t.at; grown > 0 && took > 0 {
		t.most = max(t.most, grown/took.Seconds())
	}
	t.value, t.at = p.Value, at
}

// flush returns the peaks of the minute under way, or nil if there are none, and begins the next.
func (k *Keeper) flush() *sample.Reading {
	r := &sample.Reading{Time: k.end}
	add := func(t *track) {
		if t.most > 0 {
			r.Points = append(r.Points, sample.Point{Series: t.peak, Value: t.most})
			t.most = 0
		}
	}
	for _, t := range k.tracks {
		add(t)
	}
	for _, t := range k.ended {
		add(t)
		r.Ended = append(r.Ended, t.peak)
	}
	k.ended = nil
	if len(r.Points)+len(r.Ended) == 0 {
		return nil
	}
	return r
}

// clear forgets the minute under way.
func (k *Keeper) clear() {
	for _, t := range k.tracks {
		t.most = 0
	}
}
