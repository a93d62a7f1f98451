// Package route reads and changes the routes of the main table, and reads what the kernel keeps of
// the hosts that they lead to: the tables of neighbours, and what earlier TCP connections have left
// behind.
//
// # Model
//
// A [Client] asks over the sockets of a client of package nl. A [Route] is a view of what the
// kernel said at one moment, for rules, reports and knobs. A route is never rebuilt from it: a
// change starts from the attributes that the kernel reported, byte for byte, so that what this
// package has no name for (several next hops, encapsulation, lock bits) survives.
//
// A route is asked for by its destination, without a dump: a router has a million of them. Of
// several to one destination the one in use is meant.
//
// # Units
//
// Bytes for window, MTU and MSS; segments for initial windows; milliseconds for the lower bound of
// the retransmission timeout.
//
// # Sources
//
// rtnetlink(7), ip-route(8), ip-tcp_metrics(8);
// include/uapi/linux/{rtnetlink,neighbour,tcp_metrics}.h of Linux 6.18.
//
// # Limits
//
// Linux only. Only unicast routes of the main table are shown and changed. Routes that come from
// router advertisements are renewed by the kernel and not changed here. Writes need CAP_NET_ADMIN
// in the user namespace that owns the network namespace; to forget TCP metrics it is needed in the
// first one.
package route
