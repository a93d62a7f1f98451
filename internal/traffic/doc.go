// Package traffic runs one test between two hosts: bulk TCP streams, request/response over TCP, or single-packet round trips.
//
// # Model
//
// A [Spec] says what to run. The near side calls [Run] with a [Link] to the far side, where a [Responder] answers; both sides share one
// engine. A test is a handful of workers, each a goroutine locked to its own OS thread, pinned to a CPU and looping in blocking system
// calls over one data connection, and one conductor that wakes every 50 ms, reads the workers' counters and struct tcp_info, and speaks
// the control protocol. Workers allocate nothing and take no lock; they share nothing but counters on cache lines of their own.
//
// Time has four phases on each side: warm-up, the measured window, a tail in which senders keep sending so that the other side's window
// stays loaded to its end, and the stop. The near side says when the window opens; each side closes its own after the same duration by its own
// clock. Everything that is reported as evidence (counters, CPU time, struct tcp_info) is the difference between the two edges of
// that window. What the receiver counted is the result; what the sender counted is evidence.
//
// Workers are spread over the CPUs that the process may use: senders from the first on, receivers from the last, both ends of a
// transaction alike. Each also gets a logical processor of the Go scheduler, so that it is the kernel alone that decides who runs.
//
// The path MTU is searched by a worker of the near side alone, against the far echo server; one idle connection beside it shows what both
// handshakes offered. A load test is four tests, which package loop runs one after the other and puts together: neither side here knows of it.
//
// Bidirectional tests use separate connections for each direction, so every connection has one sender.
//
// # Control protocol
//
// Messages are of types test.*, in this order; n is near, f is far:
//
//	n→f test.start  {spec}        f→n test.accept {echo}      spec is within limits, connections may come
//	n dials Spec.Connections()    f→n test.ready              all of them are here
//	n→f test.go                   both sides start
//	f→n test.steady               the far receiver has reached its steady state (only when asked to find it)
//	n→f test.mark                 the measured window opens
//	f→n test.interval             interim results; both directions: test.beat once a second, a sign of life
//	f→n test.done                 the far window is over
//	n→f test.stop                 always the near side's last message, whatever happened
//	f→n test.result or test.error always the far side's last message, one of them
//
// So the channel is in step again after every test, also after a refused or broken one. A far side that refuses test.start by itself,
// without a [Responder], answers test.error and must expect a test.stop after it.
//
// # Bounds
//
// Every wait of either side has an end: ten seconds for each step before the data flow, ten seconds of silence during it (a beat comes every
// second), two for the last words, and a watchdog over the whole test. A side whose peer is stopped, gone or malicious is therefore free
// again after the Spec's own times and 35 seconds, with its threads ended and its sockets closed. Blocking calls wake by SO_RCVTIMEO and
// SO_SNDTIMEO to look at the phase, and are shut down at the end of the test.
//
// # Units
//
// Payload bytes, bits per second, seconds. Durations of a Spec are nanoseconds in JSON.
//
// # Sources
//
// tcp(7), socket(7), icmp(7); include/uapi/linux/tcp.h and net/ipv4/tcp.c (chronographs, Linux 4.10); RFC 792 and RFC 4443 (echo);
// RFC 1071 (checksum); socket(7) for SO_LINGER, SO_RCVTIMEO and SO_SNDTIMEO; RFC 6298 for what a stall of less than 200 ms means.
//
// # Limits
//
// Raw threads, struct tcp_info and ICMP are Linux only; elsewhere workers go through package net and the result says so in its Method. A far side
// refuses what is outside its [Limits]. Only the token of a data connection is checked, once, when it opens: payload is neither authenticated nor
// encrypted, so who sits on the path can disturb a test or add bytes to it.
package traffic
