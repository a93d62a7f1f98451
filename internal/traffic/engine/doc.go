// Package engine moves payload: workers on threads of their own, pinned, in blocking system calls over one connection each.
//
// # Model
//
// A [Worker] is one thread of a test around a [Body], which loops in system calls until the shared [Phase] says stop. Workers allocate
// nothing and take no lock; they share nothing but a [Tally] each, on cache lines of its own, and the phase. [Adopt] takes a TCP connection away from package net and
// makes a bare blocking descriptor of it. Who conducts a test (package traffic, or a foreign dialect) makes the workers, runs each in a
// goroutine on the CPU that [CPUOf] says, with a logical processor lent by [LendProcessors], and reads the tallies.
//
// # Units
//
// Payload bytes; round trips in nanoseconds.
//
// # Sources
//
// tcp(7) for MSG_TRUNC and TCP_INFO; socket(7) for SO_LINGER, SO_RCVTIMEO and SO_SNDTIMEO.
//
// # Limits
//
// Bare descriptors are Linux only; elsewhere workers go through package net and [Name] says so.
package engine
