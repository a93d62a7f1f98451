// Package persist plans the files that make a change survive a reboot, in the format of the program
// that owns the setting, and checks whether the change survived.
//
// # Model
//
// [New] reads the files of a host; [Planner.Plan] then returns a [Step] for each change: the
// format, complete files for [journal.Journal.Persist], and the lines of other files that would
// override them at the next start. Where no format of a program fits, it returns the line that the
// user must write. It writes nothing. After a restart, [Check] compares the knobs with what was
// persisted, and names the line that set a knob otherwise.
//
// Each change has its own file, with the id in its name, so that undoing one never edits a file
// that another one needs, and leaves the tree as it was before, to the byte. Stacked changes stay
// in order, because the ids sort. The formats, in order of preference:
//
//	sysctl.d        /etc/sysctl.d/90-linerate-ID.conf
//	modprobe.d      /etc/modprobe.d/90-linerate-ID.conf; by hand for a module that is built in
//	NetworkManager  /etc/NetworkManager/conf.d/90-linerate-ID.conf, for the MTU of interfaces that
//	                it manages
//	systemd.link    a drop-in of the .link file that applies to the NIC. If that file also matches
//	                other NICs, all changes of the NIC share a copy of it, 60-linerate-NAME.link,
//	                that matches this NIC only: only the first .link file applies, so a file with
//	                nothing but our setting would remove the naming policy of the default
//	udev            /etc/udev/rules.d/90-linerate-ID.rules, for attributes of sysfs
//	ifupdown        /etc/network/if-up.d/linerate-ID, a script, where ifupdown brings the interface
//	                up and no format above fits
//	NetworkManager  /etc/NetworkManager/dispatcher.d/90-linerate-ID, likewise
//	udev            a rule that runs ethtool, ip or tc, in all other cases
//
//	sysctl.conf     FreeBSD: a marked block at the end of /etc/sysctl.conf, which has no directory
//	rc.conf         FreeBSD: a marked block at the end of /etc/rc.conf, which adds an option to the
//	                line of an interface
//	rc2.d           illumos and Solaris: a script for each property of ipadm or dladm, which sets it
//	                at every start
//
// To find conflicts, the planner reads the host's configuration with our files added: a conflict is
// a line of another file that then applies last.
//
// # Units
//
// Values are those of the knobs; .link files use the units and words of systemd.
//
// # Sources
//
// sysctl.d(5), modprobe.d(5), systemd.link(5), udev(7), NetworkManager.conf(5),
// NetworkManager-dispatcher(8), interfaces(5), run-parts(8). Numbers in names from 60 to 90 are
// reserved for the administrator (sysctl.d(5)), and .link files should begin with less than 70
// (systemd.link(5)). systemd-udevd 252, kmod 30 and procps 4.0 apply the files of this package; a
// test over a restart of Debian 12 (cmd/linerate TestUnderSystemd) covers those for sysctls, links,
// udev, ifupdown 0.8.41 and NetworkManager 1.42.
//
// # Limits
//
// Linux; FreeBSD for sysctls and options of interfaces; illumos and Solaris for properties but the
// MTU, which a link in use refuses. The planner assumes that NetworkManager leaves an interface in
// /etc/network/interfaces to ifupdown if its configuration says so; it does not recognise other
// reasons why NetworkManager ignores an interface (unmanaged-devices, a udev rule). It never edits
// connections of NetworkManager and files of netplan: their own settings override ours, and the
// step shows them. A driver's module may be loaded from the initial ramdisk, which has its own
// copies of modprobe.d and .link files: the step notes it. The copy of a .link file does not follow
// later changes of the original. A sysctl that appears only when its module is loaded
// (nf_conntrack) does not exist when sysctl.d is read. Interrupts, routes, mounts and parameters of
// queueing disciplines are for the user to write, with the line that the step gives.
package persist
