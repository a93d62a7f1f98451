// Package diagnose turns what two hosts saw and counted into findings: what limits the path, with
// evidence.
//
// # Model
//
// [Examine] shows a case to every rule, lets causes mute their symptoms, and gives the findings
// most important first, with the probes that rules want before they answer: who runs them examines
// the case again. The rules live in rooms of their own: flows (TCP and the path), cards (what is
// between a cable and the stack), processors, and tables (the kernel's tables and sockets, and the
// program behind them). Three verdicts are made here, because they are about all the others:
// link-rate-reached stands for "not the host", healthy for "nothing found", measurement-unreliable
// for "too noisy to say".
//
// A finding is a suspicion with reasons; only an experiment proves a remedy.
//
// # Units
//
// As in package evidence.
//
// # Sources
//
// The order of certainty: what the kernel states outright comes first, what follows from rates
// last. Each rule names its own sources.
//
// # Limits
//
// Without a run only counters and settings are judged. One fault may hide another: what is behind
// the first shows when it is gone.
package diagnose
