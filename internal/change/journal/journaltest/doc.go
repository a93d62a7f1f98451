// Package journaltest is the frame of tests that kill writers and guards of a journal.
//
// # Model
//
// A test binary plays several parts: the test starts it again as a writer, and the journal starts
// it as a guard. A part kills itself with SIGKILL before a step when the environment says so
// ([Mortal]). A guard is not a child of the test, so it holds a lock as long as it lives ([Guard],
// [GuardEnds]).
//
// # Sources
//
// signal(7), flock(2).
//
// # Limits
//
// For tests alone, on systems with SIGKILL.
package journaltest
