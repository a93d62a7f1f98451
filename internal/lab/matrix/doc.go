// Package matrix tests the program's promises on scenarios with known faults, each in a fresh
// world: whether `linerate diagnose` names the fault, and whether `linerate tune` repairs it.
//
// # Model
//
//   - Case: a scenario at a level; a sound world is a case without a level.
//   - Ground: where a case is played: in namespaces of this machine, or in a guest that starts this
//     program again.
//   - Judge: a case is right when the first finding has the expected code, or one that the scenario
//     accepts as right. A pair is right when both codes are named. A sound world is right when the
//     first finding is the expected one and no finding is a warning or worse.
//   - Tune: a case is tuned when it reaches the healthy figure, when each kept change is worth more
//     than the noise, and when undo brings back everything. The healthy figure is that of the same
//     path with everything sound that tuning can change. Nulls is the opposite test: a sound world
//     and knobs without an effect.
//
// Cases that need the same guest share one boot ([VerdictsInGuests], [TunesInGuests]). Without the
// guest the cases are skipped with the reason; a guest that dies fails the case it was playing.
//
// Cases run one after another, because two worlds on one machine would disturb each other's
// figures. Where something else took the machine, before a case or while its verdict was found, the
// case has a warning: its verdict is not certain. A verdict that fails is a wrong case. A case that
// this machine cannot play is skipped with the reason and is not counted.
//
// # Units
//
// Times in seconds, shares as ratios, as in the documents.
//
// # Limits
//
// The machine is part of every world in namespaces: other programs run on its processors while
// faults of processors are judged. A fault that this noise hides belongs in a guest. Tune plays the
// cases that its own load can show; it cannot repair a fault that costs only other programs.
package matrix
