// Package traffic runs one test between two hosts: bulk TCP streams, request/response on one
// connection or on a new one each time, datagrams in bulk, single-packet round trips, or a search
// for the path MTU.
//
// # Model
//
// A [Spec] says what to run. The near end calls [Run] with a [Link] to the far end, where a
// [Responder] answers; both ends share one engine. Each test is a type in a file of its own
// (stream.go, transaction.go, connect.go, udp.go, ping.go, mtu.go, load.go, burst.go); kind.go has
// what they have in common and the table that registers them. A test runs a handful of workers.
// Each is a goroutine locked to its own OS thread and pinned to a CPU, which loops in blocking
// system calls over one data connection. One conductor per end wakes every 50 ms, reads the
// workers' counters and struct tcp_info, and speaks the control protocol. Workers allocate nothing
// and take no lock; they share only counters, each on cache lines of its own.
//
// Time has four phases at each end: the warm-up, the measured window, a tail, and the stop. In the
// tail stream senders keep sending, so that the other end's window stays loaded to its end. The
// near end decides when the window opens; each end closes its own after the same duration by its
// own clock. All evidence in a result (counters, CPU time, struct tcp_info) is the difference
// between the two edges of that window. What the receiver counted is the result; what the sender
// counted is evidence. Packages tcpinfo and drops turn the kernels' and the hosts' counters into
// both.
//
// An amount ([Spec.Bytes]) has no warm-up: its senders start when the window opens, at the far end
// before the near end hears of it, and the window closes when everything has arrived. The time of
// an amount is the receiver's; the near end's begins when it asks.
//
// Senders flag the datagrams of the window, and both ends have read their counters before the first
// of these can arrive; without a warm-up they send no others. After the window a sender stops and
// reports how many it flagged. The receiver waits until it has them all, or until nothing has
// arrived for 300 ms, and reads its counters once more (package datagram, Exchange). So the loss is
// exact to the packet. What either host counted as dropped explains it; the rest was lost on the
// path.
//
// Workers are spread over the CPUs that the process may use, unless the Spec names CPUs: senders
// from the first CPU on, receivers from the last, both ends of a transaction on the same ones. The
// result shows where they ran. Each worker also gets a logical processor of the Go scheduler, so
// the kernel alone decides which worker runs.
//
// A worker of the near end alone searches the path MTU, against the far echo server; one idle
// connection beside it shows what both handshakes offered. A load test is four tests, and a burst
// test one for each train, that package loop runs one after the other and puts together; neither
// end here knows of it.
//
// Bidirectional tests use separate connections for each direction, so every connection has one
// sender.
//
// # Control protocol
//
// Messages are of types test.*, in this order; n is near, f is far:
//
//	n→f test.start  {spec}        f→n test.accept {…}         spec is within limits, connections
//	                                                          may come
//	n opens its data connections  f→n test.ready              all of them are here
//	n→f test.go                   both sides start, but for senders of amounts or datagrams
//	f→n test.steady               the far receiver has reached its steady state
//	                              (only when asked to find it)
//	n→f test.mark                 the near counters are read: open the window
//	f→n test.opened               the far window is open; the near one opens now
//	f→n test.interval             interim results; both directions: test.beat once
//	                              a second, a sign of life
//	both test.full                all of an amount has arrived (stream)
//	both test.sent  {streams}     what each stream sent in the window (udp)
//	n→f test.curtail              the window ends now, with what was measured until then
//	f→n test.done                 the far window is over
//	n→f test.stop                 always the near side's last message, whatever happened
//	f→n test.result or test.error always the far side's last message, one of them
//
// So the channel is in step again after every test, also after a refused or broken one. A far end
// that refuses test.start without a [Responder] answers test.error, and must expect a test.stop
// after it.
//
// # Data connections
//
// The connections of stream and rr come through [Link.Dial], [Spec.Connections] of them. The
// connections of crr go to the ports that test.accept names, one for each stream; the far end
// answers only requests that start with the token of test.accept and come from the near host's
// address. The sockets of udp all use the one UDP port of the far [echo.Server]: a near socket
// sends hellos with its token until it hears the same from a far socket that is connected to it.
// The far end sends nothing to an address that has not said hello, and the control channel's
// handshake has proved the address before. test.accept names the number of the first datagram of
// each socket, at random; datagrams with other numbers are forged, also the first to arrive.
//
// # Bounds
//
// Every wait of either end is bounded: ten seconds for each step before the data flow, ten seconds
// of silence during it (a beat comes every second), two for the last messages, and a watchdog over
// the whole test. An end whose peer is stopped, gone or malicious is therefore free again after the
// Spec's own times plus 35 seconds, with its threads ended and its sockets closed. Blocking calls
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
// The far end of udp and of crr needs Linux. Raw threads, struct tcp_info and ICMP are Linux only;
// elsewhere workers go through package net and the result says so in its Method. A far end refuses
// what is outside its [Limits], and ends a test that moves more than they allow. It checks the
// token of a data connection once, when the connection opens. Payload is neither authenticated nor
// encrypted, so a host on the path can disturb a test or add bytes to it; one that does not see the
// datagrams of a udp test cannot.
package traffic
