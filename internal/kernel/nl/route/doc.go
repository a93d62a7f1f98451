// Package route reads and changes the routes of the main table. It also reads the kernel's tables
// of neighbours and its cache of metrics from earlier TCP connections.
//
// # Model
//
// A [Client] uses the sockets of a client of package nl. A [Route] is a view of the kernel's state
// at one moment, for rules, reports and knobs. A route is never rebuilt from that view: a change
// starts from the attributes that the kernel reported, byte for byte. Properties that this package
// does not name (several next hops, encapsulation, lock bits) therefore survive.
//
// A route is looked up by its destination, without a dump, because a router may have a million
// routes. If several routes lead to one destination, the one in use counts.
//
// # Units
//
// Window, MTU and MSS are in bytes, initial windows in segments, and the lower bound of the
// retransmission timeout in milliseconds.
//
// # Sources
//
// rtnetlink(7), ip-route(8), ip-tcp_metrics(8);
// include/uapi/linux/{rtnetlink,neighbour,tcp_metrics}.h of Linux 6.18.
//
// # Limits
//
// Linux only. Only unicast routes of the main table are shown and changed. Routes from router
// advertisements are renewed by the kernel and are never changed here. Writes need CAP_NET_ADMIN in
// the user namespace that owns the network namespace; deleting TCP metrics needs it in the initial
// user namespace.
package route
