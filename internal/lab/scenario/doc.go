// Package scenario holds practice worlds as data: which hosts there are and how they are joined,
// what is wrong with them, and what must come of it. It reads and checks; nothing here makes a
// world.
//
// # Model
//
//   - World: a topology, its link, and the settings that all its hosts start with.
//   - Fault: what is wrong at a level: settings, the link, rules, what other programs do (package
//     work).
//   - Scenario: a world with its faults, the finding to expect and the knobs that must help; one
//     JSON file each, built in.
//   - Replay: a scenario that recreates a write-up, with what must come of its tune.
//
// # Units
//
// Rates in bits per second, times in seconds, sizes in bytes; setting names as in the rest of the
// project.
//
// # Sources
//
// Each scenario says in its file why it is slow, with the arithmetic; a replay names its write-up.
//
// # Limits
//
// Only what is checked without a kernel is checked here: that hosts exist, that a fault fits its
// ground. Whether a machine has what a scenario needs is known when its world is made (package
// lab).
package scenario
