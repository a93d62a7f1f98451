package uring

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// Constants of include/uapi/linux/io_uring.h.
const (
	offSQ   = 0
	offSQEs = 0x10000000

	setupClamp        = 1 << 4
	setupSingleIssuer = 1 << 12
	setupDeferTaskrun = 1 << 13

	featSingleMmap = 1 << 0
	featExtArg     = 1 << 8

	enterGetEvents = 1 << 0
	enterExtArg    = 1 << 3

	registerBuffers = 0
	registerFiles   = 2
	unregisterFiles = 3

	opFsync      = 3
	opReadFixed  = 4
	opWriteFixed = 5

	fsyncDatasync = 1 << 0
	sqeFixedFile  = 1 << 0
	sqeLink       = 1 << 2
)

// sqe is struct io_uring_sqe.
type sqe struct {
	opcode, flags uint8
	ioprio        uint16
	fd            int32
	off, addr     uint64
	length        uint32
	opFlags       uint32
	userData      uint64
	bufIndex      uint16
	personality   uint16
	spliceFD      int32
	_             [2]uint64
}

// cqe is struct io_uring_cqe.
type cqe struct {
	userData uint64
	res      int32
	flags    uint32
}

// params is struct io_uring_params.
type params struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFD uint32
	_                                                                      [3]uint32
	sq                                                                     struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
}

// Operation is what a queued entry does.
type Operation int

// The operations. WriteThenSync links an fdatasync(2) to the write: its completion is that of both.
const (
	Read Operation = iota
	Write
	WriteThenSync
)

// Completion is one finished operation.
type Completion struct {
	User   uint64 // as given to Queue
	Result int32  // bytes, or a negative errno
}

// linked marks the user data of a write whose fdatasync completes after it.
const linked = 1 << 63

// Ring is one io_uring with one registered file. Only the thread that opened it may use it.
type Ring struct {
	fd                     int
	rings, entries         []byte
	sqHead, sqTail         *uint32
	cqHead, cqTail         *uint32
	sqMask, cqMask         uint32
	sqes                   []sqe
	cqes                   []cqe
	tail, pending, sqCount uint32
	failed                 map[uint64]int32 // results of linked writes that failed or were short
	buffers                [][]byte
}

// Open makes a ring for depth operations in flight, with fd as its file and the buffers that
// operations name by their index. The calling goroutine must be locked to its thread. The error is
// [sys.ErrNotSupported] where the kernel has no io_uring, and EPERM or EACCES where it refuses this
// process.
func Open(depth, fd int, buffers [][]byte) (*Ring, error) {
	var p params
	var r *Ring
	for _, flags := range []uint32{setupClamp | setupSingleIssuer | setupDeferTaskrun, setupClamp} {
		p = params{flags: flags}
		// A linked fdatasync is an entry of its own.
		n, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(2*depth), uintptr(unsafe.Pointer(&p)), 0)
		if errno == unix.EINVAL { // a kernel before 6.1
			continue
		}
		if errno == unix.ENOSYS {
			return nil, &sys.UnsupportedError{Feature: "io_uring", Since: "Linux 5.11"}
		}
		if errno != 0 {
			return nil, fmt.Errorf("set up io_uring: %w", errno)
		}
		r = &Ring{fd: int(n), failed: make(map[uint64]int32), buffers: buffers}
		break
	}
	if r == nil || p.features&featSingleMmap == 0 || p.features&featExtArg == 0 {
		if r != nil {
			_ = unix.Close(r.fd)
		}
		return nil, &sys.UnsupportedError{Feature: "io_uring", Since: "Linux 5.11"}
	}
	if err := r.mapRings(&p); err != nil {
		r.Close()
		return nil, err
	}
	if err := r.register(fd); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Ring) mapRings(p *params) error {
	size := max(p.sq.array+p.sqEntries*4, p.cq.cqes+p.cqEntries*uint32(unsafe.Sizeof(cqe{})))
	var err error
	prot, flags := unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE
	if r.rings, err = unix.Mmap(r.fd, offSQ, int(size), prot, flags); err != nil {
		return fmt.Errorf("map io_uring: %w", err)
	}
	if r.entries, err = unix.Mmap(r.fd, offSQEs, int(p.sqEntries)*int(unsafe.Sizeof(sqe{})), prot, flags); err != nil {
		return fmt.Errorf("map io_uring: %w", err)
	}
	at := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.rings[off])) }
	r.sqHead, r.sqTail, r.cqHead, r.cqTail = at(p.sq.head), at(p.sq.tail), at(p.cq.head), at(p.cq.tail)
	r.sqMask, r.cqMask, r.sqCount = *at(p.sq.mask), *at(p.cq.mask), p.sqEntries
	r.sqes = unsafe.Slice((*sqe)(unsafe.Pointer(&r.entries[0])), p.sqEntries)
	r.cqes = unsafe.Slice((*cqe)(unsafe.Pointer(&r.rings[p.cq.cqes])), p.cqEntries)
	// Entry i of the queue is always submission i: the indirection is not used.
	array := unsafe.Slice(at(p.sq.array), p.sqEntries)
	for i := range array {
		array[i] = uint32(i)
	}
	return nil
}

