// Package capture holds one host's network side in one text file that can be sent to a stranger:
// taken, scrubbed, written and read back.
//
// # Model
//
// [Take] copies what package host reads (host.Root.Copy) and replaces everything that identifies
// the host or its owner. [Capture.WriteTo] writes it as text, [Read] reads such a text from an
// untrusted source, [Capture.Snapshot] returns the document that the host itself would have
// returned, with the same replacements. Every capture is scrubbed, and unscrubbed data never reach
// a disk.
//
// # Replaced
//
// Addresses keep their class and their common prefixes: private stays private, link-local
// link-local, and two addresses of one network stay in one network. Loopback, multicast,
// unspecified addresses and the blocks for documentation stay. Hardware addresses become locally
// administered ones, also within interface names (enx…) and IPv6 addresses made from them. Names of
// hosts, domains, shares, directories and users, aliases of interfaces, network names, serial
// numbers and UUIDs become words or numbers of the same kind. Parameters of the kernel's command
// line keep their values only if they affect speed. The configuration space of devices ends before
// its PCI Express part, which contains serial numbers. Settings, counters, sizes, versions, models
// and times are unchanged.
//
// The replacements follow from a key of 32 random bytes, made for one capture and forgotten. So the
// replacements do not reveal that two captures are of one host. A reader who knows one address and
// its replacement knows the shared prefix of others, which is the price of keeping networks.
//
// # Format
//
// UTF-8 text in lines. The first is "linerate capture 1", the last is "end"; a file without it is
// incomplete. Empty lines and lines that begin with # are skipped. [DIRECTORY] heads the entries of
// one directory, a line each:
//
//	NAME = TEXT           a file with this one line
//	NAME == "LITERAL"     a file with exactly these bytes (Go's string literals): binary, or no
//	                      newline at its end
//	NAME :                a file with the lines that follow, each behind one tab
//	NAME -> TARGET        a symbolic link of /sys
//	NAME /                a directory that is there for its name
//
// A name with blanks or quotation marks is a string literal too. The paths are those of an archive
// of package host. The file is sorted by directory and name: diff(1) can compare captures of one
// host before and after a change, except for the replacements.
//
// # Limits
//
// 64 MiB, 100,000 entries, paths of 1024 bytes. Names that users give to interfaces and to tuning
// profiles are not replaced. A host name that is also a word of the kernel (vm, cubic) is replaced
// only in the place of a name.
package capture
