// Package remote sends readings to a store that somebody has already, by Prometheus's remote write.
//
// # Model
//
// A [Writer] gathers readings for some seconds, packs them into requests and sends one after the
// other, so that samples of a series arrive in order. What the receiver cannot take now waits in a
// queue of bounded size, oldest first; what it refuses is dropped and counted.
//
// # Units
//
// Times in the protocol are milliseconds. Sizes are bytes of packed requests.
//
// # Sources
//
// Prometheus Remote-Write 1.0 (prometheus.io/docs/specs/prw/remote_write_spec): protocol buffers in
// snappy's block format; 5xx is tried again, 429 too, other 4xx is not. RFC 9110, section 10.2.3:
// Retry-After.
//
// # Limits
//
// The queue is in memory: it ends with the process.
package remote
