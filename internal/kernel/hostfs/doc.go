// Package hostfs reads the files of one host: /proc and /sys of the running system, or a copy of
// them.
//
// # Model
//
// A [Tree] reads files by name ("proc/stat", "sys/class/net"). [Running] is this system, [OpenDir]
// a copy in a directory, and [Of] a copy in any [fs.FS]; [Memory] is an fs.FS that needs no disk.
// The reader cannot distinguish them. A Tree cannot write: reading a host cannot change it, and
// reading a copy cannot leave it.
//
// [Tree.Record] makes a Tree keep everything read through it from then on, as [Entry] values. A
// copy therefore holds exactly the files that the readers use, and if a reader starts to use
// another file, the next copy contains it automatically.
//
// # Names and links
//
// Names are slash-separated and relative to the root of the host's file system. Links carry
// information: in sysfs they connect an interface with its device. [Tree.Link] returns the text of
// one link, and [Tree.Resolve] follows all of them. No result ever comes from outside a copy: a
// copy may come from an untrusted source, and a link to /etc/shadow in it must not end up in a
// report.
//
// # Sources
//
// proc(5), sysfs(5), Documentation/filesystems/{proc,sysfs,seq_file}.rst; fs/proc/proc_sysctl.c for
// the reads that return a value only once.
//
// # Limits
//
// A Tree is not safe for concurrent use, because it reads into one buffer. It reads whole files
// only, as the kernel's pseudo files require. A copy is taken file by file and not at one moment.
// On systems other than Linux only copies can be read.
package hostfs
