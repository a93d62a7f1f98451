// Package diagnose turns what two hosts observed into findings: what limits the path, with
// evidence.
//
// # Model
//
// [Examine] shows a case to every rule, lets causes mute their symptoms, and returns the findings,
// most important first, with the probes that rules want before they decide. The caller runs these
// probes and examines the case again. The rules live in four packages: flows (TCP and the path),
// cards (from the cable to the network stack), processors, and tables (the kernel's tables and
// sockets, and the program behind them). This package makes three verdicts itself, because they
// depend on all others: link-rate-reached ("not the host"), healthy ("nothing found") and
// measurement-unreliable ("too noisy for a verdict").
//
// A finding is a suspicion with reasons; only an experiment proves a remedy.
//
// # Adding a finding
//
// A finding needs a rule in one of the four packages with its line in rules.go, its text in
// evidence/findings, and its code in evidence/registry.go, at its place in the order of certainty.
// A test reports each one that is missing.
//
// # Units
//
// As in package evidence.
//
// # Sources
//
// The order of certainty: what the kernel states outright comes first, conclusions from rates come
// last. Each rule names its own sources. Among findings of equal severity those of drops share the
// places that this order gives them, and the one with the largest loss comes first.
//
// # Limits
//
// Without a run, only counters and settings count. One fault may hide another, which shows once the
// first is removed.
package diagnose
