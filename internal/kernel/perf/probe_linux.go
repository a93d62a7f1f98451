package perf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// layer is what [Probe] asks of a kernel. A test simulates processors that the machine of the test
// does not have.
type layer interface {
	open(attr *unix.PerfEventAttr, pid, cpu int) (fd int, err error)
	enable(fd int) error
	read(fd int, b []byte) (int, error)
	close(fd int)
	counters() bool // the kernel drives counters of the processor
}

// kernel is the layer of this machine.
type kernel struct{}

func (kernel) open(attr *unix.PerfEventAttr, pid, cpu int) (int, error) {
	return unix.PerfEventOpen(attr, pid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
}

func (kernel) enable(fd int) error { return unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0) }

func (kernel) read(fd int, b []byte) (int, error) { return unix.Read(fd, b) }

func (kernel) close(fd int) { _ = unix.Close(fd) } // nothing was written

func (kernel) counters() bool { return hasPMU() }

// Probe asks whether this process can sample the event on a CPU. Acceptance proves nothing: the
// event must also count while this thread works.
func Probe(e Event, cpu int) Probed { return probe(kernel{}, e, cpu) }

func probe(k layer, e Event, cpu int) Probed {
	attr := attrOf(e)
	attr.Read_format = formatTimes
	fd, err := k.open(&attr, -1, cpu)
	if err != nil {
		return answerOf(k, e, err)
	}
	k.close(fd) // only its opening matters
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if fd, err = k.open(&attr, 0, -1); err != nil {
		return answerOf(k, e, err)
	}
	defer k.close(fd)
	if err := k.enable(fd); err != nil {
		return Probed{Event: e, Answer: Unknown, Reason: err.Error()}
	}
	var b [24]byte
	for range 40 { // at most, rare events included; the first count ends it
		work(1 << 16)
		if _, err := k.read(fd, b[:]); err != nil {
			return Probed{Event: e, Answer: Unknown, Reason: err.Error()}
		}
		if binary.NativeEndian.Uint64(b[:]) > 0 {
			return Probed{Event: e, Answer: Works}
		}
	}
	if binary.NativeEndian.Uint64(b[16:]) == 0 {
		return Probed{Event: e, Answer: Unknown, Reason: "another program holds the counters"}
	}
	return Probed{Event: e, Answer: Unknown, Reason: "opened, and did not count"}
}

// answerOf maps the kernel's refusal to an answer.
func answerOf(k layer, e Event, err error) Probed {
	err = refusal("", e, err, k.counters)
	p := Probed{Event: e, Answer: Unknown, Reason: err.Error()}
	switch {
	case errors.Is(err, fs.ErrPermission):
		p.Answer, p.Reason = NotPermitted, permissionReason(err, os.Geteuid() == 0)
	case errors.Is(err, ErrNotSupported):
		p.Answer, p.Reason = NotSupported, err.Error()
	}
	return p
}

// permissionReason names what the kernel asks for. The kernel itself answers EACCES for want of the
// capability, and EPERM comes from what stands before it. The root of a container lacks the
// capability as well: it counts only in the user namespace of the host (perfmon_capable).
func permissionReason(err error, root bool) string {
	if errors.Is(err, unix.EPERM) {
		return "a filter of system calls (seccomp, as containers have it) or a security module refuses perf_event_open"
	}
	needs := "the whole machine needs root, or CAP_PERFMON"
	if root {
		needs = "the whole machine needs CAP_PERFMON on the host, which the root of a container does not have"
	}
	if b, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid"); err == nil {
		return fmt.Sprintf("kernel.perf_event_paranoid is %s; %s", string(b[:max(0, len(b)-1)]), needs)
	}
	return needs
}
