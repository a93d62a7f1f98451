// Package nl exchanges netlink messages with the kernel. It holds the sockets, reads links,
// addresses and queueing disciplines, and makes the few changes to them that a knob or a lab world
// needs. The packages ethtool and route use its sockets for other families and tables.
//
// All of this works over sockets and never runs ip(8) or ethtool(8). The output of those programs
// is written for people, changes between versions, and drops the reasons that the kernel gives.
//
// # Model
//
// A [Client] is a set of sockets in one network namespace: rtnetlink, generic netlink and one
// datagram socket for the ioctl of ethtool(8). The thread that dials opens all of them at once, so
// that one client always means one namespace. A subpackage takes a client and adds its own
// operations: ethtool.New(c).Rings("eth0"), route.New(c).List().
//
// For the subpackages a client is a carrier. [Client.Dump], [Client.Get] and [Client.Change] carry
// rtnetlink messages, [Client.Family] and [Client.Generic] carry generic netlink messages, and
// [Client.Ioctl] carries ioctls. [Encode], [Attributes] and [Wrap] give messages and errors the
// same form everywhere. These exist on Linux only, and only the packages in this directory use
// them.
//
// [LinkCounters] and [QdiscCounters] serve readers that run every second: they cover all interfaces
// in few dumps and reuse the memory of the previous answer.
//
// [Link], [Address], [Qdisc] and [QdiscNode] are copies of the kernel's state at one moment;
// nothing is cached between calls. Every failed call returns an [*Error] that keeps the errno and
// the kernel's message (extended acknowledgement, since Linux 4.12).
//
// This package carries queueing disciplines as [QdiscNode]; package tc, which opens no socket,
// interprets their options. Packages sockdiag and nft open sockets of other netlink families and do
// not use this package.
//
// Reading and parsing are separate: the codec works on bytes alone and is fuzzed. Attributes that a
// newer kernel adds are ignored; attributes that an older kernel lacks leave zero.
//
// # Units
//
// MTU, backlog, burst and the limits on merged packets are in bytes. Queue lengths and qdisc packet
// counts are in packets.
//
// # Sources
//
// rtnetlink(7); include/uapi/linux/{rtnetlink,if_link,pkt_sched}.h of Linux 6.18.
//
// # Limits
//
// Linux only: on other systems [Dial] returns [ErrNotSupported]. Writes need CAP_NET_ADMIN in the
// user namespace that owns the network namespace. Qdisc drop counters are 32 bits wide in the
// kernel and wrap. If a table changes during a dump, the dump is repeated a few times and then
// fails; a torn table is never returned.
package nl
