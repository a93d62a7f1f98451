package rows_test

import (
	"testing"

	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/rows"
	"github.com/linerate/linerate/internal/traffic"
)

// TestNothingGotThrough: where a test moved nothing, its figures are 0 and not absent: a program
// that watches for a rate of 0 must see it. Figures that the test does not have are absent.
func TestNothingGotThrough(t *testing.T) {
	for test, want := range map[traffic.Test][]string{
		traffic.Stream: {"throughput_bits_per_second", "up_bits_per_second", "down_bits_per_second"},
		traffic.UDP: {"throughput_bits_per_second", "up_bits_per_second", "down_bits_per_second",
			"packets_per_second"},
		traffic.RR:   {"transactions_per_second"},
		traffic.CRR:  {"transactions_per_second"},
		traffic.Ping: nil,
	} {
		table := rows.Measure(&report.MeasureDocument{Tests: []traffic.Result{{Test: test, Direction: traffic.Bidir}}})
		zero := make(map[string]bool)
		for i, v := range table.Rows[0].Values {
			zero[table.Values[i].Name] = v == 0
		}
		for _, name := range []string{"throughput_bits_per_second", "up_bits_per_second", "down_bits_per_second",
			"transactions_per_second", "packets_per_second"} {
			expected := false
			for _, w := range want {
				expected = expected || w == name
			}
			if zero[name] != expected {
				t.Errorf("%s: %s is 0: %v, want %v", test, name, zero[name], expected)
			}
		}
	}
}
