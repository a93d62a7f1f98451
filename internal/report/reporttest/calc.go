package reporttest

import (
	"fmt"
	"time"

	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/host/calc"
	"github.com/linerate/linerate/internal/report"
)

// calculations are one document of each kind of calculation.
func calculations() []Document {
	var all []Document
	for _, q := range []interface {
		Result() (*calc.Result, error)
	}{
		calc.Moderation{Packets: 81000, PerInterrupt: 50, RoundTrip: 32 * time.Microsecond, Link: unit.GigabitPerSecond},
		calc.Window{Rate: unit.GigabitPerSecond, RoundTrip: 100 * time.Millisecond, Connections: 40},
		calc.Burst{Buffer: 5000, Transfer: 8192},
		calc.Bus{Kind: "isa", Width: 8, Transfers: 6.7e6, Link: 10e6},
		calc.Polling{HZ: 1000, Burst: 150, Link: unit.GigabitPerSecond},
	} {
		r, err := q.Result()
		if err != nil {
			panic(fmt.Sprintf("calculate %+v: %v", q, err))
		}
		all = append(all, Document{"calc-" + r.What, report.NewCalc(Envelope(), r)})
	}
	return all
}
