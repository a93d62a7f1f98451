// Package nl speaks netlink with the kernel: it holds the sockets, reads links, addresses and
// queueing disciplines, and makes the few changes to them that a knob or a practice world needs.
// The rooms above it speak the other families through its sockets: ethtool and route.
//
// All of it is done over sockets and none by running ip(8) or ethtool(8): their text is made for
// people, changes between versions, and drops the reasons that the kernel gives.
//
// # Model
//
// A [Client] is a set of sockets in one network namespace: rtnetlink, generic netlink and one
// datagram socket for the ioctl of ethtool(8). All are opened at once by the thread that dials, so
// that one client is one namespace, whichever room asks. A room takes a client and adds what it
// understands: ethtool.New(c).Rings("eth0"), route.New(c).List().
//
// To the rooms a client is a carrier: [Client.Dump], [Client.Get] and [Client.Change] for
// rtnetlink, [Client.Family] and [Client.Generic] for generic netlink, [Client.Ioctl]; [Encode],
// [Attributes] and [Wrap] make messages and errors alike everywhere. They are on Linux only, and
// for rooms of this folder alone.
//
// [LinkCounters] and [QdiscCounters] are for readers that come back each second: all interfaces in
// few dumps, read into the memory of the answer before.
//
// [Link], [Address], [Qdisc] and [QdiscNode] are copies of what the kernel said at one moment;
// nothing is cached between calls. Every failed call is an [*Error] that keeps the errno and the
// kernel's own sentence (extended acknowledgement, since Linux 4.12).
//
// Queueing disciplines are carried here as [QdiscNode] and understood in package tc, which opens no
// socket. Packages sockdiag and nft open sockets of their own, of other netlink families, and know
// nothing of this one.
//
// Reading and parsing are apart: the codec works on bytes alone and is fuzzed. Attributes that a
// newer kernel adds are ignored, attributes that an older kernel lacks leave zero.
//
// # Units
//
// Bytes for MTU, backlog, burst and the limits on merged packets; packets for queue lengths and
// qdisc packets.
//
// # Sources
//
// rtnetlink(7); include/uapi/linux/{rtnetlink,if_link,pkt_sched}.h of Linux 6.18.
//
// # Limits
//
// Linux only: elsewhere [Dial] answers [ErrNotSupported]. Writes need CAP_NET_ADMIN in the user
// namespace that owns the network namespace. Qdisc drop counters are 32 bits wide in the kernel and
// wrap. A dump of a table that changes meanwhile is repeated a few times and then reported as an
// error rather than returned torn.
package nl
