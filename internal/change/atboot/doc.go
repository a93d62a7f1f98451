// Package atboot makes a host finish, at every start, linerate's changes that a crash interrupted.
//
// # Model
//
// [Text] is the unit or the script that runs `linerate recover` once, before the network comes up.
// [Install] puts it where the init system of a root directory looks for it, with the links that
// enable it, and [Uninstall] removes both. A start has this left to do: record that the values of
// trials ended with the old kernel, remove files of a change whose persisting the crash
// interrupted, and mend a log that lost its last record.
//
// The first line of the file has the checksum of the rest. A file whose checksum matches was
// written by some version of linerate, and is replaced and removed; any other file is left alone. A
// line of the file lists the directories that were created for it, so that Uninstall leaves the
// tree as it was before, to the byte.
//
// # Not through the journal
//
// Nothing is written to a host outside package journal, with this one exception. The unit is not a
// setting: it changes nothing until a journal needs recovery, and the user installs and removes it
// with a command, as with a package's unit. In the journal it would be one of the changes that
// `undo --all` takes back, and recovery would remove itself exactly when it is needed. Package
// durable writes the files, so that a loss of power leaves the old one or the new one.
//
// # Units
//
// None.
//
// # Sources
//
// systemd.unit(5), systemd.exec(5), systemd.special(7) for network-pre.target and sysinit.target;
// the Linux Standard Base 3.1, "Comment conventions for init scripts"; openrc-run(8) and the OpenRC
// service script guide.
//
// # Limits
//
// Linux with systemd, with System V init, or with OpenRC. Install starts no program. systemd needs
// no `systemctl daemon-reload` afterwards: the next start reads the unit, and a query before that
// finds it too (seen with systemd 252, cmd/linerate TestUnderSystemd). After Uninstall, systemd
// keeps a unit that it loaded at its start, but no longer starts it, until it restarts or reloads.
// System V init finds the script through a link with its own name, which insserv may rename.
//
// systemd-udevd reads .link files and rules before disks are mounted, and so before recovery. The
// unit waits until udev has finished with the present NICs, at most half a minute, and restores
// what a half-written file of ours has set. It misses a NIC that appears later.
package atboot
