// Package persist says which files make a change survive a reboot, in the format of whoever owns
// the setting, and whether it did.
//
// # Model
//
// [New] looks at the files of a host; [Planner.Plan] then gives a [Step] for each change: the
// format, whole files for [journal.Journal.Persist], the lines of other files that would win over
// them at the next start, or the line for a person to write where no format of a machine fits. It
// writes nothing. [Check] compares, after a restart, what the knobs hold with what was persisted,
// and names the line that set it otherwise.
//
// Each change has a file of its own, with the id in its name, so that undoing one never edits a
// file that another one needs, and the tree is as before to the byte. What is stacked stays in
// order, because the ids sort. The formats, in the order of choice:
//
//	sysctl.d        /etc/sysctl.d/90-linerate-ID.conf
//	modprobe.d      /etc/modprobe.d/90-linerate-ID.conf; by hand for a module that is built in
//	NetworkManager  /etc/NetworkManager/conf.d/90-linerate-ID.conf, for the MTU of what it manages
//	systemd.link    a drop-in of the .link file that applies to the card. Where that one is for other cards too, all changes of the card share a
//	                copy of it, 60-linerate-NAME.link, that matches the card alone: only the first .link file counts, so a file with nothing
//	                but our setting would take the naming policy of the default away
//	udev            /etc/udev/rules.d/90-linerate-ID.rules, for attributes of sysfs
//	ifupdown        /etc/network/if-up.d/linerate-ID, a script, where ifupdown brings the interface up and nothing above can say it
//	NetworkManager  /etc/NetworkManager/dispatcher.d/90-linerate-ID, likewise
//	udev            a rule that runs ethtool, ip or tc, for everybody else
//
// A conflict is found by reading the host's configuration with our files in it: a line of another
// file that then has the last word.
//
// # Units
//
// Values are those of the knobs; .link files have them in the words of systemd.
//
// # Sources
//
// sysctl.d(5), modprobe.d(5), systemd.link(5), udev(7), NetworkManager.conf(5),
// NetworkManager-dispatcher(8), interfaces(5), run-parts(8). Numbers in names from 60 to 90 are
// those of the administrator (sysctl.d(5)), and .link files shall begin with less than 70
// (systemd.link(5)). Files of this package were given to systemd-udevd 252, kmod 30 and procps 4.0
// and had their effect; those for sysctls, links, udev, ifupdown 0.8.41 and NetworkManager 1.42 are
// so over a restart of Debian 12 in a test (cmd/linerate TestUnderSystemd).
//
// # Limits
//
// Linux. An interface that /etc/network/interfaces names is taken for one that NetworkManager
// leaves to ifupdown, as its configuration says; one that it leaves alone for another reason
// (unmanaged-devices, a udev rule) is not known as such. Connections of NetworkManager and files of
// netplan are never edited: what they say themselves wins, and is shown. A driver's module may be
// loaded from the initial ramdisk, which has copies of its own of modprobe.d and .link files: the
// step says so. The copy of a .link file does not follow later changes of the original. A sysctl
// that appears only when its module is loaded (nf_conntrack) is not there yet when sysctl.d is
// read. Interrupts, routes, mounts and parameters of queueing disciplines are for a person to write
// down, with the line to use.
package persist
