// Package atboot makes a host finish, at every start, what a crash has left of linerate's changes.
//
// # Model
//
// [Text] is the unit or the script that runs `linerate recover` once, before the network comes up; [Install] puts it where the init system of a root
// directory looks for it, with the links that enable it, and [Uninstall] takes both away again. What is left to do at a start: the values of
// trials went with the old kernel, and the journal notes that; files that a change was being made to survive a reboot with, and that were
// half written when the host died, are taken out; a log that lost its last record is mended.
//
// The first line of the file has the checksum of all that follows. A file whose checksum fits is ours, of whatever version, and is replaced and
// removed; any other is somebody's work and is left alone.
//
// # Units
//
// None.
//
// # Sources
//
// systemd.unit(5), systemd.exec(5), systemd.special(7) for network-pre.target and sysinit.target; the Linux Standard Base 3.1, "Comment conventions for init
// scripts"; openrc-run(8) and the OpenRC service script guide.
//
// # Limits
//
// Linux with systemd, with System V init, or with OpenRC. Install starts no program, so that systemd learns of the unit at the next start or by
// `systemctl daemon-reload`. System V init is told by a link of its own name; insserv may rename it.
package atboot
