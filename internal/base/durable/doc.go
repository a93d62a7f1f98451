// Package durable keeps bytes through crashes: files that are replaced whole or not at all, a
// checksummed record log, and an exclusive lock that dies with its holder.
//
// # Model
//
// An FS is the only way to a disk. There are three: the operating system (OS), a memory file system
// that can be switched off like a machine that loses power (Mem), and a wrapper that makes chosen
// operations fail (Faulty). Replace swaps the content of a file atomically. A Log is a file of
// records, each on disk before Append returns. A Lock belongs to one process at a time; its file
// can be opened by its owner only, because whoever can open it can hold it.
//
// What power loss leaves behind follows POSIX and no particular file system: the data of a file
// survives up to its last Sync, a name in a directory survives once that directory was synced with
// SyncDir. Everything younger may be there, may be missing, and may be there in part.
//
// # Record log format
//
// All integers are little-endian; sums are CRC-32C (Castagnoli). The file begins with 20 bytes:
//
//	 0  8  "lnrlog1\n"
//	 8  8  salt, random, one per file
//	16  4  sum of bytes 0–15
//
// Then frames follow without padding:
//
//	 0  4  mark F1 AB 52 FE, which no UTF-8 text contains
//	 4  4  length of the payload in bytes, at most 1 MiB
//	 8  8  sequence number, counted from 0
//	16  4  sum of salt and payload
//	20  4  sum of salt and bytes 0–19 of this frame
//	24  n  payload
//
// The salt makes frames of another log invalid, so stale blocks that a file system shows after a
// crash are never taken for records. The header has its own sum because its length field must be
// believed before the payload is: a frame whose header is whole, and behind whose end the file goes
// on, was once followed by another append and so had been synced.
//
// A damaged frame is a torn tail, which a crash during Append leaves and which is cut off at the
// next OpenLog, exactly when nothing proves that it had been synced: it is the last one, its end is
// the end of the file or lies beyond it, and no valid header follows anywhere. Every other damage
// is corruption: a *CorruptError with the offset, and nothing is repaired.
//
// # Units
//
// Sizes and offsets are bytes.
//
// # Sources
//
// fsync(2), rename(2), open(2), flock(2) of Linux man-pages 6.x; LockFileEx, MoveFileEx of the
// Windows API. That an fsync which failed must not be tried again (the kernel has marked the lost
// pages clean): Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020.
//
// # Limits
//
// A frame whose fsync failed may still be read back, from the page cache, until the machine
// restarts: the next OpenLog then takes it for a record and appends behind it, though its blocks
// were never written. Power loss after that shows as corruption in the middle of the log instead of
// a torn tail. Nothing is lost by it that was reported as safe, but a person has to look.
//
// The damage of a synced last frame, by a failing medium, cannot be told from a torn append.
// Windows cannot sync a directory; renames are written through there instead. Locks do not work
// over NFS versions that keep them local. Writers of the same path must exclude each other; readers
// need not. A log is read into memory whole, so its writer has to rewrite it from time to time
// (RewriteLog); package journal does at half a MiB. Disks that acknowledge a flush and do not do it
// keep no promise of this package.
package durable
