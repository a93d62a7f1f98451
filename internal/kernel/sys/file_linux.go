package sys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where returns where the kernel keeps an open file.
func Where(fd int) (FileAt, error) {
	var x unix.Statx_t
	// STATX_DIOALIGN and STATX_MNT_ID are only requests: the mask of the answer shows what the
	// kernel filled in.
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID|unix.STATX_DIOALIGN, &x)
	if err != nil {
		return FileAt{}, fmt.Errorf("statx: %w", err)
	}
	at := FileAt{Major: x.Dev_major, Minor: x.Dev_minor}
	if x.Mode&unix.S_IFMT == unix.S_IFBLK {
		at.Major, at.Minor = x.Rdev_major, x.Rdev_minor
	}
	if x.Mask&unix.STATX_MNT_ID != 0 {
		at.Mount = x.Mnt_id
	}
	if x.Mask&unix.STATX_DIOALIGN != 0 {
		at.DirectKnown = true
		at.DirectBytes, at.MemoryBytes = int(x.Dio_offset_align), int(x.Dio_mem_align)
	}
	var s unix.Statfs_t
	if err := unix.Fstatfs(fd, &s); err != nil {
		return at, fmt.Errorf("statfs: %w", err)
	}
	at.Magic = int64(s.Type)
	at.FreeBytes, at.TotalBytes = int64(s.Bavail)*int64(s.Bsize), int64(s.Blocks)*int64(s.Bsize)
	return at, nil
}

// Resident returns how many bytes of an open file the page cache holds, by cachestat(2) of Linux
// 6.5 or else by mincore(2). Size is that of the file. The kernel answers both only to the file's
// owner or to a process that may write it: others get an error (cachestat) or the whole size
// (mincore), so the fallback is not asked after a refusal.
func Resident(fd int, size int64) (int64, error) {
	type cachestat struct{ cache, dirty, writeback, evicted, recentlyEvicted uint64 }
	var (
		area = [2]uint64{0, 0} // offset and length; 0 is to the end of the file
		got  cachestat
	)
	_, _, errno := unix.Syscall6(unix.SYS_CACHESTAT, uintptr(fd), uintptr(unsafe.Pointer(&area)),
		uintptr(unsafe.Pointer(&got)), 0, 0, 0)
	switch errno {
	case 0:
		return min(int64(got.cache)*int64(os.Getpagesize()), size), nil
	case unix.ENOSYS, unix.EOPNOTSUPP:
		return residentMincore(fd, size)
	}
	return 0, fmt.Errorf("cachestat: %w", errno)
}

// residentMincore maps the file in pieces, so that a large one takes little address space.
func residentMincore(fd int, size int64) (int64, error) {
	const piece = 1 << 30
	page := int64(os.Getpagesize())
	var resident int64
	for off := int64(0); off < size; off += piece {
		n := min(size-off, piece)
		m, err := unix.Mmap(fd, off, int(n), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return 0, fmt.Errorf("map file: %w", err)
		}
		pages := make([]byte, (n+page-1)/page)
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), uintptr(n),
			uintptr(unsafe.Pointer(&pages[0])))
		err = unix.Munmap(m)
		if errno != 0 {
			return 0, fmt.Errorf("mincore: %w", errno)
		}
		if err != nil {
			return 0, fmt.Errorf("unmap file: %w", err)
		}
		for _, p := range pages {
			resident += int64(p&1) * page
		}
	}
	return min(resident, size), nil
}

// DropPages asks the kernel to forget clean pages of a part of a file (posix_fadvise(2)); length 0
// is the rest of it. Dirty, mapped and locked pages stay, so flush before and check with
// [Resident].
func DropPages(fd int, offset, length int64) error {
	return unix.Fadvise(fd, offset, length, unix.FADV_DONTNEED)
}

