package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/traffic"
)

// ErrNotAMeasurement reports that a file is not a linerate.measure document.
var ErrNotAMeasurement = errors.New("not the document of a measurement")

// DecodeMeasure reads a linerate.measure/1 document of this version or a later one; it ignores
// unknown keys. For anything else the error is ErrNotAMeasurement.
func DecodeMeasure(doc []byte) (*MeasureDocument, error) {
	var d MeasureDocument
	if err := json.Unmarshal(doc, &d); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAMeasurement, err)
	}
	if d.Schema != SchemaMeasure {
		return nil, fmt.Errorf("%w: schema %.40q", ErrNotAMeasurement, d.Schema)
	}
	FillSlices(&d)
	return &d, nil
}

// Figures returns the results of tests on one line, with the name of each test where there are
// several; empty when no test has a result.
func Figures(tests []traffic.Result) string {
	var figures []string
	for _, r := range tests {
		figure := ""
		switch {
		case r.ThroughputBitsPerSec > 0:
			figure = unit.BitRate(r.ThroughputBitsPerSec).String()
		case r.TransactionsPerSec > 0:
			figure = unit.FormatCount(r.TransactionsPerSec) + " transactions/s"
		case r.RTT != nil:
			figure = "round trip " + unit.FormatSeconds(r.RTT.P50)
		case r.MTUBytes > 0:
			figure = fmt.Sprintf("%d bytes", r.MTUBytes)
		default:
			continue
		}
		if r.LossRatio != nil && *r.LossRatio > 0 {
			figure += ", " + unit.FormatPercent(*r.LossRatio) + " lost"
		}
		if len(tests) > 1 {
			figure = Named(r) + " " + figure
		}
		figures = append(figures, figure)
	}
	return strings.Join(figures, " · ")
}

// Named returns the name of a test with its direction, if it has one.
func Named(r traffic.Result) string {
	if d := Direction(r); d != "both" {
		return string(r.Test) + " " + d
	}
	return string(r.Test)
}

// Direction names the direction of a test; round trips, transactions and the search for the MTU use
// both.
func Direction(r traffic.Result) string {
	if r.Test == traffic.Stream || r.Test == traffic.UDP || r.Test == traffic.Burst {
		return string(r.Direction)
	}
	return "both"
}
