// Package scenario holds practice worlds as data: their hosts, how the hosts are joined, the fault,
// and the expected result. It reads and checks scenarios; package lab makes their worlds.
//
// # Model
//
//   - World: a topology, its link, and the settings that all its hosts start with.
//   - Fault: what is wrong at a level: settings, the link, firewall rules, and the work of other
//     programs (package work).
//   - Scenario: a world with its faults, the expected finding and the knobs that must help. Each is
//     one embedded JSON file below scenarios: adding that file adds the scenario.
//   - Replay: a scenario that recreates a write-up, with the result that its tune must reach.
//
// # Units
//
// Rates in bits per second, times in seconds, sizes in bytes; names of settings as in the rest of
// the project.
//
// # Sources
//
// Each file explains why its world is slow, with the arithmetic; a replay names its write-up.
//
// # Limits
//
// Check covers what needs no kernel: that hosts exist, and that a fault fits its ground. Whether a
// machine provides what a scenario needs is known when package lab makes the world.
package scenario
