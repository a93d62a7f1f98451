// Package dialect runs servers and clients in the protocols of other measuring programs.
//
// # Model
//
// A dialect has a name, the default port of its programs, and a package of its own that implements
// its protocol. [ParseAccept] reads which dialects a host answers, [Listen] opens their ports, and
// [Run] runs a test against another program's server.
//
// Several dialects may share a port: iperf2, ttcp and the data of nuttcp share 5001. One listener
// of this package then peeks at the first bytes of a connection (MSG_PEEK) and hands it over:
//
//	settings of iperf 2                                      iperf2
//	from an address whose data a nuttcp test waits for       nuttcp
//	anything else                                            ttcp where it is accepted, otherwise
//	                                                         iperf2, whose server receives anything
//
// Datagrams are handed over by the same rules. All datagrams of an address go to the dialect that
// its first one was handed to.
//
// A client that speaks a protocol not served on a port is refused, and the log names the protocol:
// an iperf3 client on the port of iperf 2, a web browser, a scanner.
//
// iperf 2, ttcp and nuttcp have no phases that both ends go through, so their clients share one
// conductor. It runs the workers that a dialect has opened, for the requested time or amount, and
// combines what this end counted with what the far end reports. Data sent over TCP count once the
// far kernel has acknowledged them.
//
// # Registration
//
// A dialect is one folder and one line of the table in names.go. Help texts, the --accept list and
// the suites derive from that table.
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
// Data of nuttcp and data of ttcp look the same, so they cannot be distinguished when they come
// from one address at the same time. Dialects whose connections follow a protocol from the first
// byte on (iperf3, sockperf, stamp, the control connection of nuttcp) do not share a port. Where
// the system cannot peek, iperf2 takes all connections of a shared port.
package dialect
