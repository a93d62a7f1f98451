// Package drops finds where one host dropped packets, and counts each packet once.
//
// # Model
//
// [Find] lists the places of a host that dropped packets, from the difference of its counters
// over a time. [Losses] explains the loss of one test, packet by packet, from the counters of both
// hosts. Where two counters count the same packet, the more exact one is used.
//
// # Units
//
// Packets are datagrams or segments. Counters are differences over the same time.
//
// # Sources
//
// socket(7) for SO_RXQ_OVFL; net/core/dev.c (enqueue_to_backlog), drivers/net/veth.c (veth_xmit);
// Documentation/networking/statistics.rst for the counters of NICs.
//
// # Limits
//
// A host's counters include all its traffic: a packet that another program lost at the same
// time can be taken for a loss of the test. The counters of the test's own sockets therefore come
// first, no place is given more than is missing, and the rest is reported as lost on the path.
package drops
