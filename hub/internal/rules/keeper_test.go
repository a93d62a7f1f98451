package rules

import (
	"testing"
	"time"

	"github.com/linerate/linerate/internal/firewall/tally"
	"github.com/linerate/linerate/internal/host/sample"
)

// TestTake: a series begins at zero, grows by what is counted, keeps its value when the counter is
// set anew, and ends with its rule.
func TestTake(t *testing.T) {
	var k Keeper
	at := time.Unix(1_700_000_000, 0)
	house := func(n int, bytes, packets uint64) tally.Count {
		return tally.Count{Table: "ip filter", Chain: "forward", Name: "house", Match: []string{"in", "out"}[n], Bytes: bytes,
			Packets: packets}
	}
	value := func(r *sample.Reading, m *sample.Metric, match string) float64 {
		for _, p := range r.Points {
			if p.Series.Metric == m && p.Series.Values[3] == match {
				return p.Value
			}
		}
		return -1
	}
	var first *sample.Series
	for i, c := range []struct {
		counts         []tally.Count
		bytes, packets float64 // of the first; -1: none
		ended          int
	}{
		{[]tally.Count{house(0, 1000, 10), house(1, 5, 5)}, 0, 0, 0},
		{[]tally.Count{house(0, 1700, 17), house(1, 5, 5)}, 700, 7, 0},
		{[]tally.Count{house(0, 50, 1), house(1, 5, 5)}, 700, 7, 0}, // set to zero in between
		{[]tally.Count{house(0, 90, 2), house(1, 5, 5)}, 740, 8, 0},
		{[]tally.Count{house(1, 6, 6)}, -1, -1, 2},
		{[]tally.Count{house(0, 90, 2), house(1, 6, 6)}, 0, 0, 0},
		{nil, -1, -1, 4},
	} {
		r := k.Take(at.Add(time.Duration(i)*Interval), c.counts, 0)
		if b, p := value(r, bytesTotal, "in"), value(r, packetsTotal, "in"); b != c.bytes || p != c.packets ||
			len(r.Ended) != c.ended {
			t.Errorf("reading %d: %v bytes, %v packets, %d series ended; want %v, %v, %d", i, b, p, len(r.Ended), c.bytes,
				c.packets, c.ended)
		}
		switch {
		case i == 0:
			first = r.Points[0].Series
		case i < 4 && r.Points[0].Series != first, i == 5 && r.Points[0].Series == first:
			t.Errorf("reading %d: the series is not the one it should be", i)
		}
	}
}
