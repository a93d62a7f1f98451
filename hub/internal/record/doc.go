// Package record keeps the series of hosts on disk and answers queries in PromQL.
//
// # Model
//
// A [Store] is a Prometheus time series database in a directory, with an engine whose queries are
// bounded in time, samples, points and number. The database never chooses the moment at which it
// writes: it is told to, when there is room. While there is none, readings are kept in memory,
// where queries find them, and go to the disk when there is room again.
//
// A block holds 20 minutes, so that half an hour of log is all that a start has to read; blocks are
// merged up to 27 hours. Chunks hold 120 samples in the encoding XOR2: longer ones take more bytes
// a sample.
//
// There is no second history of coarser samples. Rates of long times are quick because samples that
// cannot change an answer are left out before the engine sees them, for any step and window,
// aligned or not; a history of one sample a minute would serve only some of them, and differ in the
// others. Chunks are read by a decoder of our own, which a test holds against that of the library.
//
// The engine does not look whether it is to stop between the windows of one series, so queries are
// weighed before they run: how often a subquery is evaluated, and how many samples all windows of a
// series have together.
//
// # Units
//
// Times are milliseconds on disk. Sizes are bytes.
//
// # Sources
//
// prometheus/prometheus, packages tsdb and promql. That a log which met a full disk may be torn in
// its middle: the comment in wlog.WL.log.
//
// # Limits
//
// One process at a time has a directory. The log is synced every five seconds: a killed process
// loses nothing, a power failure that much. What is in memory for want of room is lost with the
// process.
package record
