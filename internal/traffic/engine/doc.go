// Package engine moves payload: workers on threads of their own, pinned, in blocking system calls
// over one connection each.
//
// # Model
//
// A [Worker] is one thread of a test around a [Body], which loops in system calls until the shared
// [Phase] says stop. Workers allocate nothing and take no lock; they share only the phase and a
// [Tally] each, on cache lines of its own. [Adopt] takes a TCP connection away from package net and
// makes a bare blocking descriptor of it; [DialControl] and [ListenControl] set options that the
// handshake needs. The conductor of a test (package traffic, or a foreign dialect) makes the
// workers and gives them to [Multiplex]. It lends as many logical processors as Multiplex returns
// ([LendProcessors]), runs each worker in a goroutine on the CPU that [Worker.Place] returns, and
// reads the tallies.
//
// Streams send by copy, or by reference out of a pipe or a file in memory. They receive by copy, or
// the kernel drops the bytes (MSG_TRUNC). [ProbeStream] tries each way over loopback, once per
// process, and compares what arrives; the engine does not use a way that fails there. In the test
// itself the payload is a pattern of one fixed period, independent of the sizes of the calls at
// either end, so a receiver knows what byte n must be. It copies a sample every two megabytes,
// compares it, and ends with [ErrCorrupt] when bytes were lost, duplicated or changed. A [Quota]
// ends a run by amount. A rate is kept by a schedule, and the kernel's pacing spreads each call. A
// stream that is late by more than a call is not paced by the kernel until it is on time again, so
// that the mean of a test is the rate asked for.
//
// The cost of a fast stream is mostly not its bytes but which thread wakes which, and which CPU
// sends the next segment. So a copying sender makes calls of megabytes out of a pattern that stays
// in the cache, with a short queue in front of the window. A receiver lets some hundred kilobytes
// gather before it wakes. More than a few streams per CPU share a thread, which serves them one
// after the other in turns of megabytes.
//
// Transactions sleep for their answer, or spin for it. [NewConnector] and [NewAcceptor] do one
// transaction per connection.
//
// # Units
//
// Payload bytes; round trips in nanoseconds; pacing in payload bytes per second.
//
// # Sources
//
// tcp(7) for MSG_TRUNC, TCP_INFO, TCP_DEFER_ACCEPT and TCP_MAXSEG; socket(7) for SO_LINGER,
// SO_RCVLOWAT, SO_RCVTIMEO and SO_SNDTIMEO; TCP_NOTSENT_LOWAT: tcp(7) and
// Documentation/networking/ip-sysctl.rst of Linux (tcp_notsent_lowat); splice(2), vmsplice(2),
// sendfile(2), sendmsg(2), memfd_create(2); epoll(7). Sizes and thresholds were measured between
// two network namespaces on Linux 6.18; each comment has its figures.
//
// # Limits
//
// Bare descriptors are Linux only. Elsewhere workers go through package net and [Name] says so;
// they only copy, and have no busy polling, no pacing and no connection tests. A changed byte
// between two samples goes undetected; a lost or duplicated one does not, unless the loss is a
// multiple of the period. A NIC does not copy pages sent by reference, but a veth pair or loopback
// hands them to the receiver as they are: figures there show what the stack can do, not what memory
// can.
package engine
