package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/sys"
)

// Commands, kinds of maps and of programs, of include/uapi/linux/bpf.h.
const (
	mapCreate      = 0
	mapLookup      = 1
	mapUpdate      = 2
	mapNextKey     = 4
	progLoad       = 5
	programRun     = 10
	objectInfo     = 15
	rawTracepoint  = 17
	mapFreeze      = 22
	enableStats    = 32
	kindHash       = 1
	kindArray      = 2
	kindPerCPUHash = 5
	kindPerCPU     = 6 // array
	kindStack      = 7
	progRawTP      = 17

	readOnlyByProgram = 1 << 7  // BPF_F_RDONLY_PROG
	mappable          = 1 << 10 // BPF_F_MMAPABLE
)

// Sizes of the tables: places that wait, tasks that wait at a moment, and depth of stacks; and how
// often a program is offered to a kernel that was interrupted.
const (
	mostPlaces = 4096
	mostTasks  = 8192
	stackDepth = 24
	mostLoads  = 30 // of one program
)

// Watcher counts until it is closed.
type Watcher struct {
	fds      []int
	programs []int
	sums     int // softirqs
	delays   int // of softirqs
	waits    int
	stacks   int
	cpus     int // possible ones, which values for each CPU have
	stats    bool
}

// call is bpf(2). The attributes must not move: they are memory of the caller's stack or kept alive
// by it.
func call(command uintptr, attr unsafe.Pointer, size uintptr) (int, error) {
	r, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(attr), size)
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}

