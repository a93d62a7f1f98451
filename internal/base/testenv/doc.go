// Package testenv decides whether a test may run here. Only tests use it.
//
// # Model
//
// A test declares what it needs beyond Go and an ordinary user: it calls [Need] at its start, with
// one or more [Thing]s. The environment variable LINERATE_REQUIRE lists the things that this run
// provides, separated by commas, or "all". If it lists all things of a test, the test runs, and
// fails if one of them is missing after all. Otherwise the test is skipped.
//
// [FreePorts] gives a test ports that no other test has, for programs that cannot listen on port 0
// and for addresses at which nothing must answer.
//
// So a missing thing has two outcomes only: `go test ./...` skips every test that needs more than
// Go, and `make test`, which lists every thing, fails.
//
// [Given] repeats a measurement that is too short for a process that was stopped meanwhile, as on a
// busy machine, and for no other reason.
//
// [Alone] plays a test in a process of its own, in which [Starve] may use up the file descriptors.
//
// # Units
//
// Ports are port numbers of TCP and UDP alike. Spans are durations of the real clock.
//
// # Sources
//
// CONTRIBUTING.md describes the tiers. ip(7) has the range that the kernel assigns, unix(7) the
// names that keep a port, sched-stats.rst of the kernel the time that threads wait for a processor.
//
// # Limits
//
// The package neither installs a thing nor checks for its presence: the helper that uses the thing
// reports its absence with [Missing].
// [Given] sees only stops of its own process: a peer of another process may be stopped alone.
// A port is kept from other tests, not from programs that choose ports in the same range.
package testenv
