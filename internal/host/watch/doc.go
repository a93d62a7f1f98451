// Package watch observes one host over a time without sending anything: its counters, its CPUs, its
// interrupts, and the sockets that waited or dropped.
//
// # Model
//
// [Begin] takes a first reading and [Watch.End] a second; the [Span] is the difference of the two.
// [Host] does both with a pause between them, which is all that a verdict without a peer needs. It
// sleeps in the pause, so that the host is observed and not the observer.
//
// A [Span] has differences only: counters ([host.Sub]), a [CPU] for each processor, a
// [CardInterrupt] for each interrupt of a card, the places that dropped packets ([drops.Drop]), and
// [Sockets]. Sockets are bounded: the span keeps those with the most bytes moved or waiting, the
// fullest queues or the most drops, and reports how many there were. It reads at most 65536 of a
// kind, for at most 150 ms; on a host with more, those read are a sample. The activity of one
// connection is a [tcpinfo.TCPInfo] like that of a test's own connection, so that one rule judges
// both.
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
// start of the host. Sockets and counters are those of the calling thread's network namespace, but
// CPUs, softirqs and interrupts those of the machine. Sockets that came and went between the two
// readings are in neither. Processes of sockets are not looked up, because the kernel hides them
// from ordinary users.
package watch
