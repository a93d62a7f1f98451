package top

import (
	"math"

	"github.com/linerate/linerate/internal/report/rows"
)

// Rows returns the interfaces of every reading as a table, one a row; last: those of the newest
// reading alone.
func (d *Document) Rows(last bool) rows.Table {
	t := rows.Table{Name: "interface", Labels: []string{"host", "interface", "driver", "kind"}, Values: []rows.Value{
		{Name: "up", Help: "1: the interface is up and has a carrier"},
		{Name: "speed_bits_per_second", Help: "Speed of the link"},
		{Name: "receive_bits_per_second", Help: "Bits received in the interval"},
		{Name: "transmit_bits_per_second", Help: "Bits sent in the interval"},
		{Name: "receive_packets_per_second", Help: "Packets received in the interval"},
		{Name: "transmit_packets_per_second", Help: "Packets sent in the interval"},
		{Name: "receive_drops_packets_per_second", Help: "Packets lost on their way in, at all places of the interface"},
		{Name: "transmit_drops_packets_per_second", Help: "Packets lost on their way out, at all places of the interface"},
		{Name: "link_share_ratio", Help: "Share of the speed in use, in the busier direction"},
		{Name: "interval_seconds", Help: "Length of the interval"},
	}}
	readings := d.Readings
	if last && len(readings) > 0 {
		readings = readings[len(readings)-1:]
	}
	for _, r := range readings {
		for _, i := range r.Interfaces {
			up, speed, share := 0.0, math.NaN(), math.NaN()
			if i.Up {
				up = 1
			}
			if i.Speed != nil {
				speed = *i.Speed
			}
			if i.Share != nil {
				share = *i.Share
			}
			lost := map[string]float64{}
			for _, drop := range i.Drops {
				lost[drop.Direction] += drop.Rate
			}
			t.Rows = append(t.Rows, rows.Row{Time: r.Time, Labels: []string{d.Host.Name, i.Name, i.Driver, i.Kind},
				Values: []float64{up, speed, i.Receive, i.Transmit, i.ReceivePackets, i.TransmitPackets, lost["receive"],
					lost["transmit"], share, r.Seconds}})
		}
	}
	return t
}
