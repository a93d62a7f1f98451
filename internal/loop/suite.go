package loop

import (
	"time"

	"github.com/linerate/linerate/internal/traffic"
)

// Suite is what `measure` runs when no test is named: round trip, transactions, and bulk both ways, each for at most each.
//
// The order is from the lightest to the heaviest test, so that no queue of one stands in the way of the next. Ping
// and transactions need less time than bulk: a second of the one and two of the other give dozens to thousands of
// samples.
func Suite(each, interval time.Duration, streams int) []traffic.Spec {
	stream := traffic.Spec{Test: traffic.Stream, Streams: streams, Duration: each, WarmUp: -1, Interval: interval}
	up, down := stream, stream
	up.Direction, down.Direction = traffic.Up, traffic.Down
	return []traffic.Spec{
		{Test: traffic.Ping, Direction: traffic.Up, Streams: 1, Duration: min(each, time.Second), Interval: interval, Gap: 50 * time.Millisecond, RequestBytes: 56},
		{Test: traffic.RR, Direction: traffic.Up, Streams: 1, Duration: min(each, 2*time.Second), Interval: interval, RequestBytes: 1, ResponseBytes: 1},
		up, down,
	}
}
