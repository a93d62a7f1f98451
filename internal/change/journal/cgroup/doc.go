// Package cgroup gives a process a control group of its own, so that it does not end with the
// session or the service that it watches.
//
// # Model
//
// `systemctl stop`, KillUserProcesses and cgroup.kill end a whole group at once. [Own] moves the
// calling process out of the one it was born in: into a transient scope where systemd runs, because
// groups are its to give there; else into a new group as high up in the hierarchy as is permitted,
// since one below would end with its parent. Groups that a killed process has left are removed by
// the next one.
//
// It says in words what it did, for the log of the guard. Without a group of its own a process
// still may have a session of its own; what it cannot survive then is the end of the group.
//
// # Sources
//
// cgroups(7); Documentation/admin-guide/cgroup-v2.rst; org.freedesktop.systemd1(5),
// StartTransientUnit; sd_booted(3).
//
// # Limits
//
// Linux, control groups of version 2. systemd is asked through busctl(1) and given two seconds, in
// which its caller waits. The move is the whole process's.
package cgroup
