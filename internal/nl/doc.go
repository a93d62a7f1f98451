// Package nl speaks the kernel's netlink families for the rest of linerate: it reads links, addresses, routes, queueing disciplines
// and the ethtool view of a card, and makes the few changes that a knob or a practice world needs.
//
// All of it is done over sockets and none by running ip(8) or ethtool(8): their text is made for people, changes
// between versions, and drops the reasons that the kernel gives.
//
// # Model
//
// A [Client] is a set of sockets in one network namespace: rtnetlink, generic netlink (family "ethtool") and one datagram socket for
// the old ioctl, which alone has statistics by name and driver information, and which older kernels need for more. [Link], [Address],
// [Route], [Qdisc], [Feature], [Ring], [Channels], [Pause], [EEE], [FEC] and [RSS] are copies of what the kernel said at one moment;
// nothing is cached between calls. Every failed call is an [*Error] that keeps the errno and the kernel's own sentence (extended
// acknowledgement, since Linux 4.12).
//
// Drivers round what they are told: rings to powers of two, microseconds to the steps of a timer, everything to a maximum. A write
// therefore reads back and says [ErrNotApplied] when nothing changed; what the driver made of the number is for the caller to read.
//
// What takes a link down (its mode, FEC, pause, EEE) is sent only when it differs from what is there, and checked against
// what the card has before it is sent. A mode that a driver refuses after it has begun to change is put back.
//
// Queueing disciplines are carried here as [QdiscNode] and understood in package tc, which opens no socket.
//
// Reading and parsing are apart: the codec works on bytes alone and is fuzzed. Attributes that a newer kernel adds are ignored,
// attributes that an older kernel lacks leave zero. A route is never rebuilt from [Route] alone: a change starts from the
// attributes that the kernel reported, byte for byte, so that what this package has no name for survives.
//
// # Units
//
// Bytes for MTU, window, backlog and burst; packets for queue lengths and qdisc packets; segments for initial windows; bits per
// second for link speed; microseconds or frames for coalescing parameters, as in their names; descriptors for rings, which are not bytes
// and on some cards not packets either.
//
// # Sources
//
// rtnetlink(7); include/uapi/linux/{rtnetlink,if_link,pkt_sched,ethtool,ethtool_netlink}.h of Linux 6.18;
// https://docs.kernel.org/networking/ethtool-netlink.html. The ethtool family exists since Linux 5.6; rings, channels, coalescing,
// pause, EEE, private flags and features are in it since 5.7, FEC since 5.13, RSS since 6.3. Before the family, rings, channels,
// coalescing, pause and RSS are asked for by ioctl; the others answer [ErrNotSupported].
//
// # Limits
//
// Linux only: elsewhere [Dial] answers [ErrNotSupported]. Only the main routing table is shown. Receive hashing and
// tunables are written by ioctl on every kernel, link modes and FEC by the ethtool family alone. Writes need CAP_NET_ADMIN in the user
// namespace that owns the network namespace. Qdisc drop counters are 32 bits wide in the kernel and wrap. A dump of a table
// that changes meanwhile is repeated a few times and then reported as an error rather than returned torn.
package nl
