package live

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/change/knob"
)

// The kernel returns a sysctl only in the first read: a second read at a later offset is the end of
// the file, so a value longer than the buffer is cut without an error. ip_local_reserved_ports
// alone can reach 190 kB. The buffer therefore grows, and the file is read from its start until one
// read leaves room, up to the limit of the kernel's own allocation.
const (
	sysctlBuffer    = 16 << 10
	sysctlBufferMax = 4 << 20 // KMALLOC_MAX_SIZE
)

// Path elements cannot leave the tree: ParseID refuses "." and "..", and none holds a slash.
func (l *Host) file(id knob.ID) string {
	return filepath.Join(append([]string{l.root}, id.Path()...)...)
}

// A value that fills the buffer to the last byte may have been cut, so it is read again with more
// room: one byte too many costs one more read, one too few a wrong original in the journal.
func (l *Host) readSysctl(id knob.ID) (knob.Value, error) {
	if id.Path() == nil {
		return "", knob.ErrUnknown
	}
	// Raw calls: the runtime's poller has no business with pseudo files, and its buffering would
	// split the read.
	fd, err := retry(func() (int, error) { return syscall.Open(l.file(id), syscall.O_RDONLY|syscall.O_CLOEXEC, 0) })
	if err != nil {
		return "", l.sysctlError(id, err, false)
	}
	defer func() { _ = syscall.Close(fd) }() // opened for reading: nothing to lose
	for size := sysctlBuffer; size <= sysctlBufferMax; size *= 4 {
		buf := make([]byte, size)
		n, err := retry(func() (int, error) { return syscall.Pread(fd, buf, 0) })
		if err != nil {
			return "", l.sysctlError(id, err, false)
		}
		if n < size {
			return knob.Value(buf[:n]), nil
		}
	}
	return "", fmt.Errorf("value longer than %d bytes", sysctlBufferMax)
}

// writeSysctl sets a sysctl, and leaves it as it was when it is refused.
//
// Of several numbers in one file the kernel stores each as it parses it: "5000 0 6000" is refused
// for its second number when the first is in force already (__do_proc_dointvec). So what was there
// before is put back if it no longer exists.
func (l *Host) writeSysctl(id knob.ID, v knob.Value) error {
	if len(strings.Fields(string(v))) < 2 {
		return l.writeSysctlOnce(id, v)
	}
	before, readErr := l.readSysctl(id)
	err := l.writeSysctlOnce(id, v)
	if err == nil || readErr != nil {
		return err
	}
	after, readErr := l.readSysctl(id)
	if readErr != nil || after == before {
		return err
	}
	if back := l.writeSysctlOnce(id, before.Squeeze()); back != nil {
		return fmt.Errorf("%w; and the stored part could not be taken back: %w", err, back)
	}
	return err
}

func (l *Host) writeSysctlOnce(id knob.ID, v knob.Value) error {
	if id.Path() == nil {
		return knob.ErrUnknown
	}
	fd, err := retry(func() (int, error) { return syscall.Open(l.file(id), syscall.O_WRONLY|syscall.O_CLOEXEC, 0) })
	if err != nil {
		return l.sysctlError(id, err, true)
	}
	text := []byte(v + "\n")
	// One call carries the whole value: what comes at a later offset is ignored without an error
	// (kernel.sysctl_writes_strict). Lists alone are different: the kernel takes a page at a time
	// and adds what follows to it.
	n, err := retry(func() (int, error) { return syscall.Write(fd, text) })
	// proc_do_large_bitmap parses one page of a write and returns how much it took.
	if d, ok := l.catalog.Lookup(id); ok && d.Form == knob.FormRanges {
		for more := n; err == nil && more > 0 && n < len(text); n += more {
			more, err = retry(func() (int, error) { return syscall.Write(fd, text[n:]) })
		}
	}
	if closeErr := syscall.Close(fd); err == nil {
		err = closeErr
	}
	switch {
	case errors.Is(err, syscall.ENOENT):
		// The file was opened, so that it is the value which names something that is not there: a
		// congestion control, a qdisc.
		return &knob.RangeError{Value: v, Allowed: "a name that the running kernel has or can load"}
	case err != nil:
		return l.sysctlError(id, err, true)
	case n < len(text)-1:
		return &knob.RangeError{Value: v,
			Allowed: fmt.Sprintf("a value that the kernel takes whole; it took %d of %d bytes", n, len(text))}
	}
	return nil
}

// sysctlError sorts what opening or using the file of a sysctl answered.
func (l *Host) sysctlError(id knob.ID, err error, writing bool) error {
	return pseudoError(unix.AT_FDCWD, l.file(id), err, writing)
}

// retry repeats an interrupted call.
//
// Files of /proc rarely wait, but the runtime's preemption signals (SIGURG, Go 1.14) can interrupt
// any system call that does.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != syscall.EINTR { //nolint:errorlint // raw system calls return bare errnos
			return n, err
		}
	}
}
