// Package runs stores the results of experiments and measurements on this host, one file each, so
// that they can be shown and evaluated again.
//
// # Model
//
// A [Store] is a directory: STATE/runs for experiments, STATE/measurements for measurements. A run
// is one JSON document in ID.json; the package does not interpret it. An id is the start time in
// UTC and four random hexadecimal digits, 20261122-130405-7f3a, so sorting the names sorts the
// runs. Every write replaces the whole file (durable.Replace): after a crash at any moment the file
// holds the last saved document or the previous one, and never a part of one. A [Recorder] saves a
// run while it grows.
//
// The store keeps the newest [DefaultKeep] runs; a new one replaces the oldest. It ignores files
// with other names.
//
// # Units
//
// The limit is a number of runs, not an age, so that a host that is tuned once a year keeps all of
// them.
//
// # Sources
//
// Package durable documents what survives a power loss.
//
// # Limits
//
// Only one process may write at a time: a process that tunes holds the lock of the journal in the
// same state directory. Readers need no lock. Only the owner of the state can read the documents,
// because they contain host names and addresses. A document of more than 64 MiB is not from
// linerate and is not read.
package runs
