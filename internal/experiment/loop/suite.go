package loop

import (
	"time"

	"github.com/linerate/linerate/internal/traffic"
)

// The parts of the suite, which together with the search for a steady state and the opening of
// connections take less than twenty seconds.
const (
	suiteShort  = time.Second     // dozens of pings, thousands of transactions, a thousand datagrams
	suiteStream = 2 * time.Second // of each direction; the search for its steady state may double it
	suiteLoad   = 3 * time.Second // four phases, and half as long again to fill the queues
)

// suiteDatagramRate is payload bits per second in each direction: any useful path carries that, so
// loss means a fault, and its 900 datagrams a second show a loss of one in a thousand.
const suiteDatagramRate = 10e6

// Suite returns the tests of `measure` without a test name: round trip, transactions with and
// without connecting, datagrams, bulk in both directions, the path MTU, and the round trip under
// load, each for at most each.
//
// The order is from the lightest to the heaviest test, so that the queue of one does not disturb
// the next. The path MTU comes before bulk, because a black hole explains a stream that hangs.
func Suite(each, interval time.Duration, streams int) []traffic.Spec {
	short := min(each, suiteShort)
	stream := traffic.Spec{Test: traffic.Stream, Streams: streams, Duration: min(each, suiteStream), WarmUp: -1,
		Interval: interval}
	up, down := stream, stream
	up.Direction, down.Direction = traffic.Up, traffic.Down
	return []traffic.Spec{
		{Test: traffic.Ping, Direction: traffic.Up, Streams: 1, Duration: short, Interval: interval,
			Gap: min(20*time.Millisecond, short), RequestBytes: 56},
		{Test: traffic.RR, Direction: traffic.Up, Streams: 1, Duration: short, Interval: interval, RequestBytes: 1,
			ResponseBytes: 1},
		{Test: traffic.CRR, Direction: traffic.Up, Streams: 1, Duration: short, Interval: interval, RequestBytes: 1,
			ResponseBytes: 1},
		{Test: traffic.UDP, Direction: traffic.Bidir, Streams: 1, Duration: short, Interval: interval,
			RateBitsPerSec: suiteDatagramRate},
		{Test: traffic.MTU, Direction: traffic.Up, Streams: 1, Duration: short, Interval: interval},
		up, down,
		{Test: traffic.Load, Direction: traffic.Up, Streams: streams, Duration: min(each, suiteLoad),
			Interval: interval, Gap: min(10*time.Millisecond, short)},
	}
}
