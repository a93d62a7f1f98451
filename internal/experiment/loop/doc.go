// Package loop joins measuring, diagnosing, experimenting and changing into one run over two hosts.
//
// # Model
//
// A Far is the host at the other end of the control channel, a Near is this one. To the experiment
// engine both are ends whose knobs can be turned. A far end may run another program, or only its
// kernel: see reach.Stranger.
//
// Diagnose takes a snapshot of both hosts, an idle round trip, single transactions and a loaded
// stream with pings beside it, and passes them to the rules. It runs the probes that the rules ask
// for, and judges again. Watch judges this host alone, by its present work, and Sent judges a host
// from files that were sent. Tune begins with a diagnosis. The findings name the candidates, and
// the experiment engine tries them one at a time. After every kept change Tune diagnoses again,
// because removing one cause exposes the next. It ends with the confirmed set committed on both
// hosts, or with nothing changed.
//
// Measure runs one test for a user, including a test that consists of several (load). Suite is the
// set that runs when the user names no test, and Confident repeats a test until its figure is
// certain.
//
// Packages diagnose, tune and peer do not know each other; they meet only in this package.
//
// # Units
//
// Rates are bits per second, times time.Duration, effects ratios (1 = no change).
//
// # Sources
//
// docs/concept/experiments.md explains why blocks are randomised and why an unproven change is
// undone. Fixed-width intervals by sequential sampling, and why they cover the truth less often
// than stated: Chow & Robbins, Ann. Math. Stat. 36 (1965).
//
// # Limits
//
// One pair of hosts and one goal at a time. The time of a diagnosis starts when the far end is
// connected, and a probe that would not fit into it does not run.
package loop
