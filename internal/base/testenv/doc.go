// Package testenv decides whether a test may run here. Only tests use it.
//
// # Model
//
// A test declares what it needs beyond Go and an ordinary user: it calls [Need] at its start, with
// one or more [Thing]s. The environment variable LINERATE_REQUIRE lists the things that this run
// provides, separated by commas, or "all". If it lists all things of a test, the test runs, and
// fails if one of them is missing after all. Otherwise the test is skipped.
//
// So a missing thing has two outcomes only: `go test ./...` skips every test that needs more than
// Go, and `make test`, which lists every thing, fails.
//
// # Units
//
// None.
//
// # Sources
//
// CONTRIBUTING.md describes the tiers.
//
// # Limits
//
// The package neither installs a thing nor checks for its presence: the helper that uses the thing
// reports its absence with [Missing].
package testenv
