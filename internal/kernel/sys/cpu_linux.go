package sys

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Pin binds the calling thread to one CPU. Call it after runtime.LockOSThread and let the goroutine
// end without unlocking: the thread then ends too, and with it the restricted mask.
func Pin(cpu int) error {
	var set cpuMask
	if cpu < 0 || cpu >= len(set)*wordBits {
		return fmt.Errorf("pin thread to cpu %d: %w", cpu, unix.EINVAL)
	}
	set[cpu/wordBits] = 1 << (cpu % wordBits)
	if errno := set.call(unix.SYS_SCHED_SETAFFINITY); errno != 0 {
		return fmt.Errorf("pin thread to cpu %d: %w", cpu, errno)
	}
	return nil
}

// cpuMask has room for the most CPUs that Linux supports (NR_CPUS). A kernel that may have more
// than the 1024 of unix.CPUSet refuses to fill that one (sched_getaffinity(2)).
type cpuMask [8192 / wordBits]uint

// call gets or sets the mask of the calling thread.
func (m *cpuMask) call(number uintptr) unix.Errno {
	// 0 is the calling thread, not the process: the affinity belongs to threads only.
	_, _, errno := unix.RawSyscall(number, 0, unsafe.Sizeof(*m), uintptr(unsafe.Pointer(m)))
	return errno
}

// wordBits is the width of one word of a mask.
const wordBits = 32 << (^uint(0) >> 63)

// AllowedCPUs returns the CPUs that the calling thread may run on, ascending: the online ones
// inside its cpuset and affinity mask.
func AllowedCPUs() ([]int, error) {
	var set cpuMask
	if errno := set.call(unix.SYS_SCHED_GETAFFINITY); errno != 0 {
		return nil, fmt.Errorf("read allowed cpus: %w", errno)
	}
	// The kernel omits offline CPUs from the mask, so a thread can be pinned to every CPU in it.
	var cpus []int
	for c := range len(set) * wordBits {
		if set[c/wordBits]>>(c%wordBits)&1 != 0 {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}

// OnlineCPUs returns the online CPUs of the machine, ascending. A container may be allowed fewer,
// see [AllowedCPUs].
func OnlineCPUs() ([]int, error) {
	b, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("read online cpus: %w", err)
	}
	return ParseCPUList(string(b))
}

// ProcessTimes returns the CPU time that all threads of this process have used so far, including
// ended ones (getrusage(2)). Both are 0 if the kernel does not report them.
func ProcessTimes() (user, system time.Duration) {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0, 0
	}
	return time.Duration(r.Utime.Nano()), time.Duration(r.Stime.Nano())
}

// ThreadID returns the kernel's number of the calling thread. Call it after runtime.LockOSThread.
func ThreadID() int { return unix.Gettid() }

// ThreadTime returns the CPU time, user and system, that one thread of this process has used so
// far; false if the thread has ended. It works from any other thread: the clock of a thread is made
// of its number (CPUCLOCK_SCHED | CPUCLOCK_PERTHREAD_MASK of include/linux/posix-timers_types.h).
// Interrupts that use its CPU meanwhile do not count where the kernel accounts for them apart.
func ThreadTime(id int) (time.Duration, bool) {
	var t unix.Timespec
	if id <= 0 || unix.ClockGettime(int32(^id<<3|6), &t) != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
