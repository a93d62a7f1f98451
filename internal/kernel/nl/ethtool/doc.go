// Package ethtool reads and sets what ethtool(8) shows of a card: rings, queue counts, interrupt
// moderation, offloads, link modes, flow control, error correction, receive hashing, counters and
// the driver's own switches.
//
// # Model
//
// A [Client] asks over the sockets of a client of package nl, by the generic netlink family
// "ethtool", and by the old ioctl where there is no message: statistics by name, driver
// information, receive hashing and tunables on every kernel, more of it on old ones. [Feature],
// [Ring], [Channels], [Pause], [EEE], [FEC], [RSS] and [LinkModes] are copies of what the kernel
// said at one moment. Errors are those of package nl: nl.ErrNotSupported is what a driver has not,
// nl.ErrNotApplied what it took and did not do.
//
// Drivers round what they are told: rings to powers of two, microseconds to the steps of a timer,
// everything to a maximum. A write therefore reads back and says nl.ErrNotApplied when nothing
// changed; what the driver made of the number is for the caller to read.
//
// What takes a link down (its mode, FEC, pause, EEE) is sent only when it differs from what is
// there, and checked against what the card has before it is sent. A mode that a driver refuses
// after it has begun to change is put back.
//
// # Units
//
// Bits per second for link speed; descriptors for rings, which are not bytes and on some cards not
// packets either; microseconds or frames for coalescing parameters, as in their names.
//
// # Sources
//
// include/uapi/linux/{ethtool,ethtool_netlink}.h of Linux 6.18;
// https://docs.kernel.org/networking/ethtool-netlink.html. The family exists since Linux 5.6;
// rings, channels, coalescing, pause, EEE, private flags and features are in it since 5.7, FEC
// since 5.13, RSS since 6.3. Before the family, rings, channels, coalescing, pause and RSS are
// asked for by ioctl; the others answer nl.ErrNotSupported.
//
// # Limits
//
// Linux only. Receive hashing and tunables are written by ioctl on every kernel, link modes and FEC
// by the family alone. Writes need CAP_NET_ADMIN in the user namespace that owns the network
// namespace.
package ethtool
