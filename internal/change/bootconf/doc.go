// Package bootconf finds the line of a host's configuration that sets a knob when the host starts.
//
// # Model
//
// [Read] reads the files of a root directory into a [Config]; [Config.Line] returns the line that
// decides a knob. It reads sysctls from sysctl.conf(5), sysctl.d(5) and the active profile of
// TuneD, and module options from modprobe.d(5). For interfaces that the caller names ([FindDevice])
// it also reads systemd .link and .network files, udev rules, [net] sections of TuneD, connections
// and defaults of NetworkManager, and interfaces(5) with its commands of ethtool, ip and ifconfig.
// A knob that has the value of its line was not necessarily set by it; a knob that has another
// value was changed since.
//
// # Units
//
// Values are texts as in the file, with single blanks between words.
//
// # Sources
//
// sysctl(8) of procps-ng (--system), sysctl.d(5) and systemd-sysctl(8), modprobe.d(5),
// tuned.conf(5), tuned-main.conf(5); systemd.link(5), systemd.network(5), udev(7),
// NetworkManager.conf(5), nm-settings-keyfile(5), interfaces(5), ethtool(8).
//
// # Limits
//
// Linux. The package does not read the kernel's command line, files of netplan (it reads their
// output below /run) and the programs of an initial ramdisk; it cannot read scripts, except those
// of package persist. A udev rule or a [Match] with a condition unknown here counts as a match
// where it may override another line. The package does not know which of several connections
// NetworkManager uses: the last one that may belong to the interface counts. It does not resolve
// variables and arithmetic of TuneD and ignores such a line, except that ">2048", which means "at
// least", stays as written. It silently skips a file that it may not read.
package bootconf
