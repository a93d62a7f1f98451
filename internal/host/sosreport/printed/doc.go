// Package printed reads what the tools of Linux print for people: ip, ethtool, tc, sysctl, nstat,
// netstat, ss, lspci, dmidecode, date, uptime, uname.
//
// # Model
//
// A parser is a pure function from the text of one command to values of package host, or to a small
// type of its own. Nothing is run here: the text comes from somebody else's machine, in which the
// tools were of any age. So a parser goes by the words of a line and not by its place, takes no
// offence at what it does not know, and gives nothing rather than something else's number. What a
// tool complains instead of its answer ("Operation not supported", "command not found") is no
// answer, which every parser gives as nil or zero.
//
// Kernel interfaces are better than all of this, and where there is a choice package host reads
// those. This is for where there is none.
//
// # Units
//
// Those of package host: bits per second, bytes, seconds. Where a tool rounds (tc writes 33554432
// bytes as 32Mb), so is the value.
//
// # Sources
//
// The sources of iproute2 3 to 6, ethtool 2.6.33 to 6.x, net-tools 1.60 to 2.10, procps 3 and 4,
// pciutils 3, dmidecode 3, each file named at its parser. The tests of package sosreport hold every
// parser of a tool that is installed against what the kernel tells itself, in namespaces and in
// guests with real cards.
//
// # Limits
//
// English, which is what sos runs the tools in (LC_ALL=C). Nothing is read that package host has no
// place for.
package printed
