package engine

import "sync/atomic"

// Stage is where one end of a test is.
type Stage int32

// The stages, in the order in which a test goes through them.
const (
	Warm     Stage = iota // before the measured window
	Measured              // inside it
	Tail                  // after it: keep the load up for the other end
	Stopped               // every worker returns
)

// Phase is the stage that all workers of one end share. Every worker reads it in every round and it
// is written four times per test, so its cache line stays shared. The padding keeps it alone on the
// 64 bytes that x86-64 and most of arm64 move at once. The zero value is Warm.
type Phase struct {
	_ [64]byte
	v atomic.Int32
	_ [60]byte
}

// Is returns the stage.
func (p *Phase) Is() Stage { return Stage(p.v.Load()) }

// Set moves on to a stage.
func (p *Phase) Set(to Stage) { p.v.Store(int32(to)) }
