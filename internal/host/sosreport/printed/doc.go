// Package printed parses what the tools of Linux print for people: ip, ethtool, tc, sysctl, nstat,
// netstat, ss, lspci, dmidecode, date, uptime, uname.
//
// # Model
//
// A parser is a pure function from the text of one command to values of package host, or to a small
// type of its own. The package runs nothing: the text comes from another machine, with tools of any
// age. So a parser goes by the words of a line and not by their place, ignores what it does not
// know, and returns nothing rather than a wrong number. An error message in place of an answer
// ("Operation not supported", "command not found") yields nil or zero.
//
// Kernel interfaces are better than printed text, and package host reads those if it has the
// choice. This package serves the other cases.
//
// # Units
//
// Those of packages host and optic: bits per second, bytes, seconds, watts. Where a tool rounds (tc
// writes 33554432 bytes as 32Mb), so is the value.
//
// # Sources
//
// The sources of iproute2 3 to 6, ethtool 2.6.33 to 6.x, net-tools 1.60 to 2.10, procps 3 and 4,
// pciutils 3, dmidecode 3, each file named at its parser. The tests of package sosreport compare
// the parser of every installed tool with what the kernel itself reports, in namespaces and in
// guests with real NICs.
//
// # Limits
//
// English, the language in which sos runs the tools (LC_ALL=C). Facts without a place in package
// host are not parsed.
package printed
