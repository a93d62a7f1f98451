// Package dialect serves and asks in the protocols of other measuring programs, each by its name.
//
// # Model
//
// A dialect has a name, a port that its programs use when they are not told otherwise, and a
// package of its own that knows its protocol. [ParseAccept] reads which ones a host answers,
// [Listen] opens their ports, [Run] runs a test against somebody else's server.
//
// Several dialects may share a port, as iperf2, ttcp and the data of nuttcp share 5001. Then one
// listener of this package looks at the first bytes of a connection without taking them (MSG_PEEK)
// and hands it over:
//
//	settings of iperf 2                                       iperf2
//	from an address whose data a test of nuttcp waits for     nuttcp
//	anything else                                             ttcp where it is accepted, else iperf2, whose server receives anything
//
// A datagram goes the same way, and stays with the dialect that its address began with.
//
// Who speaks something that is not served on a port is turned away, and the log names what it
// spoke: an iperf3 client on the port of iperf 2, a web browser, a scanner.
//
// iperf 2, ttcp and nuttcp have no phases that both ends go through, so their clients share one
// conductor: it runs the workers that a dialect has opened, for the time or the amount asked for,
// and puts together what this end counted and what the far end tells. What was sent over TCP counts
// when the far kernel has acknowledged it.
//
// # Units
//
// Those of package traffic.
//
// # Sources
//
// recv(2) for MSG_PEEK; the packages of the dialects for their protocols and default ports.
//
// # Limits
//
// Data of nuttcp and of ttcp cannot be told apart when they come from one address at the same time.
// Dialects that need a connection of their own kind from the first byte on (iperf3, sockperf,
// stamp, the control connection of nuttcp) do not share a port. Where the system cannot peek,
// iperf2 takes all connections of a shared port.
package dialect
