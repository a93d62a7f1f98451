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
	fields, err := processFields(pid)
	if err != nil {
		return 0, err
	}
	// A process that a signal stopped (T) keeps no deadline: it is as good as gone. One that a
	// debugger holds (t) goes on in a moment.
	if s := fields[0][0]; s == 'Z' || s == 'X' || s == 'T' {
		return 0, &os.PathError{Op: "look at", Path: "process " + strconv.Itoa(pid), Err: os.ErrNotExist}
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}

// processWork returns the processor time of a process in clock ticks: 0 when it is unknown.
func processWork(pid int) (ticks uint64) {
	fields, err := processFields(pid)
	if err != nil {
		return 0
	}
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return ticks
}

// processFields returns the fields of proc_pid_stat(5) behind the name, which may hold anything:
// the state, field 3, is the first, and starttime, field 22, is there.
func processFields(pid int) ([][]byte, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, err
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 20 {
		return nil, fmt.Errorf("read /proc/%d/stat: %d fields", pid, len(fields))
	}
	return fields, nil
}

// pidNamespace names the PID namespace of this process, or returns "".
func pidNamespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}
