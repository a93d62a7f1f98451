// Package remote sends readings to an existing store by Prometheus's remote write.
//
// # Model
//
// A [Writer] gathers readings for some seconds, packs them into requests and sends one request
// after the other, so that the samples of a series arrive in order. Requests that the receiver
// cannot take now wait in a bounded queue, oldest first. The writer drops and counts what the
// receiver refuses.
//
// # Units
//
// Times in the protocol are milliseconds. Sizes are bytes of packed requests.
//
// # Sources
//
// Prometheus Remote-Write 1.0 (prometheus.io/docs/specs/prw/remote_write_spec): protocol buffers in
// snappy's block format; a sender retries 5xx and 429, and no other 4xx. RFC 9110, section 10.2.3:
// Retry-After.
//
// # Limits
//
// The queue is in memory: it ends with the process. docs/design/dependencies.md says why this is
// not the library client_golang/exp/api/remote.
package remote
