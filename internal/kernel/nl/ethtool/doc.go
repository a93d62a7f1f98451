// Package ethtool reads and sets what ethtool(8) shows of a NIC: rings, queue counts, interrupt
// moderation, offloads, link modes, flow control, error correction, receive hashing, counters and
// the driver's own switches.
//
// # Model
//
// A [Client] uses the sockets of a client of package nl. It sends messages of the generic netlink
// family "ethtool", and uses the old ioctl where no message exists: statistics by name, driver
// information, Wake-on-LAN, message levels, receive hashing and tunables on every kernel, and more
// on old kernels. [Feature], [Ring], [Channels], [Pause], [EEE], [FEC], [RSS], [Wake] and
// [LinkModes] are copies of the kernel's state at one moment. Errors are those of package nl:
// nl.ErrNotSupported for something the driver lacks, nl.ErrNotApplied for a change it accepted
// without making it.
//
// Drivers round the numbers they receive: rings to powers of two, microseconds to the steps of a
// timer, all of them to a maximum. A write therefore reads back and returns nl.ErrNotApplied if
// nothing changed; the caller reads the number that the driver chose.
//
// Settings that take a link down (its mode, FEC, pause, EEE) are sent only if they differ from the
// present ones, after a check against the abilities of the NIC. If a driver refuses a mode after it
// has begun to change, the old mode is restored.
//
// # Units
//
// Link speed is in bits per second. Rings are in descriptors, which are not bytes and on some NICs
// not packets either. Coalescing parameters are in microseconds or frames, as their names say.
//
// # Sources
//
// include/uapi/linux/{ethtool,ethtool_netlink}.h of Linux 6.18;
// https://docs.kernel.org/networking/ethtool-netlink.html. The family exists since Linux 5.6. It
// has rings, channels, coalescing, pause, EEE, private flags and features since 5.7, FEC since
// 5.13, RSS since 6.3. On older kernels an ioctl reads rings, channels, coalescing, pause and RSS;
// the rest return nl.ErrNotSupported.
//
// # Limits
//
// Linux only. Receive hashing and tunables are written by ioctl on every kernel, link modes and FEC
// only through the family. Writes need CAP_NET_ADMIN in the user namespace that owns the network
// namespace.
package ethtool
