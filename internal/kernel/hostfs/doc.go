// Package hostfs reads the files of one host: /proc and /sys of the running system, or a copy of
// them.
//
// # Model
//
// A [Tree] answers by name ("proc/stat", "sys/class/net"): [Running] is this system, [OpenDir] a
// copy in a directory, [Of] a copy in any [fs.FS], of which [Memory] is the one that needs no disk.
// Whoever reads cannot tell which it is. A Tree has no way to write: what is read of a host cannot
// change it, and what is read of a copy cannot leave it.
//
// [Tree.Record] has a Tree keep what is read through it from then on, as [Entry] values. So a copy
// holds exactly what the readers look at, and a reader that learns to look at one more file has it
// in the next copy without anybody thinking of it.
//
// # Names and links
//
// Names are slash-separated and relative to the root of the host's file system. Links are part of
// what a host says: in sysfs they tell which device is whose. [Tree.Link] gives one as it is
// written, [Tree.Resolve] follows them all, and no answer ever comes from outside of a copy: it may
// be from anybody, and a link to /etc/shadow in it must not end up in a report.
//
// # Sources
//
// proc(5), sysfs(5), Documentation/filesystems/{proc,sysfs,seq_file}.rst; fs/proc/proc_sysctl.c for
// the reads that give a value only once.
//
// # Limits
//
// A Tree belongs to one goroutine: it reads into one buffer. Whole files only, which is what the
// kernel's pseudo files are made for; a copy is taken file by file and not at one moment. On other
// systems than Linux copies can be read and nothing else.
package hostfs
