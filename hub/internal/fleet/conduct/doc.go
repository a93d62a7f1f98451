// Package conduct carries out rollouts: it runs the machine of package rollout against real hosts.
//
// # Model
//
// A [Draft] is a rollout before its first order: the plan, the change, and for each host the value
// that it holds. [Draft.Orders] lists every order that it can need; a person signs them, at their
// own machine, with keys that the hub does not have. [Conductor.Begin] takes the draft with the
// signatures, and the [Conductor] then sends what the machine asks for, one order at a time for
// each host, and feeds the answers to it.
//
// Each event is on disk before it counts, and each order is on disk as sent before it leaves. After
// a restart the log is replayed, the rollout is halted, and every host is asked what became of its
// orders. Only a person resumes: that is a new draft of the same plan, signed anew.
//
// # Measurement
//
// What is judged is a metric of the production traffic of each host, read over a window. Nothing is
// invented: a host without traffic, or that does not answer, halts the rollout.
//
//   - Experiment: pairs of a window with the change, as a trial, and one without it. A coin decides
//     which comes first. The effect is the mean of the logarithms of their ratios, and the error
//     their standard error.
//   - Pairs and waves: each host that a stage changes, and the like one beside it, is measured
//     before the stage and after its soak. Without the reading from before, no host of the stage is
//     changed.
//
// A reading that fails is asked for again: in an experiment for a minute, while the trial lasts;
// before and after a stage for the plan's time to collect.
//
// # Harm
//
// When measurements show harm, the conductor undoes the whole rollout at once, with the orders that
// were signed for it. After any other halt it sends nothing until a person decides.
//
// An undo order stays of use until its signature ends, also after a person has signed anew. A host
// without one holds up no other, and is named as not undone. One that is lost while the others are
// undone gets its order when it is back.
//
// # Persist
//
// A rollout that is done and proven takes one more draft: an order for each host to write the files
// that make the change survive a restart. A restart of the hub ends this, and the next draft holds
// the hosts that are left.
//
// # Units
//
// Times in the log are nanoseconds on a clock that runs only while the hub does. Effects are
// natural logarithms of ratios; positive is better.
//
// # Sources
//
// docs/design/0018-fleet-orders-and-rollouts.md.
//
// # Limits
//
// Signatures are valid for a day at most: a rollout that lasts longer halts, and goes on when a
// person has signed again. A host is in one unfinished rollout at a time. A host that does not
// answer when a person resumes is left out. The log of a rollout that is over stays until a person
// removes its directory.
package conduct
