package sys

// FileAt is where the kernel keeps an open file, as far as statx(2) and fstatfs(2) show it.
type FileAt struct {
	Major, Minor uint32 // of the file system's device; major 0 is no block device
	Mount        uint64 // number of the mount in /proc/PID/mountinfo; 0: unknown, before Linux 5.8
	Magic        int64  // of the file system, as in statfs(2)
	FreeBytes    int64  // what an ordinary user may still write
	TotalBytes   int64
	// DirectBytes is the alignment of offsets and lengths of direct I/O, MemoryBytes that of the
	// buffer. Both are 0 where the file system has no direct I/O or the kernel does not report it
	// (statx(2) STATX_DIOALIGN, Linux 6.1); DirectKnown distinguishes the two.
	DirectBytes, MemoryBytes int
	DirectKnown              bool
}

// Extents sums the extents of a file by what a read of them does, in bytes. What none of them
// covers is a hole.
type Extents struct {
	MappedBytes     int64 // written to the device
	UnwrittenBytes  int64 // allocated and never written: a read returns zeros
	EncodedBytes    int64 // compressed or encrypted by the file system
	Fragments       int   // extents in all
	Known, Complete bool  // the file system lists extents; all of them were read
}