// fiemap, of include/uapi/linux/fiemap.h.
const (
	fsIOCFiemap      = 0xc020660b
	extentLast       = 0x1
	extentEncoded    = 0x8
	extentUnwritten  = 0x800
	extentBytes      = 56
	fiemapHeadBytes  = 32
	extentsPerCall   = 512
	extentsMost      = 64 * extentsPerCall
	extentFlagsAt    = 40
	extentLengthAt   = 16
	extentLogicalAt  = 0
	fiemapMappedAt   = 20
	fiemapCapacityAt = 24
)

// ListExtents reads where a file's bytes are (FIEMAP). A file system without that ioctl (tmpfs,
// NFS, most FUSE) yields Extents with Known false, which is no error.
func ListExtents(fd int, size int64) (Extents, error) {
	buf := make([]byte, fiemapHeadBytes+extentsPerCall*extentBytes)
	var out Extents
	for start := int64(0); out.Fragments < extentsMost; {
		clear(buf[:fiemapHeadBytes])
		binary.NativeEndian.PutUint64(buf, uint64(start))
		binary.NativeEndian.PutUint64(buf[8:], ^uint64(0))
		binary.NativeEndian.PutUint32(buf[fiemapCapacityAt:], extentsPerCall)
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), fsIOCFiemap, uintptr(unsafe.Pointer(&buf[0])))
		if errors.Is(errno, unix.EOPNOTSUPP) || errors.Is(errno, unix.ENOTTY) || errors.Is(errno, unix.EINVAL) {
			return Extents{}, nil
		}
		if errno != 0 {
			return Extents{}, fmt.Errorf("list extents: %w", errno)
		}
		out.Known = true
		n := int(binary.NativeEndian.Uint32(buf[fiemapMappedAt:]))
		if n == 0 {
			out.Complete = true
			return out, nil
		}
		for i := range min(n, extentsPerCall) {
			e := buf[fiemapHeadBytes+i*extentBytes:]
			logical := int64(binary.NativeEndian.Uint64(e[extentLogicalAt:]))
			length := int64(binary.NativeEndian.Uint64(e[extentLengthAt:]))
			flags := binary.NativeEndian.Uint32(e[extentFlagsAt:])
			inside := max(0, min(logical+length, size)-logical) // the last extent may exceed the file
			switch {
			case flags&extentUnwritten != 0:
				out.UnwrittenBytes += inside
			case flags&extentEncoded != 0:
				out.EncodedBytes += inside
				out.MappedBytes += inside
			default:
				out.MappedBytes += inside
			}
			out.Fragments++
			start = logical + length
			if flags&extentLast != 0 {
				out.Complete = true
				return out, nil
			}
		}
	}
	return out, nil
}

// HeldRead is pread(2), and HeldWrite pwritev2(2) with flags such as RWF_DSYNC. The calling thread
// keeps its logical processor meanwhile: the runtime does not learn of the call, so that its
// monitor neither polls for it every 20 µs nor hands the processor to another thread. That is 8 µs
// of CPU time less for an operation of 50 µs. The caller lends a logical processor for each thread
// that may sleep here, and has no garbage collection meanwhile, which would wait for the call.
//
//go:nosplit
func HeldRead(fd int, p []byte, offset int64) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)),
		uintptr(offset), uintptr(uint64(offset)>>32), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// HeldWrite is described at [HeldRead].
//
//go:nosplit
func HeldWrite(fd int, p []byte, offset int64, flags int) (int, error) {
	v := unix.Iovec{Base: &p[0]}
	v.SetLen(len(p))
	// The offset comes in two halves; a kernel of 64 bits takes all of it from the first.
	n, _, errno := unix.RawSyscall6(unix.SYS_PWRITEV2, uintptr(fd), uintptr(unsafe.Pointer(&v)), 1, uintptr(offset),
		uintptr(uint64(offset)>>32), uintptr(flags))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// HeldSync is fdatasync(2), as [HeldRead].
//
//go:nosplit
func HeldSync(fd int) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_FDATASYNC, uintptr(fd), 0, 0); errno != 0 {
		return errno
	}
	return nil
}
