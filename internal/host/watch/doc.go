// Package watch looks at one host over a time without sending anything: what it counted, what its
// processors did, which interrupts came where, and which of its sockets waited for what.
//
// # Model
//
// [Begin] takes a first reading and [Watch.End] a second; the [Span] is what happened between the
// two. [Host] does both with a pause in between, which is all that a verdict without a peer needs:
// the pause is slept, so that what is watched is the host and not the watcher.
//
// A [Span] has differences only: counters ([host.Sub]), a [CPU] for each processor, a
// [CardInterrupt] for each interrupt of a card, the places where packets died ([drops.Drop]), and
// [Sockets]. Sockets are bounded: those with most bytes moved or waiting, the fullest queues or
// most drops are kept, and how many there were is told. No more than 65536 of a kind are looked at,
// for no longer than 150 ms; on a host with more those looked at are a sample. What one connection
// did is an [tcpinfo.TCPInfo] like that of a test's own connection, so that one rule judges both.
//
// # Units
//
// Seconds, bytes, bits per second, packets; counters are as the kernel counts them. Rates are over
// the span.
//
// # Sources
//
// Package host for counters, processors and interrupts; package nl/sockdiag (sock_diag(7)) for
// sockets.
//
// # Limits
//
// Linux. An archive is one moment: it has a [Reading], and a span takes two of them, or one and the
// start of the host. What is watched is the network namespace of the calling thread, but
// processors, softirqs and interrupts are those of the machine. Sockets that came and went between
// the two readings are in neither. The kernel names no process to an ordinary user, and none is
// asked for.
package watch
