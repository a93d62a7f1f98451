// Package host is the read-only model of one host's network side: its hardware, its settings and
// its counters.
//
// # Model
//
// A [Root] selects what to read: the zero value is the running system, a Root with a directory or a
// file system is an archived one. [Root.Snapshot] returns a [Snapshot]: interfaces, CPUs, settings,
// routes. [Root.Counters] returns one reading of every counter, flat and fast; [Sub] returns the
// difference of two. What could not be read is absent, and Warnings has a sentence with the
// kernel's error text. "not there", "not permitted" and "not supported" are different sentences.
//
// Network facts are those of the network namespace of the calling thread: /proc/thread-self/net,
// /proc/sys/net and netlink sockets follow it. sysfs does not: it shows the namespace in which it
// was mounted. So /sys/class/net is used only if its interfaces are those that rtnetlink reports,
// and is ignored with a warning otherwise. A caller in a namespace of its own keeps its thread
// (runtime.LockOSThread) from before the call until after it; this package starts no goroutine.
//
// Package hostfs supplies the files, procfs parses the formats of /proc, bus judges slots, nl
// speaks netlink. Only this package knows where the four come from, how they agree and what to
// report when they do not. Package nicstat knows the meaning of a driver's counters, package owner
// the other programs that manage the host.
//
// # Archive
//
// DIR/proc and DIR/sys are plain copies, possibly incomplete. Symbolic links of /sys are kept: they
// show which device belongs to which. DIR/linerate holds what only netlink reports; each file is
// optional:
//
//	linerate/host.json       {"time":"RFC 3339","arch":"GOARCH"}
//	linerate/links.json      [{"index","name","kind","mac","mtu_bytes","tx_queue_length_packets",
//	                         "up","carrier","qdisc","parent_index","master_index","parent","master",
//	                         "vlan_id","vlan_protocol","bond_mode"}]
//	linerate/addresses.json  [{"index","cidr"}]
//	linerate/routes.json     [Route as in linerate.inspect/1]
//	linerate/ethtool.json    {"eth0":{"driver","bus","speed_bits_per_second","duplex","rings",
//	                         "coalesce","features","channels","statistics",
//	                         "card": Card as in linerate.inspect/1}}
//	linerate/qdiscs.json     [{"interface","kind","parent","handle","drops_total","requeues_total",
//	                         "overlimits_total","backlog_bytes","backlog_packets",
//	                         "bytes_total","packets_total","parameters"}]
//
// Two things are copied in part: only the NFS mounts of /proc/mounts, and only the process names of
// programs that manage hosts.
//
// [Root.Copy] makes such an archive in memory; cp -a of the same files makes one in a directory.
// Links of an archive never lead out of it, because archives come from untrusted sources.
//
// # Sleep
//
// A runtime-suspended device is not woken: facts that need it awake (ethtool, configuration space,
// speed) stay unknown and the interface is Asleep. /sys shows this state; where it shows another
// network namespace, the state is not known and the card is asked.
//
// # Kernel log
//
// A live Snapshot reads the kernel's log (/dev/kmsg) to its end, at most 20 000 records, and keeps
// what a few sentences of the kernel say about NICs. Lines with another facility than the kernel's
// are the text of programs and do not count; the rest is reduced to printable ASCII.
//
// # Units
//
// Rates are bits per second, memory is bytes, time is seconds; the JSON key carries the unit.
// Counters are as the kernel counts them. Settings are the kernel's own text with fields separated
// by single blanks.
//
// # Sources
//
// Documentation/ABI/testing/sysfs-class-net{,-statistics,-queues}, sysfs-bus-pci;
// Documentation/networking/{ip-sysctl,statistics, scaling}.rst;
// Documentation/admin-guide/sysctl/net.rst; Documentation/ABI/testing/dev-kmsg; proc(5). Each
// parser names its file and the kernel that changed its form.
//
// # Limits
//
// Linux in full. On other systems a live Snapshot has only what Go itself reports, and warns about
// the rest; archives are readable on every system. sysfs does not show the clock of a conventional
// PCI bus; what is known comes from the slot and the configuration space (package bus). A Snapshot
// is not atomic: interfaces may come and go while it is taken.
package host
