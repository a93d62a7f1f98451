// Package bootconf tells which line of a host's configuration gives a knob its value when the host
// starts.
//
// # Model
//
// [Read] goes through the files of a root directory and gives a [Config]; [Config.Line] is the line
// that has the last word about a knob. Read are sysctls of sysctl.conf(5), sysctl.d(5) and the
// active profile of TuneD, and module options of modprobe.d(5); and for interfaces that the caller
// names ([FindDevice]) also systemd .link and .network files, udev rules, [net] sections of TuneD,
// connections and defaults of NetworkManager, and interfaces(5) with the commands of ethtool, ip
// and ifconfig in it. That a knob has the value of its line is no proof that the line has set it; a
// knob that has another value was changed since.
//
// # Units
//
// Values are texts as they stand in the file, with single blanks between words.
//
// # Sources
//
// sysctl(8) of procps-ng (--system), sysctl.d(5) and systemd-sysctl(8), modprobe.d(5),
// tuned.conf(5), tuned-main.conf(5); systemd.link(5), systemd.network(5), udev(7),
// NetworkManager.conf(5), nm-settings-keyfile(5), interfaces(5), ethtool(8).
//
// # Limits
//
// Linux. The kernel's command line, files of netplan (what it makes of them below /run is read) and
// the programs of an initial ramdisk are not read; scripts cannot be, but for those of package
// persist. A udev rule or a [Match] that asks what is not known here counts as fitting where it may
// win. Which of several connections NetworkManager takes is not known: the last one that may be the
// interface's counts. Variables and arithmetic of TuneD are not resolved: such a line counts as
// none, except that ">2048" stands as it is written, which means "at least". A file that may not be
// read is left out without a word.
package bootconf
