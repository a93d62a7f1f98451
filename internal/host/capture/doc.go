// Package capture is one host's network side in one text file that can be sent to a stranger:
// taken, scrubbed, written and read back.
//
// # Model
//
// [Take] copies what package host reads (host.Root.Copy) and replaces everything that says whose
// host it is. [Capture.WriteTo] writes it as text, [Read] reads such a text from anybody,
// [Capture.Snapshot] gives the document that the host itself would have given, with the same
// replacements. There is no capture that is not scrubbed, and nothing unscrubbed is ever on a disk.
//
// # Replaced
//
// Addresses keep what they are and what they share: private stays private, link-local link-local,
// two addresses of one network are of one network afterwards; loopback, multicast, unspecified
// addresses and the blocks for documentation stay. Hardware addresses become locally administered
// ones, also within interface names (enx…) and IPv6 addresses made of them. Names of hosts,
// domains, shares, directories and users, aliases of interfaces, network names, serial numbers and
// UUIDs become words or numbers of the same kind. Parameters of the kernel's command line keep
// their values only where they bear on speed. The configuration space of devices ends before its
// PCI Express part, where serial numbers are. Settings, counters, sizes, versions, models and times
// are untouched.
//
// The replacements follow from a key of 32 random bytes, made for one capture and forgotten. Two
// captures of one host cannot be told to be that by their replacements. Who knows one address and
// its replacement knows the shared prefix of others, which is the price of keeping networks.
//
// # Format
//
// UTF-8 text in lines. The first is "linerate capture 1", the last is "end"; without it the file is
// cut off. Empty lines and lines that begin with # are skipped. [DIRECTORY] heads the entries of
// one directory, a line each:
//
//	NAME = TEXT           a file with this one line
//	NAME == "LITERAL"     a file with exactly these bytes (Go's string literals): binary, or no newline at its end
//	NAME :                a file with the lines that follow, each behind one tab
//	NAME -> TARGET        a symbolic link of /sys
//	NAME /                a directory that is there for its name
//
// A name with blanks or quotation marks in it is a string literal too. The paths are those of an
// archive of package host. The file is sorted by directory and name: captures of one host before
// and after a change can be compared by diff(1), but for the replacements.
//
// # Limits
//
// 64 MiB, 100,000 entries, paths of 1024 bytes. Names that people give to interfaces and to tuning
// profiles are not replaced. A host name that is also a word of the kernel (vm, cubic) is replaced
// only where it stands as a name.
package capture
