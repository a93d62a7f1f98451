// Package host is the model of one host's network side, read only: what is there, how it is set,
// and what it has counted.
//
// # Model
//
// A [Root] says where to read: the zero value is the running system, a Root with a directory or a
// file system is an archived one. [Root.Snapshot] gives a [Snapshot]: interfaces, processors,
// settings, routes. [Root.Counters] gives one reading of every counter, flat and cheap; [Sub] gives
// what happened between two. What could not be read is absent and has a sentence in Warnings that
// keeps the kernel's words; "not there", "not permitted" and "not supported" are different
// sentences.
//
// Network facts are those of the network namespace of the calling thread: /proc/thread-self/net,
// /proc/sys/net and netlink sockets follow it by themselves. sysfs does not: it shows the namespace
// it was mounted in. So /sys/class/net is believed only when its interfaces are the same ones that
// rtnetlink tells, and is left aside with a warning otherwise. A caller in a namespace of its own
// keeps its thread (runtime.LockOSThread) from before the call until after it; nothing here starts
// another goroutine.
//
// The files come from package hostfs, the text formats of /proc are those of package procfs, the
// judgement of slots is package bus, netlink is package nl: this package alone knows where the four
// come from, how they agree and what is said when they do not. What the counters of a driver mean
// is package nicstat, who else manages the host package owner.
//
// # Archive
//
// DIR/proc and DIR/sys are plain copies (symbolic links of /sys kept: they say which device is
// whose), as much of them as there is. DIR/linerate holds what only netlink tells, each file
// optional:
//
//	linerate/host.json       {"time":"RFC 3339","arch":"GOARCH"}
//	linerate/links.json      [{"index","name","kind","mac","mtu_bytes","tx_queue_length_packets","up","carrier","qdisc","parent_index",
//	                         "master_index","vlan_id","vlan_protocol","bond_mode"}]
//	linerate/addresses.json  [{"index","cidr"}]
//	linerate/routes.json     [Route as in linerate.inspect/1]
//	linerate/ethtool.json    {"eth0":{"driver","bus","speed_bits_per_second","duplex","rings","coalesce","features","channels","statistics",
//	                         "card": Card as in linerate.inspect/1}}
//	linerate/qdiscs.json     [{"interface","kind","parent","handle","drops_total","requeues_total","overlimits_total","backlog_bytes",
//	                         "backlog_packets","bytes_total","packets_total","parameters"}]
//
// Two things are copied in part: of /proc/mounts the NFS mounts alone, of the processes' names
// those of programs that manage hosts.
//
// [Root.Copy] makes such an archive in memory; cp -a of the same files makes one in a directory. An
// archive is never followed out of itself, whatever its links say: it may come from anybody.
//
// # Sleep
//
// A device that is runtime-suspended is not woken: what would need it awake (ethtool, configuration
// space, speed) stays unknown and the interface says Asleep. /sys tells, so where it shows another
// network namespace nothing is known of sleep and the card is asked.
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
// Documentation/admin-guide/sysctl/net.rst; proc(5). Each parser names its file and the kernel that
// changed its form.
//
// # Limits
//
// Linux in full. Elsewhere a live Snapshot has only what Go itself tells, and says so; archives are
// read on every system. sysfs does not tell the clock of a conventional PCI bus; what is known is
// taken from the slot and the configuration space (package bus). A Snapshot is not atomic:
// interfaces may come and go while it is taken.
package host
