package journal

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// processStarted returns the start of a process in clock ticks since boot. The error matches
// fs.ErrNotExist when there is none, or only its exit status is left (a zombie).
func processStarted(pid int) (ticks uint64, err error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	// Behind the name, which may hold anything: state is field 3, starttime field 22
	// (proc_pid_stat(5)).
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("read /proc/%d/stat: %d fields", pid, len(fields))
	}
	// A process that a signal stopped (T) keeps no deadline: it is as good as gone. One that a
	// debugger holds (t) goes on in a moment.
	if s := fields[0][0]; s == 'Z' || s == 'X' || s == 'T' {
		return 0, &os.PathError{Op: "look at", Path: "process " + strconv.Itoa(pid), Err: os.ErrNotExist}
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}

// pidNamespace names the PID namespace of this process, or returns "".
func pidNamespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}
