package rows

import (
	"math"
	"strconv"
	"time"

	"github.com/linerate/linerate/internal/base/stats"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/traffic"
)

// unknown is the value of what a row does not have.
var unknown = math.NaN()

// positive returns a figure that is never zero when measured.
func positive(v float64) float64 {
	if v == 0 {
		return unknown
	}
	return v
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Measure returns the tests of a measurement, one a row.
func Measure(d *report.MeasureDocument) Table {
	t := Table{Name: "measure", Labels: []string{"host", "target", "number", "test", "direction"}, Values: []Value{
		{"throughput_bits_per_second", "Payload at the receiver"},
		{"up_bits_per_second", "Payload from the near to the far end, of a test in both directions"},
		{"down_bits_per_second", "Payload from the far to the near end, of a test in both directions"},
		{"transactions_per_second", "Requests with their responses, or connections"},
		{"packets_per_second", "Packets received"},
		{"loss_ratio", "Share of packets not received"},
		{"rtt_min_seconds", "Shortest round trip"},
		{"rtt_mean_seconds", "Mean round trip"},
		{"rtt_p50_seconds", "Median round trip"},
		{"rtt_p90_seconds", "Round trip that 90 of 100 stay below"},
		{"rtt_p99_seconds", "Round trip that 99 of 100 stay below"},
		{"rtt_p999_seconds", "Round trip that 999 of 1000 stay below"},
		{"rtt_max_seconds", "Longest round trip"},
		{"added_seconds", "Round trip that the load adds"},
		{"retransmits_total", "Segments sent again in the test"},
		{"mtu_bytes", "Largest IP packet that passes"},
		{"mss_bytes", "Largest segment of the connections"},
		{"streams", "Connections at the same time"},
		{"duration_seconds", "Measured time, without the warm-up"},
		{"near_cpu_seconds", "Processor time of the near host"},
		{"far_cpu_seconds", "Processor time of the far host"},
	}}
	for n, r := range d.Tests {
		lost, resent, added := unknown, unknown, unknown
		if r.LossRatio != nil {
			lost = *r.LossRatio
		}
		if r.RetransmitsTotal != nil {
			resent = float64(*r.RetransmitsTotal)
		}
		if r.Load != nil {
			added = r.Load.AddedSeconds
		}
		rtt := r.RTT
		if rtt == nil {
			rtt = &stats.Latencies{}
		}
		values := []float64{positive(r.ThroughputBitsPerSec), positive(r.UpBitsPerSec), positive(r.DownBitsPerSec),
			positive(r.TransactionsPerSec), positive(r.PacketsPerSec), lost, positive(rtt.Min), positive(rtt.Mean),
			positive(rtt.P50), positive(rtt.P90), positive(rtt.P99), positive(rtt.P999), positive(rtt.Max), added, resent,
			positive(float64(r.MTUBytes)), positive(float64(r.MSSBytes)), float64(r.Streams), r.DurationSeconds,
			positive(r.Ends.Local.CPUSeconds), positive(r.Ends.Remote.CPUSeconds)}
		// Where nothing got through, zero is the figure, and the one that matters.
		switch r.Test {
		case traffic.Stream, traffic.UDP:
			values[0] = r.ThroughputBitsPerSec
			if r.Direction == traffic.Bidir {
				values[1], values[2] = r.UpBitsPerSec, r.DownBitsPerSec
			}
			if r.Test == traffic.UDP {
				values[4] = r.PacketsPerSec
			}
		case traffic.RR, traffic.CRR:
			values[3] = r.TransactionsPerSec
		case traffic.Ping, traffic.MTU, traffic.Load, traffic.Burst:
		}
		at := r.StartTime
		if at.IsZero() {
			at = d.Time
		}
		t.Rows = append(t.Rows, Row{Time: at, Values: values,
			Labels: []string{d.Host.Name, d.Target, strconv.Itoa(n + 1), string(r.Test), string(r.Direction)}})
	}
	return t
}

// History returns the changes of a journal, one a row.
func History(d *report.HistoryDocument) Table {
	t := Table{Name: "change",
		Labels: []string{"host", "id", "knob", "side", "from", "to", "state", "run"},
		Values: []Value{
			{"time_seconds", "When the change was made, since 1970"},
			{"in_force", "1: the host has the new value; 0: the change was undone"},
			{"persisted", "1: the change survives a restart"},
		}}
	for _, c := range d.Changes {
		t.Rows = append(t.Rows, Row{Time: c.Time,
			Labels: []string{d.Host.Name, c.ID, string(c.Knob), c.Side, string(c.From), string(c.To), string(c.State), c.Run},
			Values: []float64{seconds(c.Time), flag(c.State != "undone" && c.State != "dry-run"), flag(c.Persisted)}})
	}
	return t
}

// Runs returns the stored tunes, one a row.
func Runs(d *report.RunsDocument) Table {
	t := Table{Name: "run", Labels: []string{"host", "run", "target", "goal", "result", "state"}, Values: []Value{
		{"time_seconds", "When the run was stored, since 1970"},
		{"effect_ratio", "Figure after the run over the one before"},
		{"effect_low_ratio", "Lower end of the interval of the effect"},
		{"effect_high_ratio", "Upper end of the interval of the effect"},
		{"trials", "Changes that the run tried"},
		{"segments", "Measurements of the run"},
		{"kept", "Changes that the run kept"},
	}}
	for _, r := range d.Runs {
		at := unknown
		row := Row{Time: d.Time, Labels: []string{d.Host.Name, r.Run, r.Target, r.Goal, r.Result, string(r.State)}}
		if r.Time != nil {
			row.Time, at = *r.Time, seconds(*r.Time)
		}
		row.Values = []float64{at, positive(r.Ratio), positive(r.Low), positive(r.High), float64(r.Trials),
			float64(r.Segments), float64(len(r.Kept))}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// seconds returns a moment as a number of seconds since 1970, to the millisecond.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
