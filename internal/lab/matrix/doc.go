// Package matrix asks whether the program does what it promises on scenarios whose faults are
// known, each in a fresh world: whether what `linerate diagnose` says is what is wrong there, and
// whether `linerate tune` repairs it.
//
// # Model
//
//   - Case: a scenario at a level; a sound world is a case without one.
//   - Ground: where a case is played: in namespaces of this machine, or in a guest in which this
//     program is started again.
//   - Judge: a case is right when the first finding has the expected code (or one that the scenario
//     calls as right), a pair when both codes are named, a sound world when nothing at warning or
//     above was found and the first finding is the expected one.
//   - Tune: a case is tuned when it reaches the healthy figure, which is that of the same path with
//     everything sound that tuning can turn, when each kept change is worth more than the noise,
//     and when undo brings back everything. Nulls is its opposite: a sound world, and knobs that do
//     nothing.
//
// Cases that ask for the same guest share one boot ([VerdictsInGuests], [TunesInGuests]); a guest
// that cannot be had skips its cases with the reason, and one that dies costs the case that it died
// of.
//
// Cases are played one after the other: two worlds on one machine would disturb each other's
// figures. A verdict that fails is a case that is wrong; a case that this machine cannot hold is
// skipped with the reason and counts for nothing.
//
// # Units
//
// Times in seconds, shares as ratios; see report.MatrixDocument and report.TuneMatrixDocument.
//
// # Limits
//
// The machine itself is part of every namespace world: faults of its processors are judged while
// other programs run on them. What cannot be told apart from that noise belongs into a guest. Tune
// plays what its own load can show: a fault that costs others alone is not tuned for.
package matrix
