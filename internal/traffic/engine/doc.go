// Package engine moves payload: workers on threads of their own, pinned, in blocking system calls
// over one connection each.
//
// # Model
//
// A [Worker] is one thread of a test around a [Body], which loops in system calls until the shared
// [Phase] says stop. Workers allocate nothing and take no lock; they share nothing but a [Tally]
// each, on cache lines of its own, and the phase. [Adopt] takes a TCP connection away from package
// net and makes a bare blocking descriptor of it; options that belong before the handshake go
// through [DialControl] and [ListenControl]. Who conducts a test (package traffic, or a foreign
// dialect) makes the workers, gives them to [Multiplex], lends as many logical processors as that
// says ([LendProcessors]), runs each worker in a goroutine on the CPU that [Worker.Place] says, and
// reads the tallies.
//
// Streams send by copy, or by reference out of a pipe or a file in memory, and receive by copy or
// by dropping the bytes in the kernel (MSG_TRUNC). [ProbeStream] tries each way over loopback, once
// per process, and compares what arrives; what fails there is not used. In the test itself the
// payload is a pattern of one fixed period, whatever the calls of either end are, so a receiver
// knows what byte n must be: it copies a sample of every two megabytes, compares it, and ends with
// [ErrCorrupt] when something was lost, doubled or changed. A [Quota] ends a run by amount.
//
// What a fast stream costs is mostly not its bytes but who wakes whom, and on which CPU the next
// segment is sent. So a copying sender makes calls of megabytes out of a pattern that stays in the
// cache, with a short queue in front of the window; a receiver lets some hundred kilobytes gather
// before it wakes; and more than a few streams per CPU share a thread, which serves one after the
// other in turns of megabytes.
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
// sendfile(2), sendmsg(2), memfd_create(2); epoll(7). Sizes and thresholds were found by
// measurement between two network namespaces on Linux 6.18; each says what it did.
//
// # Limits
//
// Bare descriptors are Linux only; elsewhere workers go through package net and [Name] says so, and
// there are no other ways than copying, no busy polling, no pacing, and no connection tests.
// Between the samples a changed byte goes unseen; a lost or doubled one does not, unless it is lost
// in a multiple of the period. Pages sent by reference are not copied by the card, but a veth pair
// or loopback hands them to the receiver as they are: figures there say what the stack can do, not
// what memory can.
package engine
