// Package runs keeps the results of experiments and measurements on this host, one file each, so
// that they can be shown and judged again.
//
// # Model
//
// A [Store] is a directory, STATE/runs of experiments, STATE/measurements of measurements. A run is
// one JSON document in ID.json; the package does not look into it. An id is the moment of its
// beginning in UTC and four random hexadecimal digits, 20261122-130405-7f3a, so that names in their
// order are runs in their order. Every write replaces the whole file (durable.Replace): after a
// crash at any moment the file holds the last document that was saved, or the one before, and never
// a part of one. A [Recorder] saves a run as it grows.
//
// The store keeps the newest [DefaultKeep] runs; a new one takes the place of the oldest. Files
// with other names are left alone.
//
// # Units
//
// Ages are not counted: the limit is a number of runs, as a host that is tuned once a year shall
// keep all of them.
//
// # Sources
//
// Package durable for what survives power loss.
//
// # Limits
//
// One writer at a time: who tunes holds the lock of the journal in the same state directory.
// Readers need no lock. Documents are readable by the owner of the state alone, since they name
// hosts and addresses. A document of more than 64 MiB is not one of ours and is not read.
package runs
