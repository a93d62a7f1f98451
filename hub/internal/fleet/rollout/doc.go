// Package rollout carries one proven change to many hosts in waves that stop automatically.
//
// # Model
//
// A [Plan] holds the hosts with their class, rack, quorum and site, and [NewPlan] divides them into
// stages: an experiment on one to three hosts of each class; matched pairs of like hosts, of which
// a coin chooses the one to change; then waves of 1, 10, 50 and 100 % of the fleet. Each stage
// holds the same share of every class, so that a class of 1 % is never first met in the last wave.
//
// A [Machine] is a pure function of a plan and a log of events. Time is in the events.
// [Machine.Next] returns what to send to which host now. A host is ordered to try; when it reports
// the trial and is alive after the settling time, it is ordered to commit. In one batch, at most
// one host of a rack and of a quorum is in trial, and only hosts of one site.
//
// An order without an answer is repeated to a host that lives until a deadline has passed: messages
// get lost, and a host carries out an order once. A host that has not answered two deadlines after
// the order first left is lost.
//
// After each stage the machine waits for the soak, asks for measurements, and looks once:
//
//   - Experiment: each host has measured the change against itself, alternately (experiment/tune).
//     Evidence of harm on one host halts.
//   - Pairs and waves: the difference in differences of a changed host and a like host whose state
//     did not change in the same hours. The unit is the host: one value for each pair of hosts,
//     whatever the number of measurements behind it.
//   - Benefit is proven when the t statistic over all hosts passes the O'Brien–Fleming boundary of
//     this look. Harm halts at a looser one, Pocock's, for the fleet and for each class.
//   - Before the last wave, the benefit must be proven; otherwise the rollout halts as unproven.
//
// # Halt
//
// No new orders after any of: a host that is silent for two deadlines, a trial that its host took
// back, a value read back that is not the ordered one, a value that another program set, more than
// 5 % refusals in a class, a missing measurement, harm, no proof, a restart of the hub. Only
// [Resumed], which names a person, continues. Trials in force are not confirmed, and end at their
// deadlines.
//
// # Persist
//
// A restart of a host ends what a rollout has kept there. Of a rollout that is done and whose
// benefit is proven, a person can sign orders to persist: one host of a rack and of a quorum at a
// time writes the files of its change. A host that refuses keeps its change until it restarts. One
// that is silent ends the phase, and a person can begin it again. Undo removes the files.
//
// # Rebuild
//
// The log is not the truth; the journals of the hosts are. [Rebuild] makes a machine from a plan
// and the reports of the hosts. It is halted. Hosts that do not answer are lost until they do.
//
// # Units
//
// Times are offsets on a clock that runs steadily, never the time of day: a hub whose clock is a
// year off runs the same rollout. Effects are natural logarithms of ratios; positive is better.
//
// # Sources
//
// O'Brien and Fleming, Biometrics 35 (1979); Pocock, Biometrika 64 (1977), for five looks; Hussey
// and Hughes, Contemp. Clin. Trials 28 (2007), stepped wedge.
//
// # Limits
//
// A class of two to four hosts is judged by the spread of all classes; one with a much larger
// spread can halt a rollout without a cause.
//
// Measurements of earlier looks are lost with the hub's log; later looks then have less power and
// the same error rate. A host that is lost in a stage takes its pair out of the look. A
// harmful effect that is small against the spread of a class is found late.
package rollout
