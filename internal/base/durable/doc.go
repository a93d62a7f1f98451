// Package durable keeps bytes through crashes: files that are replaced whole or not at all, a
// checksummed record log, and an exclusive lock that ends with its holder.
//
// # Model
//
// An FS accesses the disk. There are three: the operating system (OS), a memory file system that
// can simulate a power loss (Mem), and a wrapper that makes chosen operations fail (Faulty).
// Replace swaps the content of a file atomically. A Log is a file of records, each on disk before
// Append returns. A Lock belongs to one process at a time; only its owner can open its file,
// because any process that can open it can hold the lock. Only a Draft has no FS: it is a file for
// a user, which gets its name when it is complete.
//
// The state after a power loss follows POSIX, not a particular file system. The data of a file
// survives up to its last Sync; a name in a directory survives once SyncDir has synced that
// directory. Later changes may be present, missing, or partly present.
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
// crash are never taken for records. The header has its own sum because its length field is used
// before the payload is verified: if a frame has a valid header and the file continues after its
// end, another append followed it, so the frame had been synced.
//
// A damaged frame is a torn tail if nothing proves that it had been synced: it is the last one, its
// end is the end of the file or lies beyond it, and no valid header follows anywhere. A crash
// during Append leaves such a tail, and the next OpenLog truncates it. Any other damage is
// corruption: a *CorruptError with the offset, without a repair.
//
// # Marked logs
//
// A tail that was cut off cleanly looks like a log that never had it. A marked log has a second
// file with the number of its records (see OpenMarkedLog), so that a lost end, a replaced log and a
// missing log are corruption too. SalvageLog reads what is left of a corrupt log.
//
// # Units
//
// Sizes and offsets are bytes.
//
// # Sources
//
// fsync(2), rename(2), open(2), flock(2) of Linux man-pages 6.x; LockFileEx, MoveFileEx of the
// Windows API. A failed fsync must not be repeated (the kernel has marked the lost pages clean):
// Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020.
//
// # Limits
//
// A frame whose fsync failed may still be read back, from the page cache, until the machine
// restarts. The next OpenLog then takes it for a record and appends after it, though its blocks
// were never written. A later power loss then shows as corruption in the middle of the log instead
// of a torn tail. No record that was reported as safe is lost, but a person must examine the log.
//
// Damage of a synced last frame by a failing medium looks the same as a torn append. Windows cannot
// sync a directory; there, renames are written through instead. Locks do not work over NFS versions
// that keep them local. Writers of the same path must exclude each other; readers need not. A log
// is read into memory whole, so its writer has to rewrite it from time to time (RewriteLog);
// package journal does so at half a MiB. On a disk that acknowledges a flush without performing it,
// no promise of this package holds.
package durable
