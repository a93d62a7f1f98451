// Package record keeps the series of hosts on disk and answers PromQL queries.
//
// # Model
//
// A [Store] is a Prometheus time series database in a directory, with a query engine that is
// bounded in time, samples, points and concurrent queries. The database never chooses when to
// write: the store makes it write when there is room. While the disk is full, readings stay in
// memory, where queries find them, and go to the disk when there is room again.
//
// A block holds 20 minutes, so a start reads half an hour of log; the store merges blocks up to 27
// hours. Chunks hold 120 samples in the encoding XOR2: longer ones take more bytes a sample.
//
// The store keeps no second history of coarser samples. Rates over long times are quick because it
// leaves out samples that cannot change an answer before the engine sees them, for any step and
// window, aligned or not. A history of one sample a minute would serve only some of these, and
// change the other answers. The store has its own chunk decoder; a test compares it with the
// library's, and benchmarks show what both save.
//
// The engine does not check for cancellation between the windows of one series. The store therefore
// estimates the cost of a query before it runs: the evaluations of a subquery, and the samples of
// all windows of a series.
//
// # Units
//
// Times are milliseconds on disk. Sizes are bytes.
//
// # Sources
//
// prometheus/prometheus, packages tsdb and promql. The comment in wlog.WL.log: a full disk may
// leave a log torn in its middle.
//
// # Limits
//
// One process at a time has a directory. The store syncs the log every five seconds: a killed
// process loses nothing, a power failure that much. Readings that wait in memory for room are lost
// with the process.
package record
