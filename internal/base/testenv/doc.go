// Package testenv decides whether a test may run here. It is for tests alone.
//
// # Model
//
// A test names what it needs beyond Go and an ordinary user: [Need] at its start, with one or more
// [Thing]s. The environment variable LINERATE_REQUIRE lists the things that this run provides,
// separated by commas, or "all". A test whose things are all listed runs, and fails when one of
// them is missing after all. A test with a thing that is not listed is skipped.
//
// So there are two outcomes and no third: `go test ./...` skips everything that needs more than Go,
// and `make test`, which lists every thing, turns each gap into a failure.
//
// # Units
//
// None.
//
// # Sources
//
// The tiers are described in CONTRIBUTING.md.
//
// # Limits
//
// The package does not install anything, and it does not look whether a thing is present: the
// helper that uses the thing reports it with [Missing].
package testenv
