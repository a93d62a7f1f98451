// Package record keeps the series of hosts on disk and answers queries in PromQL.
//
// # Model
//
// A [Store] is a Prometheus time series database in a directory, with an engine whose queries are bounded in time and samples.
//
// # Units
//
// Times are milliseconds on disk. Sizes are bytes.
//
// # Sources
//
// prometheus/prometheus, packages tsdb and promql.
//
// # Limits
//
// One process at a time has a directory.
package record
