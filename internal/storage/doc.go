// Package storage measures reads and writes of a file or a block device, and says whose figure each
// result is: the device's, or that of a cache that answered for it.
//
// # Model
//
// A [Spec] describes one test: direction, order, size and number of operations in flight, how each
// write becomes durable, and a [Way] past the page cache. A [Session] opens the target once and
// runs tests on it. A directory gets a file of the session's own, filled with bytes that do not
// compress. That file has no name, so that the kernel removes it at every end of the process, kill
// -9 included. An existing file or device is only read, unless the caller permits writes.
//
// [Session.Run] reads the counters of every layer below the file (package layers), runs the
// operations from threads or through io_uring, and reads the counters again. [Judge] compares the
// bytes at the file, those that this process caused at the storage layer, and those at the devices,
// and looks at the pages in memory. The figure is the device's only when these agree within 5 %.
// Otherwise [Verdict].Whose names what answered.
//
// Without a rate a new operation starts when one ends (closed loop). With a rate operations are due
// on a schedule, and the latency of each counts from when it was due (open loop), so that a device
// that stalls cannot hide the operations that waited meanwhile.
//
// # Ways past the cache
//
//	direct    O_DIRECT; checked afterwards, because tmpfs accepts it and btrfs falls back silently
//	dropped   pages are dropped behind each read (POSIX_FADV_DONTNEED after fdatasync), and checked
//	group     a memory control group of version 1 or 2 around this process, 16 MiB and its buffers
//	pinned    this process locks memory until [LeftBytes] are available; the kernel frees the memory
//	          at every end of the process, and ends this process first when memory runs out
//	larger    a file of at least twice the memory
//	buffered  no way: the cache is measured, and the result says so
//
// Auto takes the first of direct, dropped and group that works. Pinned takes memory from all other
// programs, so only a user chooses it.
//
// # Units
//
// Bytes, operations, seconds. Rates are per second of the test's own time.
//
// # Sources
//
// open(2) O_DIRECT and O_TMPFILE, statx(2) STATX_DIOALIGN, pwritev2(2) RWF_DSYNC, posix_fadvise(2),
// cachestat(2), mincore(2), mlock(2), proc_pid_io(5), proc_pid_oom_score_adj(5),
// Documentation/admin-guide/iostats.rst, Documentation/filesystems/fiemap.rst, cgroup-v2.rst
// (io.max, memory.max), cgroup-v1/blkio-controller.rst and cgroup-v1/memory.rst of
// Documentation/admin-guide. Order of the latency floors: a disk of 7200/min turns in 8.3 ms; flash
// reads a page in 40 to 100 µs; SATA adds 10 µs.
//
// # Limits
//
// Linux only. A virtual disk is measured up to the host that provides it: no guest can see that
// host's cache. Between creating and unlinking a file there is a moment in which kill -9 leaves a
// file called .linerate-disk-*; it exists only on file systems without O_TMPFILE. After kill -9 in
// a test with way group an empty control group linerate-disk-PID stays until the next such test.
// Bytes of other programs at the same device are separated by /proc/self/io, which does not see
// below a loop device. While a test runs the process collects no garbage. Storage that does not
// answer, such as a frozen file system, ends a test with [ErrSilent] after 40 s; the kernel lets
// the process end when the storage answers.
package storage