// Watch starts counting. The error is ErrNotSupported on a kernel without BPF or these tracepoints,
// and fs.ErrPermission without the capabilities. Locks are left out, not an error, where only their
// tracepoints are missing; then [Watcher.Locks] is false.
func Watch() (*Watcher, error) {
	cpus, err := possibleCPUs()
	if err != nil {
		return nil, err
	}
	w := &Watcher{cpus: cpus, waits: -1}
	if err := w.start(); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Locks reports whether waits for locks are counted: the kernel has the tracepoints since 5.19.
func (w *Watcher) Locks() bool { return w.waits >= 0 }

func (w *Watcher) start() error {
	// Times of the programs themselves; forbidden to some who may load them.
	var statistics struct{ kind uint32 }
	if fd, err := call(enableStats, unsafe.Pointer(&statistics), unsafe.Sizeof(statistics)); err == nil {
		w.fds, w.stats = append(w.fds, fd), true
	}
	starts, err := w.table(kindPerCPU, 4, 8, uint32(len(softIRQNames)))
	if err != nil {
		return err
	}
	if w.sums, err = w.table(kindPerCPU, 4, 16, uint32(len(softIRQNames))); err != nil {
		return err
	}
	if err := w.attach("softirq_exit", softIRQExit(starts, w.sums)); err != nil {
		return err
	}
	raised, err := w.table(kindPerCPU, 4, 8, uint32(len(softIRQNames)))
	if err != nil {
		return err
	}
	if w.delays, err = w.table(kindPerCPU, 4, 16, uint32(len(softIRQNames))); err != nil {
		return err
	}
	if err := w.attach("softirq_entry", softIRQEntry(starts, raised, w.delays)); err != nil {
		return err
	}
	if err := w.attach("softirq_raise", softIRQRaise(raised)); err != nil {
		return err
	}
	waiting, err := w.table(kindHash, 8, 24, mostTasks)
	if err != nil {
		return err
	}
	if w.stacks, err = w.table(kindStack, 4, 8*stackDepth, mostPlaces); err != nil {
		return err
	}
	sums, err := w.table(kindPerCPUHash, 8, 16, mostPlaces)
	if err != nil {
		return err
	}
	if err := w.attach("contention_end", waitEnd(waiting, w.stacks, sums)); err != nil {
		if errors.Is(err, ErrNotSupported) {
			return nil
		}
		return err
	}
	if err := w.attach("contention_begin", waitBegin(waiting)); err != nil {
		return err
	}
	w.waits = sums
	return nil
}

func (w *Watcher) table(kind, key, value, entries uint32) (int, error) {
	fd, err := createTable(kind, key, value, entries, 0)
	if err != nil {
		return -1, refused("create table", err)
	}
	w.fds = append(w.fds, fd)
	return fd, nil
}

func createTable(kind, key, value, entries, flags uint32) (int, error) {
	attr := struct{ kind, key, value, entries, flags uint32 }{kind, key, value, entries, flags}
	return call(mapCreate, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

// load gives a program to the kernel.
func load(p program) (int, error) {
	license := []byte("GPL\x00") // helpers for stacks, time and names ask for it
	attr := struct {
		kind, count uint32
		code        uint64
		license     uint64
		level, size uint32
		log         uint64
		version     uint32
		flags       uint32
		name        [16]byte
	}{kind: progRawTP, count: uint32(len(p) / bytesPerInstr), code: address(p), license: address(license)}
	copy(attr.name[:15], "linerate")
	fd, err := call(progLoad, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	// A signal ends the check of a program, and Go's runtime sends itself some (bpf_check of
	// kernel/bpf/verifier.c).
	for tries := 0; errors.Is(err, unix.EAGAIN) && tries < mostLoads; tries++ {
		fd, err = call(progLoad, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	}
	runtime.KeepAlive(p)
	runtime.KeepAlive(license)
	return fd, err
}

// attach loads a program and runs it at a raw tracepoint.
func (w *Watcher) attach(tracepoint string, p program) error {
	fd, err := load(p)
	if err != nil {
		return refused("load program for "+tracepoint, err)
	}
	w.fds, w.programs = append(w.fds, fd), append(w.programs, fd)
	name := append([]byte(tracepoint), 0)
	open := struct {
		name uint64
		fd   uint32
		_    uint32
	}{name: address(name), fd: uint32(fd)}
	at, err := call(rawTracepoint, unsafe.Pointer(&open), unsafe.Sizeof(open))
	runtime.KeepAlive(name)
	if err != nil {
		return refused("attach to "+tracepoint, err)
	}
	w.fds = append(w.fds, at)
	return nil
}

// address is the address of memory that the caller keeps alive.
func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

func refused(what string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%s: %w: %w", what, err, ErrNotSupported)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Close ends all counting.
func (w *Watcher) Close() {
	for _, fd := range w.fds {
		_ = unix.Close(fd) // nothing is written through it
	}
	w.fds = nil
}

// Read returns the sums since the start.
func (w *Watcher) Read() (*Counts, error) {
	c := &Counts{}
	value, delay := make([]byte, 16*w.cpus), make([]byte, 16*w.cpus)
	word := binary.NativeEndian.Uint64
	for vector, name := range softIRQNames {
		key := binary.NativeEndian.AppendUint32(nil, uint32(vector))
		// A delay counts when a run begins, and a run when it ends. In this order no delay is without
		// its run, but for the one that goes on, however long this process is held up in between.
		if err := lookup(w.delays, key, delay); err != nil {
			return nil, fmt.Errorf("read delays of softirqs: %w", err)
		}
		if err := lookup(w.sums, key, value); err != nil {
			return nil, fmt.Errorf("read softirqs: %w", err)
		}
		for cpu := range w.cpus {
			if runs := word(value[16*cpu+8:]); runs > 0 {
				c.SoftIRQs = append(c.SoftIRQs, SoftIRQ{CPU: cpu, Name: name, Nanos: word(value[16*cpu:]), Runs: runs,
					DelayNanos: word(delay[16*cpu:]), Delayed: word(delay[16*cpu+8:])})
			}
		}
	}
	if w.Locks() {
		if err := w.readWaits(c, value); err != nil {
			return nil, err
		}
	}
	if w.stats {
		for _, fd := range w.programs {
			nanos, runs, err := programTimes(fd)
			if err != nil {
				return nil, err
			}
			c.RunNanos, c.Runs = c.RunNanos+nanos, c.Runs+runs
		}
	}
	return c, nil
}

func (w *Watcher) readWaits(c *Counts, value []byte) error {
	word := binary.NativeEndian.Uint64
	var last []byte
	for range mostPlaces { // new ones may come while it reads
		key := make([]byte, 8)
		if err := nextKey(w.waits, last, key); errors.Is(err, unix.ENOENT) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read lock waits: %w", err)
		}
		last = key
		if err := lookup(w.waits, key, value); errors.Is(err, unix.ENOENT) {
			continue
		} else if err != nil {
			return fmt.Errorf("read lock waits: %w", err)
		}
		one := Wait{Kind: kindOf(binary.NativeEndian.Uint32(key[4:]))}
		for cpu := range w.cpus {
			one.Nanos += word(value[16*cpu:])
			one.Waits += word(value[16*cpu+8:])
		}
		stack := make([]byte, 8*stackDepth)
		// A stack that the kernel had no room for has no entry.
		if lookup(w.stacks, key[:4], stack) == nil {
			for i := 0; i < len(stack) && word(stack[i:]) != 0; i += 8 {
				one.Stack = append(one.Stack, word(stack[i:]))
			}
		}
		c.Waits = append(c.Waits, one)
	}
	return nil
}

// element are the attributes of calls about one value of a map.
type element struct {
	fd         uint32
	_          uint32
	key, value uint64
	flags      uint64
}

func lookup(fd int, key, value []byte) error {
	attr := element{fd: uint32(fd), key: address(key), value: address(value)}
	_, err := call(mapLookup, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	runtime.KeepAlive(key)
	runtime.KeepAlive(value)
	return err
}

// nextKey finds the key after the last one; nil: the first.
func nextKey(fd int, last, next []byte) error {
	attr := element{fd: uint32(fd), value: address(next)}
	if last != nil {
		attr.key = address(last)
	}
	_, err := call(mapNextKey, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	runtime.KeepAlive(last)
	runtime.KeepAlive(next)
	return err
}

// programTimes reads run_time_ns and run_cnt of bpf_prog_info.
func programTimes(fd int) (nanos, runs uint64, err error) {
	const timeAt, infoBytes = 192, 208
	info := make([]byte, infoBytes)
	attr := struct {
		fd, size uint32
		info     uint64
	}{uint32(fd), infoBytes, address(info)}
	_, err = call(objectInfo, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	runtime.KeepAlive(info)
	if err != nil {
		return 0, 0, fmt.Errorf("read times of a program: %w", err)
	}
	return binary.NativeEndian.Uint64(info[timeAt:]), binary.NativeEndian.Uint64(info[timeAt+8:]), nil
}

// possibleCPUs is how many CPUs the kernel has room for: values of each CPU come in that number.
func possibleCPUs() (int, error) {
	b, err := os.ReadFile("/sys/devices/system/cpu/possible")
	if err != nil {
		return 0, fmt.Errorf("read possible cpus: %w", err)
	}
	cpus, err := sys.ParseCPUList(strings.TrimSpace(string(b)))
	if err != nil || len(cpus) == 0 {
		return 0, fmt.Errorf("read possible cpus: %q: %w", b, errors.Join(err, ErrNotSupported))
	}
	return cpus[len(cpus)-1] + 1, nil
}
