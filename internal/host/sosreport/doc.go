// Package sosreport reads a host from a report of sos(1): the text files that support engineers ask
// for when they cannot log in.
//
// # Model
//
// [Open] takes an unpacked report, a directory above one, or the tar file itself (plain, gzip,
// bzip2). [Report.Root] is then an archive of package host in memory, so that the code for a live
// host reads snapshots and counters from it. Plain copies of /proc and /sys pass unchanged. What
// they lack is derived from the output of commands, which package printed parses:
//
//	linerate/links.json, addresses.json    ip -d address, ip -s -d link, ip -o addr
//	linerate/routes.json                   ip route show table all, ip -6 route show table all
//	linerate/ethtool.json                  ethtool NIC, ethtool -i -S -g -k -c -l -a -P -m, …
//	linerate/qdiscs.json                   tc -s qdisc show
//	linerate/host.json                     date, uname, uptime
//	proc/sys                               sysctl -a
//	proc/net/snmp, netstat, snmp6          nstat -zas, else netstat -s
//	sys/class/net, PCI devices             the above with lspci -nnvv and /proc/bus/pci
//	kind and mode of bonds                 ip -d, else proc/net/bonding
//	sys/class/dmi/id                       dmidecode
//
// An archive has no sockets; [Report.Sockets] returns those that ss -peaonmi showed.
//
// A copy of a kernel file takes precedence over a text, and a text made for programs (nstat) over
// one for people (netstat). Missing parts are no error: they are absent, as on a host that refuses
// them, and [Report.Warnings] lists them.
//
// # Names
//
// sos writes the output of "ethtool -S eth0" to sos_commands/networking/ethtool_-S_eth0: blanks and
// other special characters become underscores, slashes dots. Versions 2 to 4 run different commands
// and link the more important ones from the top; all of these names are tried. An output over the
// size limit of sos is in sos_strings with a link to it.
//
// # Trust
//
// A report may come from an untrusted source. Its size and its interfaces are bounded (see the
// constants of read.go and host.MaxInterfaces), reading ends with its context,
// and links never lead out of its directory. It is not unpacked to a disk. Only the files that are
// read are kept: no logs, no configuration files, no process lists.
//
// # Sources
//
// The plugins networking, kernel, host, general, date, pci, hardware, system, process and processor
// of sos 2 to 4, and published reports.
//
// # Limits
//
// The network namespace in which sos ran, which is the host's own. A report packed with xz, the
// default of sos, must be unpacked first (tar -xJf). A report lacks, so these stay unknown:
// indirection tables (RSS), steering of queues, NAPI, and before sos 4.8 forward error correction.
// The supportconfig of SLES is another format, and not read.
package sosreport
