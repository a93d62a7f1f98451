// Package standstill finds the moments in which this process did not run: a signal stopped it, its
// control group froze, or the host of its machine gave it no CPU.
//
// # Model
//
// [Watch] looks at the clock at every tick. A process that runs looks again after one tick. A
// process that stood still looks again when it continues, so the time between two looks is at least
// the length of the standstill.
//
// # Units
//
// Times are those of the monotonic clock.
//
// # Sources
//
// time.Ticker drops the ticks of a pause but for one.
//
// # Limits
//
// A standstill shorter than a tick is not seen. CLOCK_MONOTONIC does not count while the host is
// suspended, and neither does Watch.
package standstill
