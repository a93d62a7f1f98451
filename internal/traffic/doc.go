// Package traffic runs one test between two hosts: bulk TCP streams, request/response on one
// connection or on a new one each time, datagrams in bulk, single-packet round trips, or a search
// for the path MTU.
//
// # Model
//
// A [Spec] says what to run. The near side calls [Run] with a [Link] to the far side, where a
// [Responder] answers; both sides share one engine. A test is a handful of workers, each a
// goroutine locked to its own OS thread, pinned to a CPU and looping in blocking system calls over
// one data connection, and one conductor that wakes every 50 ms, reads the workers' counters and
// struct tcp_info, and speaks the control protocol. Workers allocate nothing and take no lock; they
// share nothing but counters on cache lines of their own.
//
// Time has four phases on each side: warm-up, the measured window, a tail in which stream senders
// keep sending so that the other side's window stays loaded to its end, and the stop. The near side
// says when the window opens; each side closes its own after the same duration by its own clock.
// Everything that is reported as evidence (counters, CPU time, struct tcp_info) is the difference
// between the two edges of that window. What the receiver counted is the result; what the sender
// counted is evidence. Package account says how the kernel's word and the hosts' counters become
// both.
//
// An amount ([Spec.Bytes]) has no warm-up: its senders start when the window opens, on the far side
// before the near side is told, and it closes when all of it has come. Its time is the receiver's,
// and the near side's begins when it asks.
//
// Datagrams that are sent in the window are flagged, and both sides have read their counters before
// the first of them can come; without a warm-up no others are sent at all. When the window is over
// a sender stops and says how many it flagged; the receiver waits until it has them all, or until
// nothing has come for 300 ms, and reads its counters once more (package datagram, Exchange). So
// the loss is exact to the packet, and explained by what died on either host; the rest died on the
// path.
//
// Workers are spread over the CPUs that the process may use: senders from the first on, receivers
// from the last, both ends of a transaction alike, unless the Spec names CPUs; the result says
// where they ran. Each also gets a logical processor of the Go scheduler, so that it is the kernel
// alone that decides who runs.
//
// The path MTU is searched by a worker of the near side alone, against the far echo server; one
// idle connection beside it shows what both handshakes offered. A load test is four tests, which
// package loop runs one after the other and puts together: neither side here knows of it.
//
// Bidirectional tests use separate connections for each direction, so every connection has one
// sender.
//
// # Control protocol
//
// Messages are of types test.*, in this order; n is near, f is far:
//
//	n→f test.start  {spec}        f→n test.accept {…}         spec is within limits, connections may come
//	n opens its data connections  f→n test.ready              all of them are here
//	n→f test.go                   both sides start, but for senders of amounts or datagrams
//	f→n test.steady               the far receiver has reached its steady state (only when asked to find it)
//	n→f test.mark                 the near counters are read: open the window
//	f→n test.opened               the far window is open; the near one opens now
//	f→n test.interval             interim results; both directions: test.beat once a second, a sign of life
//	both test.full                all of an amount has arrived (stream)
//	both test.sent  {streams}     so much was sent in the window (udp)
//	n→f test.curtail              the window ends now, with what was measured until then
//	f→n test.done                 the far window is over
//	n→f test.stop                 always the near side's last message, whatever happened
//	f→n test.result or test.error always the far side's last message, one of them
//
// So the channel is in step again after every test, also after a refused or broken one. A far side
// that refuses test.start by itself, without a [Responder], answers test.error and must expect a
// test.stop after it.
//
// # Data connections
//
// Those of stream and rr come through [Link.Dial], [Spec.Connections] of them. The connections of
// crr go to ports that test.accept names, one for each stream; the far side answers requests that
// start with the token of test.accept and come from the near host's address. The sockets of udp all
// use the one UDP port of the far [echo.Server]: a near socket says hello with its token until it
// hears the same from a far socket that is connected to it. Nothing is sent to an address that has
// not said hello, and the control channel's handshake has proved the address before.
//
// # Bounds
//
// Every wait of either side has an end: ten seconds for each step before the data flow, ten seconds
// of silence during it (a beat comes every second), two for the last words, and a watchdog over the
// whole test. A side whose peer is stopped, gone or malicious is therefore free again after the
// Spec's own times and 35 seconds, with its threads ended and its sockets closed. Blocking calls
// wake by SO_RCVTIMEO and SO_SNDTIMEO to look at the phase, and are shut down at the end of the
// test.
//
// # Units
//
// Payload bytes, bits per second, seconds. Durations of a Spec are nanoseconds in JSON.
//
// # Sources
//
// tcp(7), udp(7), socket(7), icmp(7); include/uapi/linux/tcp.h and net/ipv4/tcp.c (chronographs,
// Linux 4.10); RFC 792 and RFC 4443 (echo); RFC 1071 (checksum); socket(7) for SO_LINGER,
// SO_RCVTIMEO and SO_SNDTIMEO; RFC 6298 for what a stall of less than 200 ms means.
//
// # Limits
//
// The far side of udp and of crr needs Linux. Raw threads, struct tcp_info and ICMP are Linux only;
// elsewhere workers go through package net and the result says so in its Method. A far side refuses
// what is outside its [Limits], and ends a test that moves more than they allow. Only the token of
// a data connection is checked, once, when it opens: payload is neither authenticated nor
// encrypted, so who sits on the path can disturb a test or add bytes to it.
package traffic
