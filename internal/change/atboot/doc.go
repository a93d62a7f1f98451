// Package atboot makes a host finish, at every start, what a crash has left of linerate's changes.
//
// # Model
//
// [Text] is the unit or the script that runs `linerate recover` once, before the network comes up;
// [Install] puts it where the init system of a root directory looks for it, with the links that
// enable it, and [Uninstall] takes both away again. What is left to do at a start: the values of
// trials went with the old kernel, and the journal notes that; files that a change was being made
// to survive a reboot with, and that were half written when the host died, are taken out; a log
// that lost its last record is mended.
//
// The first line of the file has the checksum of all that follows. A file whose checksum fits is
// ours, of whatever version, and is replaced and removed; any other is somebody's work and is left
// alone. The directories that had to be made for it stand in a line of it, so that Uninstall leaves
// the tree as it was before, to the byte.
//
// # Not through the journal
//
// Nothing is written to a host outside package journal, with this one exception. The unit is no
// setting: it changes nothing that a host does until a journal is there to be recovered, and it is
// installed and taken away by a person's own command, as a package's unit is. In the journal it
// would be a change among those that `undo --all` takes back, and recovery would take itself away
// just when what it is for has happened. Files are written by package durable, so that a loss of
// power leaves the old one or the new one.
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
// no `systemctl daemon-reload` after it: the unit is for the next start, which reads it, and who
// asks before finds it (seen with systemd 252, cmd/linerate TestUnderSystemd). After Uninstall
// systemd goes on holding a unit that it had at its start and that nothing starts any more, until
// it starts again or is told to reload. System V init is told by a link of its own name; insserv
// may rename it.
//
// systemd-udevd reads .link files and rules before disks are mounted, and so before recovery. The
// unit waits until udev has done with the cards that are there, half a minute at most, and puts
// back what a half-written file of ours has set. A card that comes later than that is not seen by
// it.
package atboot
