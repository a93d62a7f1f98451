// Package answer is a small name server for tests and the demonstration. It answers every question
// from a rule, without zones, and misbehaves on request.
//
// # Model
//
// A name with a label gone does not exist (NXDOMAIN). Every other name has one A and one AAAA
// record, made of a hash of the name, and no other types. That is what package names expects of the
// zone behind a model.
//
// [Faults] says which answers are wrong, each kind for every n-th query. A stall begins at a time
// after the first query: the server reads nothing meanwhile, and then answers what has waited.
//
// # Units
//
// Durations; queries.
//
// # Sources
//
// RFC 1035, RFC 6891, RFC 7766, RFC 7858. Addresses: those for documentation, RFC 5737 and RFC
// 3849.
//
// # Limits
//
// UDP, TCP and TLS. The certificate is made at the start and signs itself. One goroutine answers
// UDP, so one CPU bounds its rate.
package answer
