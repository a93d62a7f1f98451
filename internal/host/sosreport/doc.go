// Package sosreport reads a host out of a report of sos(1): the text files that support people ask
// for when they cannot log in.
//
// # Model
//
// [Open] takes an unpacked report, a directory above one, or the tar file itself (plain, gzip,
// bzip2). [Report.Root] is then an archive of package host in memory, so that snapshots and
// counters are read from it by the very code that reads a living host. Plain copies of /proc and
// /sys are passed on as they are. What they do not hold is made of the output of commands, which
// package printed reads:
//
//	linerate/links.json, addresses.json    ip -d address, ip -s -d link, ip -o addr
//	linerate/routes.json                   ip route show table all, ip -6 route show table all
//	linerate/ethtool.json                  ethtool NIC and ethtool -i -S -g -k -c -l -a -P, --show-eee, --show-priv-flags
//	linerate/qdiscs.json                   tc -s qdisc show
//	linerate/host.json                     date, uname, uptime
//	proc/sys                               sysctl -a
//	proc/net/snmp, netstat, snmp6          nstat -zas, else netstat -s
//	sys/class/net, PCI devices             the above with lspci -nnvv and /proc/bus/pci; interrupts by the names that drivers give them
//	sys/class/dmi/id                       dmidecode
//
// An archive has no sockets. Those that ss -peaonmi showed are beside it: [Report.Sockets].
//
// A copy of a kernel file is always believed before a text, and a text that was made for programs
// (nstat) before one for people (netstat). What a report lacks is not an error: it is absent, as on
// a host that refuses it, and [Report.Warnings] says so.
//
// # Names
//
// sos writes the output of "ethtool -S eth0" to sos_commands/networking/ethtool_-S_eth0: blanks and
// other special characters become underscores, slashes dots. Versions 2 to 4 differ in which
// commands they run and link the more important ones from the top; all of the names are tried. An
// output over the size limit of sos is in sos_strings with a link to it.
//
// # Trust
//
// A report may come from anybody. It is bounded (see the constants of read.go) and never followed
// out of its directory; nothing is unpacked to a disk. Only what is looked at is kept: no logs, no
// configuration files, no process lists.
//
// # Sources
//
// The plugins networking, kernel, host, general, date, pci, hardware, system, process and processor
// of sos 2 to 4, and reports that people have published.
//
// # Limits
//
// The network namespace that sos ran in, that is the host's own. A report that was packed with xz,
// the default of sos, has to be unpacked first (tar -xJf). Not in a report, and so not known:
// indirection tables (RSS), forward error correction, steering of queues, NAPI.
package sosreport
