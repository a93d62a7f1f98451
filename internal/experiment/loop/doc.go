// Package loop closes the loop: it joins measuring, judging, experimenting and changing into one
// run over two hosts.
//
// # Model
//
// A Far is the host at the other end of the control channel, a Near is this one; for the experiment
// engine both are just ends whose knobs can be turned. A far end may run another
// program, or nothing but its kernel: see reach.Stranger.
//
// Diagnose takes a snapshot of both, an idle round trip, single transactions and a loaded stream
// with pings beside it, and hands them to the rules; what those want beyond that is run as a probe,
// and all is judged again. Watch judges this host alone, by what it does meanwhile, and Sent a host
// by what somebody sent of it. Tune begins with that verdict, lets the findings name the
// candidates, lets the experiment engine try them one at a time, asks for a new verdict after every
// change that was kept (a cause once removed uncovers the next), and ends with the confirmed set
// committed on both hosts, or with nothing changed.
//
// Measure runs one test for a person, also one that consists of several (load), Suite is what runs
// when none is named, and Confident repeats a test until its figure is sure.
//
// diagnose, tune and peer do not know each other; this package is the only place where they meet.
//
// # Units
//
// Rates are bits per second, times time.Duration, effects ratios (1 = no change).
//
// # Sources
//
// docs/concept/experiments.md for why blocks are randomised and why a change that is not proven is
// taken back. Fixed-width intervals by sequential sampling, and why they hold less often than they
// say: Chow & Robbins, Ann. Math. Stat. 36 (1965).
//
// # Limits
//
// One pair of hosts at a time, one goal at a time. A verdict's fifteen seconds begin when the far
// end is connected, and a probe that would not fit into them is not begun.
package loop
