// Package load asks a name server at a rate, checks every answer, and says how long each took.
//
// # Model
//
// An open loop (the default) has a schedule: query n is due at a time that does not depend on any
// answer, and its latency counts from then. A server that stalls therefore shows the stall in every
// query that was due meanwhile, also in those that the generator could only send afterwards. A
// closed loop keeps a number of queries outstanding and sends the next when an answer arrives; it
// slows down together with the server and hides what clients would have waited. A ramp repeats open
// loops to find the highest rate that the server still answers (the knee).
//
// Queries leave from many ports, as those of clients do. Each port has a [table] of the queries
// that are waiting. A received message is an answer if it is sound (package message), has the id
// and the question of a waiting query, and says what the list of names expects. Everything else is
// counted by kind: a second answer, one after the timeout, one with an id that nothing waits for,
// one from another address or port. None of these counts as an answer. A query is lost if no answer
// arrives within the timeout; a late answer leaves it lost and is counted beside it.
//
// Queries that would be closer together than 50 µs are due together, in bursts; one system call
// sends a burst and one call receives what has arrived (sendmmsg, recvmmsg). The kernel stamps each
// datagram on arrival, so the latency does not depend on when this process wakes up.
//
// # Units
//
// Queries and answers per second, durations, octets. Clocks: monotonic; arrival times of the kernel
// are converted with an offset read in the same call.
//
// # Sources
//
// RFC 1035 §4.2 (UDP, TCP), RFC 7766 (TCP with several queries in flight), RFC 7858 (TLS), RFC 8484
// (HTTPS), RFC 9113 (HTTP/2). Coordinated omission: Gil Tene, How not to measure latency (2013).
//
// # Limits
//
// Batches, arrival times of the kernel and socket drops are Linux only. Elsewhere, and over TCP,
// TLS and HTTPS, goroutines read and write single messages, and an arrival is when the read
// returned. Certificates are not verified unless a server name is given: the answer is measured,
// not believed. DNS over QUIC is not supported.
package load