func (r *Ring) register(fd int) error {
	files := [1]int32{int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), registerFiles,
		uintptr(unsafe.Pointer(&files)), 1, 0, 0); errno != 0 {
		return fmt.Errorf("register file with io_uring: %w", errno)
	}
	iov := make([]unix.Iovec, len(r.buffers))
	for i, b := range r.buffers {
		iov[i].Base = &b[0]
		iov[i].SetLen(len(b))
	}
	if _, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), registerBuffers,
		uintptr(unsafe.Pointer(&iov[0])), uintptr(len(iov)), 0, 0); errno != 0 {
		return fmt.Errorf("register buffers with io_uring: %w", errno)
	}
	runtime.KeepAlive(iov)
	return nil
}

// Queue puts an operation on the whole buffer of that index at an offset of the file into the
// queue. Flags are those of pwritev2(2), such as RWF_DSYNC. User must be less than 2^63. Queue
// panics when more operations are in flight than the depth, which is a mistake of the caller.
func (r *Ring) Queue(op Operation, buffer int, offset int64, flags uint32, user uint64) {
	b := r.buffers[buffer]
	e := sqe{opcode: opReadFixed, flags: sqeFixedFile, off: uint64(offset),
		addr: uint64(uintptr(unsafe.Pointer(&b[0]))), length: uint32(len(b)), opFlags: flags, userData: user,
		bufIndex: uint16(buffer)}
	switch op {
	case Read:
	case Write:
		e.opcode = opWriteFixed
	case WriteThenSync:
		e.opcode, e.flags, e.userData = opWriteFixed, sqeFixedFile|sqeLink, user|linked
	}
	r.put(e)
	if op == WriteThenSync {
		r.put(sqe{opcode: opFsync, flags: sqeFixedFile, opFlags: fsyncDatasync, userData: user})
	}
}

func (r *Ring) put(e sqe) {
	if r.tail-atomic.LoadUint32(r.sqHead) >= r.sqCount {
		panic("uring: more operations in flight than the depth")
	}
	r.sqes[r.tail&r.sqMask] = e
	r.tail++
	r.pending++
	atomic.StoreUint32(r.sqTail, r.tail)
}

// getEvents is struct io_uring_getevents_arg.
type getEvents struct {
	sigmask   uint64
	sigmaskSz uint32
	_         uint32
	ts        uint64
}

// Enter submits what was queued and waits until least operations have completed, at most for a
// time; 0 is without limit. The thread keeps its logical processor meanwhile, as in [sys.HeldRead].
// It returns early, without an error, when the time is over or a signal arrives.
func (r *Ring) Enter(least int, most time.Duration) error {
	var arg getEvents
	var ts unix.Timespec
	if most > 0 {
		ts = unix.NsecToTimespec(most.Nanoseconds())
		arg.ts = uint64(uintptr(unsafe.Pointer(&ts)))
	}
	err := r.enter(least, enterGetEvents|enterExtArg, unsafe.Pointer(&arg), unsafe.Sizeof(arg))
	runtime.KeepAlive(&ts)
	return err
}

// Submit hands what was queued to the kernel and does not wait. What the kernel does not take now
// goes with the next call.
func (r *Ring) Submit() error { return r.enter(0, 0, nil, 0) }

func (r *Ring) enter(least int, flags uintptr, arg unsafe.Pointer, size uintptr) error {
	n, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(r.pending), uintptr(least), flags,
		uintptr(arg), size)
	switch errno {
	case 0:
		r.pending -= uint32(n)
		return nil
	case unix.ETIME, unix.EINTR, unix.EAGAIN, unix.EBUSY:
		// The kernel reports the wait's end only when it submitted nothing in this call, or it
		// consumed the queue before: the head says how much is left.
		r.pending = r.tail - atomic.LoadUint32(r.sqHead)
		return nil
	}
	return fmt.Errorf("enter io_uring: %w", errno)
}

// Next takes one completion; false: none is left.
func (r *Ring) Next() (Completion, bool) {
	for {
		head := *r.cqHead
		if head == atomic.LoadUint32(r.cqTail) {
			return Completion{}, false
		}
		e := r.cqes[head&r.cqMask]
		atomic.StoreUint32(r.cqHead, head+1)
		if e.userData&linked != 0 {
			r.failed[e.userData&^linked] = e.res
			continue
		}
		c := Completion{User: e.userData, Result: e.res}
		if len(r.failed) > 0 {
			if res, ok := r.failed[c.User]; ok {
				delete(r.failed, c.User)
				// A failed write cancels its fdatasync; the write has the reason.
				if res < 0 || c.Result >= 0 {
					c.Result = res
				}
			}
		}
		return c, true
	}
}

// Close releases the ring. Operations in flight must have completed. The kernel frees a ring later,
// in the background; the file is released now, so that its file system can be unmounted.
func (r *Ring) Close() {
	// It fails when no file is registered yet.
	_, _, _ = unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), unregisterFiles, 0, 0, 0, 0)
	for _, m := range [][]byte{r.rings, r.entries} {
		if m != nil {
			_ = unix.Munmap(m) // ours, so it cannot fail
		}
	}
	_ = unix.Close(r.fd)
}

// Available reports why this process cannot use io_uring; nil: it can.
func Available() error {
	var p params
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&p)), 0)
	if errno == 0 {
		err := unix.Close(int(fd))
		if p.features&featExtArg == 0 {
			return &sys.UnsupportedError{Feature: "io_uring", Since: "Linux 5.11"}
		}
		return err
	}
	if errors.Is(errno, unix.ENOSYS) {
		return &sys.UnsupportedError{Feature: "io_uring", Since: "Linux 5.11"}
	}
	return fmt.Errorf("set up io_uring: %w", errno)
}
