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
// # When a query leaves
//
// Some microseconds pass between the clock reading before a system call and the packet at the
// interface, which is a tenth of the latency of a server on the same host. The kernel stamps each
// marked message when the driver takes it (SO_TIMESTAMPING, TX_SOFTWARE; TX_SCHED, before the queue
// of the interface, where the driver does not report it). The latency since sent counts from there,
// and agrees with a capture of the packets to within a microsecond. What it leaves out is the send
// path of this host, from the system call to the driver, and nothing else.
//
// A query is due at the interface. The worker therefore begins the system call earlier, by what the
// send path usually costs, and wakes up before that by what a wake-up is usually late. The latency
// since due is that since sent and the delay between the two moments. So a late sender is charged
// in full, also for a send path that took longer than usual, and a query that left early counts
// from when it left. A closed loop has no schedule: both latencies are the same.
//
// Every message is marked, except in closed loops of more than 32 queries, which mark one burst of
// 64. A query without a report is taken to have needed what the others of its place in the burst
// usually need. That is right in the middle only: a thread that has just woken up needs some
// microseconds more than one that was running.
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
// Batches, times of the kernel and socket drops are Linux only. Elsewhere, and over TCP, TLS and
// HTTPS, goroutines read and write single messages: a query leaves when the write begins, and an
// arrival is when the read returned. Without the kernel's reports (before Linux 4.6) a query leaves
// when the system call begins. Certificates are not verified unless a server name is given: the
// answer is measured, not believed. Requests that a server of HTTPS gives back with GOAWAY are
// lost: they are not sent again. DNS over QUIC is not supported.
package load
